"""A run goes on, and is measured, with the data that it began with: others are told, wherever they come from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from modgraph.cli import main
from modgraph.data import Arrays, Digits, ImageFolders, MinMaxDigits, Npz
from modgraph.data.declaration import Scale
from modgraph.data.fingerprint import Fingerprint
from modgraph.data.images import ImageFiles
from modgraph.diagnostics import ModgraphError
from modgraph.training.run import finish, start_run
from modgraph.training.stored_run import load_run
from tests.small_runs import begin, dotted, go_on, interrupt_at, reseal


def message_of(action: Callable[[], object]) -> str:
    with pytest.raises(ModgraphError) as caught:
        action()
    assert {each.code for each in caught.value.diagnostics} == {"MG620"}
    return str(caught.value)


def arrays_of(spec: Path) -> dict[str, Any]:
    return dict(np.load(spec.with_name("digits.npz")))


def change(spec: Path, **arrays: Any) -> None:
    np.savez(spec.with_name("digits.npz"), **{**arrays_of(spec), **arrays})


def interrupted(spec: Path, out: Path, step: int = 27, **overrides: Any) -> Path:
    """A run that was left in the midst of an epoch, with checkpoints."""
    options = {"train__checkpoint_every": 4, **overrides}
    with pytest.raises(KeyboardInterrupt), start_run(str(spec), None, dotted(options), str(out)) as engine:
        interrupt_at(engine, step)
        finish(engine)
    return out


def other_value(spec: Path) -> None:
    image = arrays_of(spec)["image"]
    image[3, 0, 4, 4] += 0.5
    change(spec, image=image)


def fewer(spec: Path) -> None:
    change(spec, **{name: array[:150] for name, array in arrays_of(spec).items()})


def more(spec: Path) -> None:
    change(spec, **{name: np.concatenate([array, array]) for name, array in arrays_of(spec).items()})


CHANGES = {
    "another value": (other_value, "has other values"),
    "fewer examples": (fewer, "train had 480 examples and has 120"),
    "more examples": (more, "train had 480 examples and has 960"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_run_does_not_go_on_with_other_data(spec: Path, tmp_path: Path, kind: str) -> None:
    make, words = CHANGES[kind]
    run, kept = interrupted(spec, tmp_path / "run"), spec.with_name("digits.npz").read_bytes()
    before = {path: path.read_bytes() for path in (run / "checkpoints").iterdir()}
    make(spec)
    message = message_of(lambda: go_on(run))
    assert words in message
    assert f"-s start.run={run}" in message
    assert {path: path.read_bytes() for path in (run / "checkpoints").iterdir()} == before
    spec.with_name("digits.npz").write_bytes(kept)
    assert go_on(run)["epochs"] == 4


def commands(run: Path, tmp_path: Path) -> dict[str, list[str]]:
    return {
        "eval": ["eval", str(run)],
        "eval --detail": ["eval", str(run), "--detail", "--json"],
        "trace": ["trace", str(run)],
        "trace of what was learnt from": ["trace", str(run), "--split", "train"],
        "export": ["export", str(run), "-o", str(tmp_path / "m.onnx")],
    }


ROUTED = """
model digits() {
  input  image: float[1, 8, 8]
  target label: class[10]
  pool   expert[2] = linear(8)
  router choose = linear(1)
  logits = image -> tokens -> expert by choose -> mean -> linear(10)
  output logits
  loss cross_entropy(logits, label)
}
"""


def test_commands_that_measure_refuse_other_data(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec.write_text(ROUTED)
    begin(spec, tmp_path / "run", train__epochs=1)
    plain = dict(arrays_of(spec))
    assert all(main(command) == 0 for command in commands(tmp_path / "run", tmp_path).values())
    change(spec, image=plain["image"][::-1])
    capsys.readouterr()
    for command in commands(tmp_path / "run", tmp_path).values():
        assert main(command) == 1
        message = capsys.readouterr().err
        assert "MG620" in message
        assert "-s data.test=" in message
    np.savez(tmp_path / "other.npz", **plain)
    for command in ("eval", "trace"):
        assert main([command, str(tmp_path / "run"), "-s", f"data.test={tmp_path / 'other.npz'}"]) == 0


def test_only_what_is_measured_is_compared(spec: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "test.npz", **{name: array[:50] for name, array in arrays_of(spec).items()})
    begin(spec, tmp_path / "run", train__epochs=1, data__test=str(tmp_path / "test.npz"))
    other_value(spec)
    assert main(["eval", str(tmp_path / "run")]) == 0
    assert "train has other values" in message_of(lambda: go_on(tmp_path / "run"))


def test_data_that_change_in_the_midst_of_a_training_are_not_measured(spec: Path, tmp_path: Path) -> None:
    with start_run(str(spec), None, {"train.epochs": 1}, str(tmp_path / "run")) as engine:
        change(spec, label=arrays_of(spec)["label"][::-1])
        message_of(lambda: finish(engine))
    assert json.loads((tmp_path / "run/run.json").read_text())["status"] == "started"


def test_a_split_that_is_gone_or_new_is_reported(spec: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    begin(spec, run, train__epochs=1)
    record = json.loads((run / "data.json").read_text())
    record["splits"]["extra"] = record["splits"].pop("test")
    (run / "data.json").write_text(json.dumps(record))
    reseal(run, "data.json")
    message = message_of(lambda: load_run(run).test_data())
    assert "extra had 120 examples and has 0" in message
    assert "test had 0 examples and has 120" in message


@pytest.mark.parametrize("content", ["{", "[]", '{"format": 1}', '{"format": 1, "splits": {"test": {}}}', "null"])
def test_a_damaged_fingerprint_is_reported(spec: Path, tmp_path: Path, content: str) -> None:
    begin(spec, tmp_path / "run", train__epochs=1)
    (tmp_path / "run/data.json").write_text(content)
    reseal(tmp_path / "run", "data.json")
    with pytest.raises(ModgraphError, match=r"data\.json is damaged"):
        load_run(tmp_path / "run").test_data()


def test_fingerprints_of_another_format_are_refused(spec: Path, tmp_path: Path) -> None:
    begin(spec, tmp_path / "run", train__epochs=1)
    (tmp_path / "run/data.json").write_text('{"format": 9, "splits": {}}')
    reseal(tmp_path / "run", "data.json")
    with pytest.raises(ModgraphError, match="has format 9, but this modgraph reads format 1: train the model again"):
        load_run(tmp_path / "run").test_data()


# ---------------------------------------------------------------- what a fingerprint sees


def print_of(**changes: Any) -> Fingerprint:
    values = {"x": np.arange(6, dtype=np.float32).reshape(3, 2), "y": np.array([1, 0, 1])}
    groups = {"domain": np.array(["a", "b", "b"])}
    groups |= {name: changes.pop(name) for name in ("domain", "other") if name in changes}
    return Fingerprint.compute(Npz(train="x.npz"), Arrays({**values, **changes}, groups))


def test_everything_of_a_split_counts_and_nothing_else() -> None:
    prints = [
        print_of(),
        print_of(x=np.arange(6, dtype=np.float32).reshape(3, 2) + np.float32(1e-6)),
        print_of(x=np.arange(6, dtype=np.float64).reshape(3, 2)),
        print_of(x=np.arange(6, dtype=np.float32).reshape(3, 2, 1)),
        print_of(z=np.zeros(3)),
        print_of(y=np.array([1, 1, 0])),
        print_of(domain=np.array(["a", "a", "b"])),
        print_of(other=np.array(["a", "b", "b"])),
    ]
    assert len(set(prints)) == len(prints)
    assert print_of(x=np.asfortranarray(np.arange(6, dtype=">f4").reshape(3, 2))) == prints[0]
    assert print_of(domain=np.array(["a", "b", "b", "long"])[:3]) == prints[0]


def test_computed_numbers_may_differ_in_their_last_bits_elsewhere(tmp_path: Path) -> None:
    x, y = np.ones((3, 2), np.float32), np.array([1, 0, 1])
    first, second = (Fingerprint.compute(Digits(), Arrays({"x": x * scale, "y": y})) for scale in (1, 1 + 1e-6))
    assert first == second
    assert first != Fingerprint.compute(Digits(), Arrays({"x": x, "y": 1 - y}))
    images, labels = tmp_path / "images", tmp_path / "labels"
    found = set()
    for content in (b"a", b"b"):
        images.write_bytes(content)
        labels.write_bytes(b"")
        data = MinMaxDigits(source="idx", images=str(images), labels=str(labels))
        found.add(Fingerprint.compute(data, Arrays({"x": x, "y": y})))
    assert len(found) == 2


def painted(root: Path) -> Path:
    for at, name in enumerate(("art/dog/0.png", "art/dog/1.png", "photo/dog/0.png")):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), (50 * at, 0, 0)).save(root / name)
    return root


def print_of_folders(root: Path) -> Fingerprint:
    paths = np.array(sorted(map(str, root.glob("*/*/*"))))
    files = ImageFiles((3, 4, 4), paths, Scale((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))
    return Fingerprint.compute(
        ImageFolders(root=str(root)), Arrays({"label": np.zeros(len(paths))}, {}, {"image": files})
    )


def test_images_are_recognised_by_name_and_content_wherever_they_lie(tmp_path: Path) -> None:
    first = print_of_folders(painted(tmp_path / "photos"))
    (tmp_path / "elsewhere").mkdir()
    shutil.move(tmp_path / "photos", tmp_path / "elsewhere/moved")
    root = tmp_path / "elsewhere/moved"
    assert print_of_folders(root) == first
    (root / "art/dog/1.png").write_bytes((root / "photo/dog/0.png").read_bytes())
    swapped = print_of_folders(root)
    (root / "art/dog/1.png").rename(root / "art/dog/2.png")
    assert len({first, swapped, print_of_folders(root)}) == 3
    (root / "art/dog/0.png").unlink()
    (root / "art/dog/0.png").symlink_to("nowhere")
    with pytest.raises(ModgraphError, match=r"0\.png.*no such file"):
        print_of_folders(root)
