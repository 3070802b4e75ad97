"""What a session shows of the public names, and of the values that they give."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import modgraph_runtime
import pytest
from modgraph_runtime import Bundle

import modgraph
from modgraph.differences import differences
from modgraph.store.architecture import read_architecture
from modgraph.trace.trace_run import trace_run
from tests.small_runs import begin

SPEC = """
model m(experts=2, names=["a", "b"]) {
  input  x: float[3, 4]
  target label: class[2]
  pool   p[experts] = linear(4)
  router r = agreement(2)
  logits = x -> p by r -> mean -> linear(2)
  output logits
  loss cross_entropy(logits, label)
}
"""
LONGEST = 480  # letters of what a session shows of a value


@pytest.mark.parametrize("module", [modgraph, modgraph_runtime])
def test_dir_lists_every_public_name(module: ModuleType) -> None:
    assert set(module.__all__) - set(dir(module)) == set()
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_completion_knows_names_before_they_are_imported() -> None:
    code = """
import sys, modgraph, modgraph_runtime
from rlcompleter import Completer
assert {"load", "Program", "export"} <= set(dir(modgraph)) and "torch" not in sys.modules
completer = Completer({"modgraph": modgraph, "modgraph_runtime": modgraph_runtime})
print(completer.complete("modgraph.loa", 0), completer.complete("modgraph_runtime.Bu", 0))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("modgraph.load( modgraph_runtime.Bundle(\n", "")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import numpy as np

    folder = tmp_path_factory.mktemp("run")
    (folder / "m.mod").write_text(SPEC)
    np.savez(folder / "data.npz", x=np.ones((8, 3, 4), np.float32), label=np.arange(8) % 2)
    paths = f"train: {folder}/data.npz, test: {folder}/data.npz"
    (folder / "m.yaml").write_text(f"data: {{name: npz, {paths}}}\ntrain: {{epochs: 1, batch: 4}}\n")
    begin(folder / "m.mod", folder / "run")
    return folder / "run"


def test_a_program_and_its_graph_show_name_parameters_and_place(run: Path) -> None:
    spec = run.parent / "m.mod"
    program = modgraph.load(spec, experts=3)
    assert repr(program) == f'<Program m(experts=3, names=["a", "b"]) from {spec}>'
    assert repr(modgraph.loads(SPEC)) == '<Program m(experts=2, names=["a", "b"]) from <string>>'
    assert repr(program.ir) == f'<Graph m(experts=3, names=["a", "b"]): {len(list(program.ir))} nodes>'
    assert '\nmodel m(experts=3, names=["a", "b"]) {\n' in str(program.ir), "as a text it is the whole graph"


def test_a_cost_prints_only_its_counts() -> None:
    cost = modgraph.loads(SPEC).cost()
    counts = ", ".join(f"{name}={count}" for name, count in cost.counts.items())
    assert repr(cost) == f"Cost({counts})"


def test_a_run_and_a_bundle_show_where_they_are(run: Path, tmp_path: Path) -> None:
    assert repr(modgraph.load_run(run)) == f"<Run in {run}>"
    assert repr(modgraph.load_run(run, test="x.npz")) == f"<Run in {run}, data.test='x.npz'>"
    report = modgraph.export(modgraph.load_run(run).model(), tmp_path / "m.onnx")
    bundle = Bundle(tmp_path / "m.onnx")
    assert repr(bundle) == f"<Bundle {tmp_path / 'm.onnx'}: x float[3, 4] → logits float[2]>"
    assert "agrees with torch" in str(report)


def test_values_are_printed_shortly(run: Path) -> None:
    """No address, no array, and no more than a few lines."""
    loaded, wider = modgraph.load_run(run), read_architecture(run.parent / "m.mod", {"experts": 3})
    found = differences(read_architecture(run), wider)
    samples = {
        "Checkpoint": loaded.checkpoint(),
        "Arrays": loaded.splits()["test"],
        "Trace": trace_run(loaded),
        "Diff": found.diff,
        "Comparison": found,
        "Architecture": wider,
        "Memory": modgraph.loads(SPEC).memory(),
    }
    paths = {name: repr(value).replace(str(run.parent), "") for name, value in samples.items()}
    assert {name: text for name, text in paths.items() if " at 0x" in text or "array(" in text} == {}
    long = {name: len(text) for name, text in paths.items() if len(text) > LONGEST}
    assert long == {}
    assert repr(samples["Arrays"]) == "<Arrays of 8 examples: x [3, 4], label []>"
    assert repr(found.diff) == f"<Diff: {len(found.diff.changed)} changed>"
