"""The state of a training: it goes on with another graph or another phase as with the same, bit for bit."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from torch import Tensor

import modgraph
from modgraph.backends.torch import build
from modgraph.cli import main
from modgraph.data import Arrays
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, grow
from modgraph.store.checkpoint import Checkpoint
from modgraph.training import run as runs
from modgraph.training.algorithms.algorithm import Curriculum, Facts, NextPhase, Phase, Training
from modgraph.training.engine import Engine
from modgraph.training.run import finish, resume_run, start_run
from modgraph.training.sections import Train
from modgraph.training.stored_run import load_run
from tests.small_runs import change_graph, final_weights, interrupt_at

SPEC = """
model small(modules=2) {
  input  x: float[4]
  target y: class[3]
  pool   p[modules] = modulated_linear(5)
  router r = agreement(2)
  z = x -> linear(6) -> p by r -> mean -> dropout(0.2) -> linear(3)
  output z
  loss cross_entropy(z, y)
  loss importance(r)
}
"""
RECIPE = """
data: {{name: npz, train: {folder}/data.npz}}
train: {{epochs: 3, batch: 8, algorithm: {algorithm}, checkpoint_every: 2, optimizer: {{name: adam, lr: 0.01}}}}
"""
Tensors = Mapping[str, Tensor]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return written(tmp_path, SPEC)


def written(folder: Path, text: str, algorithm: str = "backprop") -> Path:
    rng = np.random.default_rng(0)
    np.savez(folder / "data.npz", x=rng.standard_normal((50, 4)), y=rng.integers(0, 3, 50))
    (folder / "small.mod").write_text(text)
    (folder / "small.yaml").write_text(RECIPE.format(folder=folder, algorithm=algorithm))
    return folder / "small.mod"


def stop_before(engine: Engine, step: int) -> None:
    plain = engine._step
    interrupt_at(engine, step)
    with pytest.raises(KeyboardInterrupt):
        engine.run()
    engine._step = plain  # type: ignore[method-assign]


def copy_state(checkpoint: Checkpoint) -> tuple[dict[str, Tensor], dict[str, dict[str, Tensor]]]:
    """Weights and the state of the optimizer, as they are now."""
    weights = {name: each.clone() for name, each in checkpoint.weights.items()}
    optimizer = {name: {k: v.clone() for k, v in each.items()} for name, each in checkpoint.optimizer.items()}
    return weights, optimizer


def equal(one: Tensors, other: Tensors) -> bool:
    return one.keys() == other.keys() and all(one[name].equal(other[name]) for name in one)


def test_a_pool_grows_in_mid_training_and_what_was_there_goes_on_as_it_was(small: Path, tmp_path: Path) -> None:
    with start_run(str(small), None, {}, str(tmp_path / "run")) as engine:
        stop_before(engine, 7)
        weights, optimizer = copy_state(engine.checkpoint())
        grown = grow(engine.state.graph, "p", 2)
        change_graph(engine, grown)
        now = engine.checkpoint()
        fresh = build(grown, seed=0).state_dict()
        new = now.weights.keys() - weights.keys()
        assert new == {f"p.{j}.modulated_linear.code" for j in (2, 3)}
        assert equal({name: now.weights[name] for name in weights}, weights)
        assert all(now.weights[name].equal(fresh[name]) for name in new)
        assert now.optimizer.keys() == optimizer.keys()
        assert all(equal(now.optimizer[name], optimizer[name]) for name in optimizer)
        finish(engine)
        assert engine.progress.step == 15
    kept = load_run(tmp_path / "run")
    assert kept.graph == grown
    assert kept.began_with != grown
    steps = {name: each["step"].item() for name, each in kept.checkpoint().optimizer.items()}
    assert {steps[name] for name in new} == {8.0}
    assert {steps[name] for name in optimizer} == {15.0}


def test_a_run_that_grew_is_resumed_from_only_its_checkpoint(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, cut in (("whole", None), ("cut", 11)):
        with start_run(str(small), None, {}, str(tmp_path / name)) as engine:
            stop_before(engine, 7)
            change_graph(engine, grow(engine.state.graph, "p", 1))
            if cut is None:
                finish(engine)
            else:
                stop_before(engine, cut)
    assert main(["train", "--resume", str(tmp_path / "cut")]) == 0
    assert final_weights(tmp_path / "cut") == final_weights(tmp_path / "whole")
    capsys.readouterr()
    assert main(["cost", str(tmp_path / "cut"), "--json"]) == 0
    count = json.loads(capsys.readouterr().out)["parameters"]
    assert count == sum(each.numel() for each in load_run(tmp_path / "cut").checkpoint().weights.values())


def test_what_another_graph_lacks_is_left_and_the_rest_keeps_its_optimizer(small: Path, tmp_path: Path) -> None:
    with start_run(str(small), None, {}, str(tmp_path / "run")) as engine:
        stop_before(engine, 6)
        weights, optimizer = copy_state(engine.checkpoint())
        text = SPEC.replace("-> linear(3)", "-> linear(3, name='head')").replace("'", '"')
        change_graph(engine, modgraph.loads(text).ir)
        now = engine.checkpoint()
        shared = now.weights.keys() & weights.keys()
        assert weights.keys() - shared == {"z.linear2.weight", "z.linear2.bias"}
        assert all(equal(now.optimizer[name], optimizer[name]) for name in shared)
        assert "head.weight" not in now.optimizer
        finish(engine)


def test_weights_of_other_shapes_do_not_carry_over_and_nothing_changes(small: Path, tmp_path: Path) -> None:
    with start_run(str(small), None, {}, str(tmp_path / "run")) as engine:
        before = engine.state
        with pytest.raises(ModgraphError) as caught:
            change_graph(engine, modgraph.loads(SPEC.replace("linear(6)", "linear(7)")).ir)
        assert caught.value.diagnostics[0].code == "MG631"
        assert "z.linear.bias" in str(caught.value)
        assert engine.state is before


# ------------------------------------------------------------ phases


@dataclass(frozen=True)
class TwoPhases(Curriculum):
    """An edit makes the graph of the second phase."""

    phases: tuple[Phase, Phase]
    edit: Callable[[Graph], Graph]

    def begin(self, graph: Graph) -> NextPhase:
        return graph, {"phase": 0}

    def phase(self, at: Facts, graph: Graph) -> Phase:
        return self.phases[at["phase"]]

    def next_phase(self, training: Training) -> NextPhase | None:
        return None if training.progress.at["phase"] else (self.edit(training.graph), {"phase": 1})


def with_phases(monkeypatch: pytest.MonkeyPatch, edit: Callable[[Graph], Graph]) -> None:
    """Let every training have a second phase: the same examples from behind, with the graph that `edit` makes."""

    def schedule(graph: Graph, train: Train, splits: Mapping[str, Arrays]) -> TwoPhases:
        turned = {name: arrays.take(np.arange(len(arrays))[::-1][:20]) for name, arrays in splits.items()}
        return TwoPhases((Phase(splits, train.epochs), Phase(turned, 2, goes_on=True)), edit)

    monkeypatch.setattr(runs, "build_curriculum", schedule)


@pytest.mark.some(1)
@pytest.mark.parametrize("cut", [6, 15, 19])
def test_phases_follow_each_other_and_are_taken_up_anywhere(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    with_phases(monkeypatch, lambda graph: grow(graph, "p", 1))
    with start_run(str(small), None, {}, str(tmp_path / "whole")) as engine:
        assert finish(engine)["steps"] == 15 + 2 * 3
        assert (engine.progress.at, engine.progress.epoch) == ({"phase": 1}, 5)
    with start_run(str(small), None, {}, str(tmp_path / "cut")) as engine:
        stop_before(engine, cut)
    with resume_run(str(tmp_path / "cut")) as engine:
        assert engine.progress.at == {"phase": int(cut >= 15)}
        finish(engine)
    assert final_weights(tmp_path / "cut") == final_weights(tmp_path / "whole")
    assert load_run(tmp_path / "cut").graph.pools()["p"].size == 3


SAMPLED = """
model small() {
  input  x: float[4]
  target y: class[3]
  pool   p[3] = linear(3)
  router r = categorical()
  z = x -> p by r
  output z
  loss cross_entropy(z, y)
}
"""


@pytest.mark.parametrize("algorithm", ["em", "reinforce"])
def test_what_an_algorithm_keeps_goes_on_with_a_graph_and_begins_anew_with_a_phase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    with_phases(monkeypatch, lambda graph: graph)
    spec = written(tmp_path, SAMPLED, algorithm)
    with start_run(str(spec), None, {}, str(tmp_path / "run")) as engine:
        stop_before(engine, 5)
        before = engine.state.learner
        kept = {name: each.clone() for name, each in before.tensors().items()}
        change_graph(engine, engine.state.graph)
        assert engine.state.learner is not before
        assert engine.state.learner.facts() == before.facts()
        assert equal(engine.state.learner.tensors(), kept)
        finish(engine)
        assert all(len(table) == 20 for table in engine.state.learner.tensors().values())
