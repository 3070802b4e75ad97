"""What modgraph did not write is not overwritten, unless it is told to."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import vl_convert
from modgraph_runtime import Bundle
from modgraph_runtime.arrays import write_arrays
from modgraph_runtime.command import main as runtime_main
from modgraph_runtime.integrity import is_foreign, is_of_modgraph
from modgraph_runtime.ports import BundleError

import modgraph
from modgraph.backends.onnx import Test as Split
from modgraph.cli import main
from modgraph.training.run import finish, start_run

SPEC = """
model small(experts=2) {
  input  image: float[1, 4, 4]
  target label: class[2]
  pool   expert[experts] = linear(3)
  router gate = agreement(1)
  logits = image -> patch_embed(2, 3) -> expert by gate -> mean -> linear(2)
  output logits
  loss cross_entropy(logits, label)
}
"""
PLAIN = """model small() { input image: float[1, 4, 4] target label: class[2]
  logits = image -> flatten -> linear(2) output logits loss cross_entropy(logits, label) }"""
IMAGES = np.random.default_rng(0).random((8, 1, 4, 4), np.float32)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, its spec and its data; and a bundle of a plainer one."""
    folder = tmp_path_factory.mktemp("small")
    np.savez(folder / "data.npz", image=IMAGES, label=np.arange(8) % 2)
    (folder / "small.mod").write_text(SPEC)
    (folder / "plain.mod").write_text(PLAIN)
    data = f"{{name: npz, train: {folder}/data.npz, test: {folder}/data.npz}}"
    (folder / "small.yaml").write_text(f"data: {data}\ntrain: {{epochs: 1, batch: 4}}\n")
    with start_run(str(folder / "small.mod"), None, {}, str(folder / "run")) as engine:
        finish(engine)
    modgraph.export(modgraph.loads(PLAIN).build(), folder / "small.onnx")
    return folder


def picture(format: str) -> bytes:
    """What somebody else draws with the same library."""
    text = {"type": "text", "text": "modgraph 0.1.0"}
    spec = {"data": {"values": [{}]}, "mark": text}
    match format:
        case "png":
            return vl_convert.vegalite_to_png(spec)
        case "pdf":
            return vl_convert.vegalite_to_pdf(spec)
    return vl_convert.vegalite_to_svg(spec).encode()


def archive() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, image=IMAGES)
    return buffer.getvalue()


def model() -> bytes:
    return onnx.ModelProto(producer_name="pytorch", producer_version="modgraph").SerializeToString()


FOREIGN: dict[str, bytes] = {
    ".json": b'{"name": "package", "format": 2, "modgraph": "0.1.0"}',
    ".onnx": model(),
    ".npz": archive(),
    ".png": picture("png"),
    ".svg": picture("svg"),
    ".pdf": picture("pdf"),
    ".py": b"# Written by modgraph 0.1.0, and then by me\n",
    ".html": b"<!DOCTYPE html><title>modgraph 0.1.0</title>",
    ".dot": b"digraph modgraph {}",
    ".mmd": b"flowchart TB",
}

COMMANDS: dict[str, tuple[Callable[[Path, str], list[str]], tuple[str, ...]]] = {
    "compile to a bundle": (lambda run, to: ["compile", f"{run}/plain.mod", "-o", f"{to}.onnx"], (".onnx", ".json")),
    "compile to a graph": (lambda run, to: ["compile", f"{run}/small.mod", "-o", f"{to}.json"], (".json",)),
    "compile to source": (lambda run, to: ["compile", f"{run}/small.mod", "-o", f"{to}.py"], (".py",)),
    "export": (lambda run, to: ["export", f"{run}/run", "-o", f"{to}.onnx"], (".json",)),
    "trace to arrays": (lambda run, to: ["trace", f"{run}/run", "-o", f"{to}.npz"], (".npz",)),
    "trace to JSON": (lambda run, to: ["trace", f"{run}/run", "-o", f"{to}.json"], (".json",)),
    "trace to PNG": (lambda run, to: ["trace", f"{run}/run", "-o", f"{to}.png"], (".png",)),
    "trace to SVG": (lambda run, to: ["trace", f"{run}/run", "-o", f"{to}.svg"], (".svg",)),
    "trace to PDF": (lambda run, to: ["trace", f"{run}/run", "-o", f"{to}.pdf"], (".pdf",)),
    "visualize as a page": (lambda run, to: ["visualize", f"{run}/small.mod", "-o", f"{to}.html"], (".html",)),
    "visualize as SVG": (lambda run, to: ["visualize", f"{run}/small.mod", "-o", f"{to}.svg"], (".svg",)),
    "visualize for graphviz": (lambda run, to: ["visualize", f"{run}/small.mod", "-o", f"{to}.dot"], (".dot",)),
    "visualize for Mermaid": (lambda run, to: ["visualize", f"{run}/small.mod", "-o", f"{to}.mmd"], (".mmd",)),
    "trace to a page": (lambda run, to: ["trace", f"{run}/run", "--html", f"{to}.html"], (".html",)),
    "run": (
        lambda run, to: ["run", f"{run}/small.onnx", "--input", f"{run}/data.npz", "--output", f"{to}.npz"],
        (".npz",),
    ),
}


@pytest.mark.some(3)
@pytest.mark.usefixtures("trace_once")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_not_ours_stays_unless_forced_and_one_that_is_goes(
    command: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, suffixes = COMMANDS[command]
    arguments = make(run, str(tmp_path / "package"))
    paths = [tmp_path / f"package{suffix}" for suffix in suffixes]
    for path in paths:
        path.write_bytes(FOREIGN[path.suffix])
    assert main(arguments) == 1
    errors = capsys.readouterr().err
    assert errors.count("MG121") == len(paths)
    assert all(f'"{path}" exists, and modgraph did not write it' in errors for path in paths)
    assert "--force" in errors
    assert all(path.read_bytes() == FOREIGN[path.suffix] for path in paths)
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    assert main([*arguments, "--force"]) == 0
    assert all(is_of_modgraph(path) for path in paths)
    before = [path.read_bytes() for path in paths]
    assert main(arguments) == 0
    assert [path.read_bytes() for path in paths] == before


def test_the_runtime_by_itself_keeps_it_too(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "y.npz"
    path.write_bytes(FOREIGN[".npz"])
    arguments = [f"{run}/small.onnx", "--input", f"{run}/data.npz", "--output", str(path)]
    assert runtime_main(arguments) == 1
    assert "exists, and modgraph did not write it" in capsys.readouterr().err
    assert path.read_bytes() == FOREIGN[".npz"]
    assert runtime_main([*arguments, "--force"]) == 0
    assert runtime_main(arguments) == 0


def test_neither_takes_a_manifest_the_place_of_a_graph_nor_a_graph_that_of_a_manifest(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bundle would not open any more, and a run would have lost its graph."""
    manifest, graph = (run / "small.json").read_bytes(), (run / "run/ir.json").read_bytes()
    assert main(["compile", f"{run}/small.mod", "-o", f"{run}/small.json"]) == 1
    assert main(["compile", f"{run}/small.mod", "-o", f"{run}/run/ir.onnx"]) == 1
    assert capsys.readouterr().err.count("MG121") == 2
    assert ((run / "small.json").read_bytes(), (run / "run/ir.json").read_bytes()) == (manifest, graph)


def test_an_empty_file_may_be_overwritten(run: Path, tmp_path: Path) -> None:
    (tmp_path / "graph.json").touch()
    assert main(["compile", f"{run}/small.mod", "-o", f"{tmp_path}/graph.json"]) == 0
    assert is_of_modgraph(tmp_path / "graph.json")


@pytest.mark.usefixtures("trace_once")
@pytest.mark.parametrize("suffix", [".onnx", ".json"])
def test_a_file_that_comes_during_the_work_stays(suffix: str, tmp_path: Path) -> None:
    """Whoever has made it in the meantime has not been asked either."""
    path = (tmp_path / "m.onnx").with_suffix(suffix)

    def measured(outputs: Any) -> dict[str, float]:
        path.write_bytes(FOREIGN[suffix])
        return {}

    with pytest.raises(modgraph.ModgraphError, match="MG121"):
        modgraph.export(
            modgraph.loads(PLAIN).build(),
            tmp_path / "m.onnx",
            int8=True,
            tests={"test": Split({"image": IMAGES}, measured)},
        )
    assert path.read_bytes() == FOREIGN[suffix]
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_arrays_that_come_during_the_work_stay(tmp_path: Path) -> None:
    class Slow(dict[str, Any]):
        def items(self) -> Any:
            (tmp_path / "y.npz").write_bytes(FOREIGN[".npz"])
            return super().items()

    with pytest.raises(BundleError, match="overwrite it with --force"):
        write_arrays(str(tmp_path / "y.npz"), Slow(y=IMAGES))
    assert (tmp_path / "y.npz").read_bytes() == FOREIGN[".npz"]


# ---------------------------------------------------------------- what is ours

NOT_OURS: dict[str, tuple[str, bytes]] = {
    **{suffix: (suffix, content) for suffix, content in FOREIGN.items()},
    "JSON of a run": (".json", json.dumps({"format": 1, "modgraph": "0.1.0", "status": "finished"}).encode()),
    "a list": (".json", b'["format", "modgraph", "ir"]'),
    "a graph cut off": (".json", b'{"format": 1, "nodes": [], "parameters": {}'),
    "nested": (".json", b"[" * 100_000),
    "large": (".json", b'{"format": 1, "nodes": [], "parameters": {}}' + b" " * (1 << 26)),
    "text": (".onnx", b"hello"),
    "a zip file": (".npz", b"PK"),
    "another suffix": (".txt", FOREIGN[".json"]),
}


@pytest.mark.parametrize("case", NOT_OURS)
def test_what_only_resembles_ours_is_not_ours(case: str, tmp_path: Path) -> None:
    suffix, content = NOT_OURS[case]
    path = tmp_path / f"file{suffix}"
    path.write_bytes(content)
    assert is_foreign(path)


def test_suffixes_in_capitals_are_the_same(tmp_path: Path) -> None:
    write_arrays(str(tmp_path / "Y.NPZ"), {"y": IMAGES})
    assert not is_foreign(tmp_path / "Y.NPZ")
    with zipfile.ZipFile(tmp_path / "Y.NPZ") as written:
        assert written.comment == b"modgraph"


def test_what_is_no_file_is_reported_as_before(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (tmp_path / "nowhere/graph.json", tmp_path / "folder.json"):
        (tmp_path / "folder.json").mkdir(exist_ok=True)
        assert main(["compile", f"{run}/small.mod", "-o", str(path)]) == 1
        assert "MG113" in capsys.readouterr().err


# ---------------------------------------------------------------- between the two files of a bundle


def test_an_export_that_ends_between_its_two_files_leaves_a_bundle_that_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a kill there would: one of the two is new, and the manifest of another bundle would be refused."""
    path = tmp_path / "m.onnx"
    modgraph.export(modgraph.loads(PLAIN).build(seed=1), path)
    for done in (0, 1):
        before = path.read_bytes()
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(Path, "replace", only(done))
            modgraph.export(modgraph.loads(PLAIN).build(seed=2), path)
        assert (path.read_bytes() != before) == (done == 1)
        assert Bundle(path).manifest["model"] == "small"


def only(count: int) -> Callable[[Path, Path], Path]:
    """So many files are renamed."""
    plain, left = Path.replace, iter(range(count))

    def replace(self: Path, target: Path) -> Path:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return plain(self, target)

    return replace
