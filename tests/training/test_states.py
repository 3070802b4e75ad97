"""States that a rule moves: once a step, as the rule says, the same after an interruption, and along with growth."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
import torch

from modgraph.ir import grow
from modgraph.training import load_run
from modgraph.training.run import started
from tests.small_runs import begin, dotted, final_weights, go_on, interrupt_at, laid_out

SPEC = """
model net() {
  input  image: float[1, 8, 8]
  target label: class[10]
  pool   expert[3] = linear(16) -> relu
  state  centre: float[64] = zeros
  state  load: float[expert] = zeros
  x = image -> flatten
  m = x -> batch_mean
  next centre = 0.9 * centre + 0.1 * m
  noisy = (x - centre -> dropout(0.2)) + (x -> dropout(0.1))
  scores = noisy -> linear(expert)
  chosen = scores - load -> top_k
  next load = (load + (chosen -> batch_mean)) / 2
  logits = noisy -> expert by ((scores -> softmax) * chosen) -> linear(10)
  output logits
  loss cross_entropy(logits, label)
}
"""
SETTINGS = {"train__epochs": 2, "train__precision": "float64", "train__checkpoint_every": 3}


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    found = laid_out(tmp_path)
    found.write_text(SPEC)
    return found


def test_a_state_moves_once_a_step_and_goes_on_after_an_interruption(spec: Path, tmp_path: Path) -> None:
    """Two values drop out independently: after an interruption each has the noise that it would have had."""
    begin(spec, tmp_path / "whole", **SETTINGS)
    with started(str(spec), None, dotted(SETTINGS), str(tmp_path / "cut")) as engine:
        images, expected = torch.from_numpy(engine.phase.data.values["image"]).flatten(1).double(), torch.zeros(64)
        for epoch in (0, 1):
            for indices in engine.order.draw(engine.train.seed, epoch, since=0):
                expected = 0.9 * expected + 0.1 * images[indices].mean(0)
        interrupt_at(engine, 7)
        with suppress(KeyboardInterrupt):
            engine.run()
    go_on(tmp_path / "cut")
    assert final_weights(tmp_path / "cut") == final_weights(tmp_path / "whole")
    weights = load_run(tmp_path / "whole").checkpoint().weights
    torch.testing.assert_close(weights["centre.value"], expected)
    assert 0.9 < weights["load.value"].sum() <= 1


def test_a_state_grows_with_its_pool(spec: Path, tmp_path: Path) -> None:
    with started(str(spec), None, dotted({**SETTINGS, "train__epochs": 1}), str(tmp_path / "run")) as engine:
        engine.run()
        before = {name: value.clone() for name, value in engine.state.weights.items()}
        engine.change(grow(engine.state.graph, "expert", 2))
        assert engine.state.weights["load.value"].tolist() == [*before["load.value"].tolist(), 0, 0]
        assert torch.equal(engine.state.weights["centre.value"], before["centre.value"])
        engine.save()
        engine._step(torch.arange(20))
        assert len(engine.state.weights["load.value"]) == 5
        assert not torch.equal(engine.state.weights["load.value"][:3], before["load.value"])


def test_a_frozen_state_moves_in_its_new_places_alone(spec: Path, tmp_path: Path) -> None:
    spec.write_text(SPEC.replace("state  load: float[expert] = zeros", "frozen { state load: float[expert] = zeros }"))
    with started(str(spec), None, dotted(SETTINGS), str(tmp_path / "run")) as engine:
        engine._step(torch.arange(20))
        assert engine.state.weights["load.value"].tolist() == [0, 0, 0]
        engine.change(grow(engine.graph, "expert", 2))
        for at in range(3):
            engine._step(torch.arange(20 * at, 20 * at + 20))
        moved = engine.state.weights["load.value"]
        assert moved[:3].tolist() == [0, 0, 0] and moved[3:].any()
