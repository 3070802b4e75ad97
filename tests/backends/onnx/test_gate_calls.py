"""Gates of zero and one that hang on rounding: their examples are replaced before an export is compared."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import modgraph
from modgraph.backends.onnx import deterministic
from modgraph.backends.onnx.decisions import Decisions, gate_calls
from modgraph.backends.onnx.examples import Examples

SPEC = """
router connect() for encoder, policy {
  input u: float[senders, dim]
  SCORES
  record gates = open
  y = u by open over senders -> encoder
  output y
}
model m() {
  input x: float[time, 3]
  pool cell[2] = linear(3, bias=false)
  pool encoder[2] = linear(3)
  pool policy[encoder] = linear(2, bias=false)
  router enter = connect
  y = x -> cell -> encoder by enter(policy)
  output y
}
"""
KINDS = {
    "above": "a, b = u -> policy -> split(2) open = b - a -> sum(axis=-1) -> above",
    "top_k": "a, b = u -> policy -> top_k -> split(2) open = b -> sum(axis=-1)",
}


@pytest.mark.parametrize("kind", KINDS)
def test_examples_with_a_close_call_are_replaced_unless_it_is_in_padding(kind: str) -> None:
    model = deterministic(modgraph.loads(SPEC.replace("SCORES", KINDS[kind]), "m.mod").build(seed=3))
    assert len(gate_calls(model.graph)) == 1
    x = np.random.default_rng(0).normal(size=(6, 4, 3)).astype("float32")
    x[1, 2] = 0  # all scores are zero there: what is open hangs on rounding
    x[2, 3] = 0  # in padding
    examples = Examples.from_arrays(model.graph, {"x": x, "time_length": np.array([4, 4, 3, 4, 2, 4])})
    decisions = Decisions(model)
    with torch.no_grad():
        batch, _ = decisions.clear_calls(examples, 4, {"time": 4})
    assert decisions.replaced == 1
    np.testing.assert_array_equal(batch["x"].numpy(), x[[0, 4, 2, 3]])


WEIGHTS = {
    "comparison": "(s > 0) * (s -> sigmoid)",
    "of two values": "(s > (s -> cos) - 1) * (s -> sigmoid)",
    "threshold": "(s -> above) * (s -> sigmoid)",
    "relu": "s -> relu",
    "clamp": "clamp(s, max=0)",
    "where": "where(s <= 0, 0, s -> exp)",
    "sum": "(s -> above) + ((s -> cos) -> top_k)",
}


@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_close_call_of_any_number_of_modules_is_one(weights: str) -> None:
    text = f"""model m() {{ input x: float[6] pool p[4] = linear(3) -> tanh s = x -> linear(p, bias=false)
      y = x -> p by ({WEIGHTS[weights]}) output y }}"""
    model = deterministic(modgraph.loads(text).build(seed=0))
    x = torch.randn(5, 6, generator=torch.Generator().manual_seed(1))
    row = model.get_submodule("s.linear").weight[2].detach()
    x[3] += (1e-7 - x[3] @ row) / (row @ row) * row  # whose score of module 2 is nearly zero
    decisions = Decisions(model)
    with torch.no_grad():
        batch, _ = decisions.clear_calls(Examples.from_arrays(model.graph, {"x": x.numpy()}), 4, {})
    assert decisions.replaced == 1
    assert torch.equal(batch["x"], x[[0, 1, 2, 4]])


def test_no_call_is_looked_at_that_no_choice_hangs_on() -> None:
    text = """model m() { input x: float[6] pool p[4] = linear(3) h = (x > 0) * x s = h -> linear(p)
      y = x -> p by ((s -> softmax) * (s -> top_k)) output y }"""
    assert not gate_calls(modgraph.loads(text).ir)
