"""Given arrays, and states that a rule moves: values, growth, exports, and what is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from modgraph_runtime import Bundle

import modgraph
from modgraph.diagnostics import ModgraphError, Report, Source
from modgraph.ir import UnreadableGraph, find_moved_states, from_json, grow, to_json, weights_of
from modgraph.ir.text.parse import parse_text
from modgraph.passes import INFERENCE, apply_passes
from modgraph.syntax.format import format_source

CONSTANTS = """model m() { input x: float[time, 3] pool p[2] = linear(3)
  constant c: float[2, 3] = [[1, 0.5, 0], [0, -1, 2]]
  constant one: float[p] = 1
  constant mask: float[p, 3] = [[1, 0, 1], [0, 1, 0]]
  y = (x, c) -> contract(axis=-1)
  z = x -> p -> mean(axis="time")
  output y
  output z = z * mask + one -> sum(axis="p") }"""


def test_a_constant_is_what_its_lists_say_in_torch_and_in_a_bundle(tmp_path: Path) -> None:
    model, x = modgraph.loads(CONSTANTS).build().eval(), torch.randn(4, 5, 3)
    length = torch.tensor([5, 5, 2, 5])
    c = torch.tensor([[1, 0.5, 0], [0, -1, 2]])
    found = model.compute({"x": x, "time_length": length}).outputs
    torch.testing.assert_close(found["y"], x @ c.T)
    assert not any("c" in name.split(".") for name in model.state_dict())
    modgraph.export(model, tmp_path / "m.onnx")
    run = Bundle(tmp_path / "m.onnx").run({"x": x.numpy(), "time_length": length.numpy()})
    for name, value in found.items():
        np.testing.assert_allclose(run[name], value.detach(), atol=1e-5)


def test_an_array_is_there_for_each_example_wherever_their_number_comes_from() -> None:
    text = "model m() { input x: float[3] y = x -> constant(numbers=[2]) -> sqrt -> parameter(sizes=[2]) output y }"
    assert modgraph.loads(text).build()(torch.zeros(4, 3)).shape == (4, 2)
    with pytest.raises(ModgraphError, match="it takes a value of each example"):
        modgraph.loads("model m() { input x: float[3] y = x -> batch_mean -> parameter(sizes=[2]) output y }")


def test_a_constant_of_one_number_grows_with_a_pool_and_one_of_many_cannot() -> None:
    given = "input x: float[3] pool p[2] = linear(3) constant c: float[p, 3] = 0.5"
    text = f"model m() {{ {given} y = (x -> p) * c output y }}"
    assert str(grow(modgraph.loads(text).ir, "p", 2).outputs["y"].node) == "y.multiply"
    with pytest.raises(Exception, match="6 numbers for 9 places"):
        grow(modgraph.loads(text.replace("= 0.5", "= [[1, 2, 3], [4, 5, 6]]")).ir, "p", 1)


BALANCED = """model m() {
  input x: float[time, 6]
  pool p[3] = linear(4) -> tanh
  state bias: float[p] = zeros
  scores = x -> linear(p) -> sigmoid
  chosen = scores + bias -> top_k
  load = chosen -> batch_mean("time")
  next bias = bias + 0.01 * (((load -> mean(axis="p")) - load) -> sign)
  y = x -> p by (scores * chosen)
  output y
  loss y -> mean -> mean(axis=-1)
}
"""


def test_the_graph_knows_what_a_state_becomes_and_inference_does_not() -> None:
    program = modgraph.loads(BALANCED)
    graph = program.ir
    (weight,) = find_moved_states(graph)
    assert weight == "bias.value" and find_moved_states(from_json(to_json(graph))) == find_moved_states(graph)
    assert parse_text(str(graph)) == graph
    (state,) = (each for each in weights_of(graph) if each.buffer)
    assert state.name == weight and str(state.axes[0]) == "p=3"
    assert program.cost().parameters == sum(each.numel() for each in program.build().parameters())
    assert not find_moved_states(apply_passes(graph, INFERENCE)) and "state(" in str(apply_passes(graph, INFERENCE))
    frozen = BALANCED.replace("state bias: float[p] = zeros", "frozen { state bias: float[p] = zeros }")
    assert not find_moved_states(modgraph.loads(frozen).ir)


def test_a_state_decides_and_is_a_constant_in_a_bundle(tmp_path: Path) -> None:
    model, x = modgraph.loads(BALANCED).build(), torch.randn(4, 5, 6)
    model.get_buffer("bias.value").copy_(torch.tensor([0.0, 2.0, 0.0]))
    length = torch.full((4,), 5)
    found = model.eval().compute({"x": x, "time_length": length}, routing=True)
    assert found.routing["p.selected"][..., 1].all()
    modgraph.export(model, tmp_path / "m.onnx")
    run = Bundle(tmp_path / "m.onnx").run({"x": x.numpy(), "time_length": length.numpy()})
    np.testing.assert_allclose(run["y"], found.outputs["y"].detach(), atol=1e-5)


def test_the_layout_is_kept_and_the_new_words_stay_names() -> None:
    assert format_source(Source("m.mod", BALANCED), Report()) == BALANCED
    modgraph.loads("""model m() { input state: float[4] constant = state -> relu next = constant + state
      next = next * 2 output next }""")


MISTAKES = {
    "constant c: float[2] = [1, 2, 3] y = x": "expected a list of 2, found 3",
    "constant c: float[2, 2] = [1, 2] y = x": "lists nested 2 deep",
    "constant c: float[2, 2] = [[1, 2], [3]] y = x": "differ in length",
    'constant c: float[2] = ["a", "b"] y = x': "numbers only",
    "constant c: float[time] = 0 y = x": "float with fixed lengths",
    "state s: class[3] = zeros y = x": "float with fixed lengths",
    "state s: float[6] = zeros next s = x y = x + s": "one for the whole batch",
    "next t = x -> batch_mean y = x": "must be a state to have a next value, not an undeclared name",
    "state s: float[6] = zeros next s = s next s = s y = x + s": "has two next values",
    "state s: float[6] = zeros next s = x -> batch_mean -> mean(axis=-1) y = x + s": "axes",
}


@pytest.mark.parametrize("body", MISTAKES)
def test_mistakes_are_reported_once(body: str) -> None:
    with pytest.raises(ModgraphError) as caught:
        modgraph.loads(f"model m() {{ input x: float[6] {body} output y }}")
    assert MISTAKES[body] in str(caught.value)
    assert str(caught.value).count("error[") == 1


ROUTER = """router balanced(k=1, speed=0.01) for expert {
  input x: float[tokens, dim]
  state bias: float[expert] = zeros
  scores = x -> linear(expert, bias=false) -> sigmoid
  chosen = scores + bias -> top_k(k)
  share = chosen -> batch_mean
  next bias = bias + speed * ((share -> mean(axis=-1)) - share -> sign)
  gates = chosen * scores
  record gates, scores, choice = chosen
  y = x -> expert by gates
  output y
}

model m() {
  input x: float[time, 4]
  pool p[3] = linear(4) -> tanh
  router r = balanced(k=1)
  y = x -> p by r
  output y
  loss y -> mean -> mean(axis=-1)
}
"""


def test_a_router_balances_itself_by_a_state_of_its_own() -> None:
    program = modgraph.loads(ROUTER)
    assert [*find_moved_states(program.ir)] == ["r.bias.value"]
    assert not program.warnings
    unruled = modgraph.loads(ROUTER.replace("scores + bias -> top_k", "scores -> top_k"))
    assert {each.code for each in unruled.warnings} == {"MG404", "MG407"}  # the state decides nothing


def test_a_state_of_each_module_has_no_rule_since_nothing_would_move_it() -> None:
    text = """
    block cell() { input x: float[dim] state t: float = ones RULE y = x / t output y }
    model m() { input x: float[4] pool p[2] = cell y = x -> p -> mean(axis=p) output y }"""
    assert not modgraph.loads(text.replace("RULE", "")).warnings
    with pytest.raises(ModgraphError) as caught:
        modgraph.loads(text.replace("RULE", "next t = 0.9 * t"))
    assert [each.code for each in caught.value.diagnostics] == ["MG226"]


def test_a_rule_of_what_is_no_state_is_refused() -> None:
    record = to_json(modgraph.loads(BALANCED).ir)
    (rule,) = (node for node in record["nodes"] if node.get("is") == "next_state")
    rule["inputs"][0] = ["state", "load.batch_mean", 0]
    with pytest.raises(UnreadableGraph, match="is no state"):
        from_json(record)
