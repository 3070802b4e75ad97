"""What a run is laid out with can be read again, or nothing is laid out."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from modgraph.backends.torch import build
from modgraph.ir import Graph, NotReadBack, to_verified_json
from modgraph.program import loads
from modgraph.store.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from modgraph.store.run_directory import STARTED, RunDirectory
from modgraph.syntax.limits import SOURCE_BYTES
from modgraph.training.stored_run import load_run
from tests.small_runs import begin, lay_out_run

SPEC = "model m(p=[1]) { input x: float[6] y = x -> linear(3) output y }"


def test_a_graph_that_cannot_be_read_again_is_a_fault_before_any_file_is_written(tmp_path: Path) -> None:
    with pytest.raises(NotReadBack, match="is no name"):
        to_verified_json(Graph("two words"))
    with pytest.raises(NotReadBack):
        RunDirectory(tmp_path).create("", {}, Graph("two words"), "", {})
    assert not any(tmp_path.iterdir()), "something was written"


def test_a_graph_larger_than_any_spec_opens_again(tmp_path: Path) -> None:
    graph, run = loads(SPEC, p=[*range(300_000)]).ir, RunDirectory(tmp_path)
    run.create(SPEC, {}, graph, "", {})
    run.mark(STARTED)
    assert run.ir.stat().st_size > SOURCE_BYTES, "it is no larger than a spec may be"
    assert run.read_graph() == graph


def test_a_run_whose_parameters_are_lists_of_lists_and_ranges_opens_again(tmp_path: Path) -> None:
    spec = lay_out_run(tmp_path)
    spec.write_text(spec.read_text().replace("hidden=16", 'hidden=16, sizes=[[1]], taken=0..4, called="a"'))
    given = {"sizes": ((1, 2), (3,)), "taken": range(2), "called": "1e5"}
    begin(spec, tmp_path / "run", train__epochs=1, train__steps_per_epoch=1, **given)
    kept = load_run(tmp_path / "run").graph.parameters
    assert kept == {"hidden": 16, "sizes": ((1, 2), (3,)), "taken": range(2), "called": "1e5"}


def test_modules_whose_results_differ_only_in_names_of_axes_read_back() -> None:
    text = """model m() { input x: float[5, 6] pool p[4] = linear(3) s = x -> linear(p)
      pool q = [linear(3) -> gelu -> linear(4), identity, linear(4)] y = s -> q output y }"""
    to_verified_json(loads(text).ir)


def test_a_checkpoint_of_very_many_modules_has_a_tensor_for_all_and_reads_as_one_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modgraph.store.rows.MOST_NAMES", 8)
    graph = loads("model m() { input x: float[4] pool p[5] = linear(3) y = x -> p -> mean output y }").ir
    weights = build(graph).state_dict() | {"q.0.w": torch.zeros(2), "q.1.w": torch.zeros(3), "layer.7.w": torch.ones(1)}
    optimizer = {f"p.{j}.linear.bias": {"step": torch.tensor(float(j)), "momentum": torch.ones(3)} for j in range(5)}
    checkpoint = Checkpoint(1, 2, weights, optimizer, graph=graph, origin=graph.hash())
    path = write_checkpoint(tmp_path, checkpoint)
    assert set(load_file(path)) == {
        *("weight.p.*.linear.weight", "weight.p.*.linear.bias", "weight.q.0.w", "weight.q.1.w", "weight.layer.7.w"),
        *("optimizer.step.p.*.linear.bias", "optimizer.momentum.p.*.linear.bias"),
    }
    found = read_checkpoint(path)
    torch.testing.assert_close((found.weights, found.optimizer), (weights, optimizer), rtol=0, atol=0)
