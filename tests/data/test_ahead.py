"""Batches that are read while something else is computed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from modgraph.data.batches import AHEAD, READER, prefetch
from modgraph.diagnostics import ModgraphError
from modgraph.training.run import finish, start_run
from tests.small_runs import begin, final_weights, go_on, interrupt_at

SPEC = """
model net() {
  input  image: float[3, 8, 8]
  target label: class[2]
  logits = image -> flatten -> linear(16) -> relu -> dropout(0.2) -> linear(2)
  output logits
  loss cross_entropy(logits, label)
}
"""


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(READER)]


def test_items_come_in_order_and_some_of_them_before_they_are_asked_for() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for item in range(10):
            made.append(item)
            yield item

    with prefetch(items()) as given:
        assert next(given) == 0
        deadline = time.monotonic() + 60
        while len(made) < 1 + AHEAD and time.monotonic() < deadline:
            time.sleep(0.001)
        assert made == list(range(1 + AHEAD))
        assert [*given] == list(range(1, 10))


def test_what_is_raised_comes_in_order_and_is_the_same() -> None:
    mistake = ModgraphError([])

    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise mistake

    taken = []
    with pytest.raises(ModgraphError) as caught, prefetch(items()) as given:
        for item in given:
            taken.append(item)  # noqa: PERF402 - those before the mistake
    assert taken == [1, 2]
    assert caught.value is mistake


def test_whoever_leaves_early_leaves_no_thread() -> None:
    with pytest.raises(KeyboardInterrupt), prefetch(iter(range(1000))) as given:
        next(given)
        raise KeyboardInterrupt


# ------------------------------------------------------------ of a training


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A spec and a recipe beside it that reads images from files."""
    rng = np.random.default_rng(0)
    for split, count in (("train", 20), ("test", 4)):
        for kind in ("cat", "dog"):
            folder = tmp_path / "images" / split / kind
            folder.mkdir(parents=True)
            for at in range(count):
                Image.fromarray(rng.integers(0, 255, (8, 8, 3), np.uint8)).save(folder / f"{at}.png")
    (tmp_path / "net.mod").write_text(SPEC)
    data = f"{{name: class_folders, train: {tmp_path}/images/train, test: {tmp_path}/images/test}}"
    train = "{epochs: 2, batch: 6, augment: {image: {shift: 0.1, flip: true}}}"
    (tmp_path / "net.yaml").write_text(f"data: {data}\ntrain: {train}\n")
    return tmp_path / "net.mod"


def test_a_training_reads_ahead_and_is_the_same_when_it_was_cut_off(images: Path, tmp_path: Path) -> None:
    whole = begin(images, tmp_path / "whole", train__checkpoint_every=2)
    options = {"train.checkpoint_every": 2}
    with pytest.raises(KeyboardInterrupt), start_run(str(images), None, options, str(tmp_path / "run")) as engine:
        assert engine.phase.data.on_disk
        interrupt_at(engine, 5)
        finish(engine)
    assert go_on(tmp_path / "run") == whole
    assert final_weights(tmp_path / "run") == final_weights(tmp_path / "whole")


def test_a_step_takes_what_was_read_for_it_as_if_it_were_read_then(images: Path, tmp_path: Path) -> None:
    """Each batch against one that is read at its step, without a thread."""
    with start_run(str(images), None, {}, str(tmp_path / "run")) as engine:
        order, data = [*engine.order.draw(0, 0)], engine.phase.data
        with engine.reader.reading(data, iter(order), 0) as examples:
            for step, (indices, read) in enumerate(examples):
                again = engine.reader.read(data, indices, step)
                for one, other in zip(*map(engine.reader.receive, (read, again)), strict=True):
                    assert one.keys() == other.keys() == {"image", "label"}
                    assert all(one[name].equal(other[name]) for name in one)


def test_a_file_that_is_damaged_meanwhile_is_reported_at_its_step(images: Path, tmp_path: Path) -> None:
    with start_run(str(images), None, {}, str(tmp_path / "run")) as engine:
        paths = engine.phase.data.on_disk["image"].paths  # type: ignore[attr-defined]
        order = [*engine.order.draw(0, 0)]
        damaged = Path(str(paths[int(order[4][0])]))
        damaged.write_bytes(b"no image")
        with pytest.raises(ModgraphError) as caught:
            finish(engine)
        assert engine.progress.step == 4
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "MG510"
    assert str(damaged) in diagnostic.text()
