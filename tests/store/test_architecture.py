"""A spec, a run and a bundle, read in the same way."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import modgraph
from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.store.architecture import Kind, read_architecture
from tests.small_runs import begin, lay_out_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("opened")
    begin(lay_out_run(folder), folder / "run", train__epochs=1, model__hidden=4)
    modgraph.export(modgraph.load_run(folder / "run").model(), folder / "m.onnx")
    return folder / "run"


def test_a_spec_a_run_and_a_bundle_hold_one_architecture(run: Path) -> None:
    spec = read_architecture(run.with_name("digits.mod"), {"hidden": 4})
    of_run, bundle = read_architecture(run), read_architecture(run.with_name("m.onnx"))
    assert [each.kind for each in (spec, of_run, bundle)] == [Kind.SPEC, Kind.RUN, Kind.BUNDLE]
    assert of_run.graph == spec.graph
    assert bundle.graph.outputs.keys() == spec.graph.outputs.keys()
    assert bundle.manifest["model"] == "digits"
    assert bundle.source is None


def test_cost_counts_a_bundle_as_the_run_it_was_made_of(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = []
    for path in (run, run.with_name("m.onnx")):
        assert main(["cost", str(path), "--json", "--memory"]) == 0
        counts.append(json.loads(capsys.readouterr().out))
    of_run, of_bundle = counts
    assert [of_bundle[name] for name in ("parameters", "macs")] == [of_run[name] for name in ("parameters", "macs")]
    assert of_run["memory"]["batch"] == 50
    assert of_bundle["memory"]["batch"] == 1


def test_nodes_of_a_run_know_their_places_in_its_spec(run: Path) -> None:
    found = read_architecture(run)
    assert found.source is not None
    for node in found.graph:
        assert node.span is not None
        assert node.span.source.text == found.source.text


def test_nodes_of_a_run_know_their_places_in_files_that_are_gone(tmp_path: Path) -> None:
    spec, lib = lay_out_run(tmp_path), tmp_path / "lib"
    lib.mkdir()
    (lib / "inner.mod").write_text("block widen(d) { input x: float[n] y = x -> linear(d) output y }")
    (lib / "outer.mod").write_text(
        'import widen from "inner.mod" block widened(d) { input x: float[n] y = x -> widen(d) output y }'
    )
    text = spec.read_text().replace("-> relu", "-> widened(4) -> relu")
    spec.write_text(f'import widened from "lib/outer.mod"\n{text}')
    begin(spec, tmp_path / "run", train__epochs=1, model__hidden=4)
    shutil.rmtree(lib)
    spec.unlink()
    found = read_architecture(tmp_path / "run")
    places = {node.span.source.name for node in found.graph if node.span is not None}
    assert all(node.span is not None for node in found.graph)
    assert places == {str(tmp_path / "run" / "spec.mod"), "lib/inner.mod"}


def test_the_spec_of_a_run_is_read_with_what_it_imports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where an import leaves the folder of the spec, or names a file from the root."""
    spec, lib = lay_out_run(tmp_path), tmp_path / "lib"
    lib.mkdir()
    (lib / "inner.mod").write_text("block widen(d) { input x: float[n] y = x -> linear(d) output y }")
    (tmp_path / "specs").mkdir()
    moved = spec.rename(tmp_path / "specs" / spec.name)
    spec.with_suffix(".yaml").rename(moved.with_suffix(".yaml"))
    text = moved.read_text().replace("-> relu", "-> widened(4) -> relu")
    (tmp_path / "specs" / "outer.mod").write_text(
        f'import widen from "{lib}/inner.mod" block widened(d) {{ input x: float[n] y = x -> widen(d) output y }}'
    )
    moved.write_text(f'import widened from "outer.mod"\nimport widen from "../lib/inner.mod"\n{text}')
    begin(moved, tmp_path / "run", train__epochs=1)
    expected = modgraph.load(moved).ir
    shutil.rmtree(lib)
    shutil.rmtree(moved.parent)
    (away := tmp_path / "a" / "b").mkdir(parents=True)
    run = (tmp_path / "run").rename(away / "run")
    for command in (["check"], ["show"], ["cost"], ["diff", str(run)]):
        assert main([*command, str(run / "spec.mod")]) == 0, capsys.readouterr().err
    assert modgraph.load(run / "spec.mod").ir == expected, "the run keeps the network that was trained"
    begin(run / "spec.mod", tmp_path / "again", train__epochs=1)  # by the recipe that the run keeps
    assert modgraph.load(tmp_path / "again" / "spec.mod").ir == expected, "and so does a run of its spec"
    (run / "imports.json").write_text("[1]")
    capsys.readouterr()
    assert main(["check", str(run / "spec.mod")]) == 1
    assert "it is damaged" in capsys.readouterr().err


def test_only_specs_take_parameters(run: Path) -> None:
    for path in (run, run.with_name("m.onnx")):
        with pytest.raises(ModgraphError, match="keeps its parameters"):
            read_architecture(path, {"hidden": 3})


def test_a_file_that_is_no_bundle_is_reported(run: Path, tmp_path: Path) -> None:
    content = run.with_name("m.onnx").read_bytes()
    for name, damaged in {"none": b"", "text": b"model", "cut": content[:-1], "flipped": b"\0" + content[1:]}.items():
        (tmp_path / f"{name}.onnx").write_bytes(damaged)
        with pytest.raises(ModgraphError, match="cannot read bundle"):
            read_architecture(tmp_path / f"{name}.onnx")
    with pytest.raises(ModgraphError, match="cannot read bundle"):
        read_architecture(tmp_path / "missing.onnx")


def test_nothing_heavy_is_imported(run: Path) -> None:
    code = f"""import sys
from modgraph.store.architecture import read_architecture
read_architecture({str(run)!r}), read_architecture({str(run.with_name("digits.mod"))!r})
heavy = {{"torch", "onnx", "onnxruntime", "numpy"}} & set(sys.modules)
assert not heavy, heavy"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_bundle_without_the_hash_of_its_weights_is_refused(run: Path, tmp_path: Path) -> None:
    from tests.runtime.test_runtime import tampered

    whole = run.with_name("m.onnx")
    changed = tampered(whole, tmp_path / "changed.onnx", lambda manifest: manifest.pop("weights"))
    with pytest.raises(ModgraphError, match="no hash of the weights"):
        read_architecture(changed)
    assert main(["diff", str(changed), str(whole)]) == 1, "it is reported as a fault of modgraph"
