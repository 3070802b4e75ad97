"""What losses are computed from: weights as far as a gradient may flow, and the states that go with them."""

from __future__ import annotations

import torch

import modgraph
from modgraph.backends.torch import build
from modgraph.ir import find_learnt_weights, find_moved_states, find_weights_behind, with_losses

SPEC = """
model m() {
  input  x: float[time, 4]
  target y: class[3]
  module stem = linear(6)
  frozen { module old = linear(6) }
  pool   p[2] = linear(5)
  pool   q[p] = linear(6) -> relu -> linear(6)
  state  centre: float[6] = zeros
  state  error: float[6] = zeros
  state  steps: float[1] = zeros
  h = x -> stem -> old
  router r = linear()
  scan h as s with c: float[6] { c = (s, c) -> concat -> linear(6) -> tanh yield c } as states
  z = states -> p by r -> mean -> linear(3)
  seen = h -> stop_gradient
  off = (seen - (seen -> q -> mean(axis=p))) ** 2
  next centre = h -> batch_mean
  next error = off -> batch_mean("time")
  next steps = steps + 1
  output z
  loss cross_entropy(z, y)
  loss novelty = off -> mean -> mean(axis=-1)
}
"""


def test_weights_are_behind_a_loss_as_far_as_no_gradient_stops() -> None:
    graph = modgraph.loads(SPEC).ir
    by_loss = {name: find_weights_behind(graph, [result]) for name, result in graph.losses.items()}
    of_q = {
        f"q.{j}.{linear}.{part}" for j in range(2) for linear in ("linear", "linear2") for part in ("weight", "bias")
    }
    assert by_loss["loss.novelty"] == of_q
    assert {name.split(".")[0] for name in by_loss["loss.cross_entropy"]} == {"stem", "old", "p", "r", "states", "z"}
    learnt = find_learnt_weights(graph, graph.losses.values())
    assert {name.split(".")[0] for name in learnt} == {"stem", "p", "q", "r", "states", "z"}


def test_that_is_where_gradients_arrive() -> None:
    graph = modgraph.loads(SPEC).ir
    for loss, result in graph.losses.items():
        model = build(graph)
        batch = {"x": torch.randn(5, 7, 4), "y": torch.arange(5) % 3}
        model.compute(batch).losses[loss].backward()
        found = {name for name, each in model.named_parameters() if each.grad is not None}
        assert found == find_learnt_weights(graph, [result])


def test_a_graph_with_one_loss_moves_the_states_that_go_with_it() -> None:
    graph = modgraph.loads(SPEC).ir
    assert set(find_moved_states(graph)) == {"centre.value", "error.value", "steps.value"}
    first, second = (with_losses(graph, [name]) for name in graph.losses)
    assert set(find_moved_states(first)) == {"centre.value", "steps.value"}
    assert set(find_moved_states(second)) == {"error.value", "steps.value"}
    assert [*first.losses, *second.losses] == [*graph.losses]


RECORDING = """
router r() for p, q {
  input x: float[tokens, dim]
  gates = x -> linear(p) -> softmax
  error = (x -> q) - (x -> new_axis(p, at=-2)) -> mean(axis=-1)
  record gates, error: other
  y = x -> p by gates
  output y
}
model m() {
  input x: float[5, 4]
  pool  p[2] = linear(4)
  pool  q[p] = linear(4)
  router e = r
  y = x -> p by e(q)
  output y
  loss error = e.error -> mean(axis=-1) -> mean(axis=-1)
  loss value = y -> mean -> mean(axis=-1)
}
"""


def test_what_a_router_records_is_computed_only_from_what_it_records() -> None:
    graph = modgraph.loads(RECORDING).ir
    found = {
        name: {each.split(".")[0] for each in find_weights_behind(graph, [of])} for name, of in graph.losses.items()
    }
    assert found == {"loss.error": {"q"}, "loss.value": {"p", "e"}}
