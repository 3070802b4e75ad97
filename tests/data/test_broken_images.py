"""An image that cannot be read is reported before the first step; one that breaks later costs no training."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from modgraph.data import ClassFolders
from modgraph.diagnostics import ModgraphError
from modgraph.training.run import finish, start_run
from modgraph.training.stored_run import load_run
from tests.small_runs import begin, final_weights, go_on

SPEC = """
model net() {
  input  image: float[3, 8, 8]
  target label: class[2]
  logits = image -> flatten -> linear(2)
  output logits
  loss cross_entropy(logits, label)
}
"""
BROKEN = b"\x89PNG\r\n\x1a\n" + bytes(40)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A spec next to its recipe and its images: ten for training, four for the test."""
    rng = np.random.default_rng(0)
    for split, count in (("train", 5), ("test", 2)):
        for kind in ("cat", "dog"):
            (tmp_path / split / kind).mkdir(parents=True)
            for at in range(count):
                Image.fromarray(rng.integers(0, 255, (8, 8, 3), np.uint8)).save(tmp_path / split / kind / f"{at}.png")
    (tmp_path / "net.mod").write_text(SPEC)
    data = f"{{name: class_folders, train: {tmp_path}/train, test: {tmp_path}/test}}"
    (tmp_path / "net.yaml").write_text(f"data: {data}\ntrain: {{epochs: 2, batch: 4}}\n")
    return tmp_path / "net.mod"


def codes_and_text(action: Callable[[], object]) -> tuple[set[str], str]:
    with pytest.raises(ModgraphError) as caught:
        action()
    return {each.code for each in caught.value.diagnostics}, str(caught.value)


def test_every_broken_image_of_any_split_is_reported_before_the_first_step(images: Path, tmp_path: Path) -> None:
    broken = ("test/dog/1.png", "test/cat/0.png", "train/cat/3.png")
    whole = {name: (tmp_path / name).read_bytes() for name in broken}
    for name in broken:
        (tmp_path / name).write_bytes(BROKEN)
    codes, text = codes_and_text(lambda: begin(images, tmp_path / "run"))
    assert codes == {"MG510"}
    assert all(name in text for name in broken), text
    assert not (tmp_path / "run/run.json").exists(), "the training has begun"
    for name, content in whole.items():
        (tmp_path / name).write_bytes(content)
    assert begin(images, tmp_path / "run")["steps"] == 6, "the folder of the run cannot be used again"


def test_only_the_first_of_many_broken_images_are_listed(images: Path, tmp_path: Path) -> None:
    for at in range(30):
        (tmp_path / f"test/cat/broken{at}.png").write_bytes(BROKEN)
    with pytest.raises(ModgraphError) as caught:
        begin(images, tmp_path / "run")
    assert len(caught.value.diagnostics) == 20, "all are listed, or too few"


@pytest.mark.parametrize("way", ["another image", "removed"])
def test_a_run_resumes_once_an_image_that_broke_during_the_training_is_repaired(
    images: Path, tmp_path: Path, way: str
) -> None:
    run, image = tmp_path / "run", tmp_path / "test/dog/1.png"
    with start_run(str(images), None, {}, str(run)) as engine:
        image.write_bytes(BROKEN)
        codes, text = codes_and_text(lambda: finish(engine))
    assert codes == {"MG510"}, text
    assert "test/dog/1.png" in text
    assert json.loads((run / "run.json").read_text())["status"] == "started", "the run counts as finished"
    codes, text = codes_and_text(lambda: go_on(run))
    assert codes == {"MG510"}, f"the image is still broken: {text}"
    weights = final_weights(run)
    if way == "removed":
        image.unlink()
    else:
        Image.new("RGB", (8, 8), "red").save(image)
    found = go_on(run)
    assert found["test.accuracy"] in (0, 0.25, 0.5, 0.75, 1, pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert final_weights(run) == weights, "the training began anew"
    assert json.loads((run / "run.json").read_text())["status"] == "finished"
    assert load_run(run).fingerprints["test"].examples == (3 if way == "removed" else 4)
    assert go_on(run) == found, "a finished run does not resume with its own data"
    Image.new("RGB", (8, 8), "blue").save(tmp_path / "test/dog/0.png")
    codes, text = codes_and_text(lambda: load_run(run).test_data())
    assert codes == {"MG620"}, f"after its test the run may be measured on other images: {text}"


def test_a_run_that_began_with_a_broken_image_resumes_once_it_is_repaired(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As runs of earlier versions did, which read the images of a test at its time."""
    run, image = tmp_path / "run", tmp_path / "test/dog/1.png"
    image.write_bytes(BROKEN)
    with monkeypatch.context() as patch:
        patch.setattr("modgraph.training.run.refuse_unreadable", lambda _: None)
        assert codes_and_text(lambda: begin(images, run))[0] == {"MG510"}
    assert codes_and_text(lambda: go_on(run))[0] == {"MG510"}
    Image.new("RGB", (8, 8), "red").save(image)
    assert go_on(run)["steps"] == 6


def test_other_images_for_training_are_refused_even_where_a_test_broke(images: Path, tmp_path: Path) -> None:
    run, image = tmp_path / "run", tmp_path / "test/dog/1.png"
    with start_run(str(images), None, {}, str(run)) as engine:
        image.write_bytes(BROKEN)
        codes_and_text(lambda: finish(engine))
    Image.new("RGB", (8, 8), "red").save(image)
    Image.new("RGB", (8, 8), "red").save(tmp_path / "train/dog/1.png")
    codes, text = codes_and_text(lambda: go_on(run))
    assert codes == {"MG620"}
    assert "train has other values" in text
    assert "test" not in text.partition("train has")[2].splitlines()[0]


def test_images_are_checked_without_being_resized(images: Path, tmp_path: Path) -> None:
    """What a check accepts, a step can read: pixels of a size and a mode other than the input's."""
    Image.new("LA", (200, 3)).save(tmp_path / "train/cat/0.png")
    data = ClassFolders(train=str(tmp_path / "train"), test=str(tmp_path / "test"))
    import modgraph

    stored = data.splits(modgraph.load(images).ir)["train"].on_disk["image"]
    assert stored.find_unreadable() == []
    assert stored.read(slice(None)).shape == (10, 3, 8, 8)
