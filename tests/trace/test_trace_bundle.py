"""A bundle with its routing is traced like its run: the same choices, the same numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import modgraph
from modgraph.cli import main
from modgraph.store.run_directory import RunDirectory
from modgraph.store.stored_trace import read_trace
from modgraph.trace.summary import as_json
from modgraph.trace.trace import Trace
from modgraph.trace.trace_bundle import TraceableBundle, trace_bundle
from modgraph.trace.trace_run import trace_run
from modgraph.training.stored_run import load_run
from tests.trace.test_trace import SPEC, TRANSFORMER, trained
from tests.trace.test_trace_words import language

SILENT = """
model silent() {
  input  x: float[8]
  pool   p[2] = linear(4)
  router r = linear(k=1)
  y = x -> p by r
  output y
}
"""
RUNS = ("transformer", "agreement", "language")
LIKE = 1e-5
OF_A_RUN = ("graph", "epoch", "step")  # a bundle's graph is that for inference


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs, each with a bundle that tells its routing beside it; and a bundle that does not tell it."""
    home = tmp_path_factory.mktemp("bundles")
    for name in RUNS:
        (home / name).mkdir()
    trained(home / "transformer", TRANSFORMER)
    trained(home / "agreement", SPEC, iterations=2)
    language(home / "language", "categorical(2)", "em")
    for name in RUNS:
        assert main(["export", f"{home}/{name}/run", "-o", f"{home}/{name}.onnx", "--routing"]) == 0
    modgraph.export(modgraph.loads(SILENT).build(), home / "silent.onnx")
    return home


def both(home: Path, name: str, split: str | None = None) -> tuple[Trace, Trace]:
    """The traces of a run, and of its bundle by the run's recipe."""
    bundle = TraceableBundle.read(f"{home}/{name}.onnx")
    splits = bundle.splits_of_recipe(f"{home}/{name}/run/recipe.yaml", {})
    return trace_run(load_run(home / name / "run"), split), trace_bundle(bundle, splits, split)


@pytest.mark.parametrize("name", RUNS)
def test_a_bundle_records_what_its_run_does(bundles: Path, name: str) -> None:
    run, bundle = both(bundles, name)
    assert [route.name for route in bundle.routes] == [route.name for route in run.routes]
    for expected, found in zip(run.routes, bundle.routes, strict=True):
        assert expected.records.keys() == found.records.keys()
        for record, values in found.records.items():
            np.testing.assert_allclose(values[-1], expected.records[record][-1], atol=LIKE)
        if found.has_choice:
            np.testing.assert_array_equal(found.choice[-1], expected.choice[-1])


@pytest.mark.some(1)
@pytest.mark.parametrize("name", RUNS)
def test_the_summary_of_a_bundle_is_that_of_its_run(bundles: Path, name: str) -> None:
    of_run, of_bundle = (as_json(each) for each in both(bundles, name))
    for result in (of_run, of_bundle):
        for key in OF_A_RUN:
            del result[key]
        for route in result["routes"].values():
            del route["training"], route["controller"], route["router"]
            route["rounds"] = route["rounds"][-1:]
    assert_close(of_bundle, of_run)


def assert_close(found: Any, expected: Any) -> None:
    """The same, numbers as nearly as two machines compute them."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert_close(found[key], value)
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for each in zip(found, expected, strict=True):
            assert_close(*each)
    else:
        assert found == (pytest.approx(expected, rel=1e-5, abs=LIKE) if isinstance(expected, float) else expected)


@pytest.mark.slow
def test_the_command_says_the_same_of_both(bundles: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["trace", f"{bundles}/transformer/run"]) == 0
    of_run = capsys.readouterr().out
    data = ["--recipe", f"{bundles}/transformer/run/recipe.yaml"]
    assert main(["trace", f"{bundles}/transformer.onnx", *data]) == 0
    assert numbers_of(capsys.readouterr().out) == numbers_of(of_run)
    assert main(["trace", f"{bundles}/transformer.onnx", *data, "--split", "train", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["split"] == "train"
    assert read_trace(RunDirectory(bundles / "language" / "run")) is None


def numbers_of(table: str) -> list[str]:
    """A table without what routers are called: those for inference make no noise."""
    return [line for line in table.splitlines() if " by " not in line]


@pytest.mark.slow
def test_arrays_from_a_file_do_as_well(bundles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arrays = dict(np.load(bundles / "transformer" / "data.npz"))
    label = arrays.pop("label")
    np.savez(tmp_path / "x.npz", **arrays)
    np.savez(tmp_path / "labelled.npz", **arrays, label=label)
    found = {}
    capsys.readouterr()
    for name in ("x", "labelled"):
        options = ["--input", f"{tmp_path}/{name}.npz", "--json"]
        assert main(["trace", f"{bundles}/transformer.onnx", *options, "--html", f"{tmp_path}/{name}.html"]) == 0
        found[name] = json.loads(capsys.readouterr().out)
        assert found[name]["split"] == f"{name}.npz"
    routes = {name: result["routes"]["blocks.0.expert"] for name, result in found.items()}
    assert routes["x"]["load"] == routes["labelled"]["load"]
    assert "blocks.0.expert" in (tmp_path / "x.html").read_text()
    assert (list(routes["x"]["by"]), list(routes["labelled"]["by"])) == ([], ["class"])


MISTAKES = {
    "no routing": ("silent.onnx", ["--recipe", "RUN/recipe.yaml"], "MG837"),
    "no data": ("transformer.onnx", [], "MG838"),
    "data of a run": ("transformer/run", ["--recipe", "RUN/recipe.yaml"], "MG839"),
    "arrays of a run": ("transformer/run", ["--input", "RUN/../data.npz"], "MG839"),
    "both": ("transformer.onnx", ["--input", "RUN/../data.npz", "--recipe", "RUN/recipe.yaml"], "MG839"),
    "settings of a file": ("transformer.onnx", ["--input", "RUN/../data.npz", "-s", "data.seed=1"], "MG839"),
    "split": ("transformer.onnx", ["--recipe", "RUN/recipe.yaml", "--split", "tests"], 'did you mean "test"'),
    "route": ("transformer.onnx", ["--recipe", "RUN/recipe.yaml", "--route", "x"], "MG803"),
    "no recipe": ("transformer.onnx", ["--recipe", "RUN/none.yaml"], "MG5"),
    "other arrays": ("agreement.onnx", ["--input", "RUN/../data.npz"], "error[MG"),
    "history": ("transformer.onnx", ["--recipe", "RUN/recipe.yaml", "--view", "training", "-o", "OUT"], "MG809"),
    "no file": ("none.onnx", ["--recipe", "RUN/recipe.yaml"], "MG706"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_reported(bundles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], mistake: str) -> None:
    path, options, words = MISTAKES[mistake]
    run = f"{bundles}/transformer/run"
    options = [each.replace("RUN", run).replace("OUT", f"{tmp_path}/x.png") for each in options]
    assert main(["trace", f"{bundles}/{path}", *options]) == 1
    result = capsys.readouterr()
    assert words in result.err
    assert result.out == ""
    assert list(tmp_path.iterdir()) == []
