"""Several values sent through a pool together, and several that its modules yield: one message on the way."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

import modgraph
from modgraph.diagnostics import ModgraphError
from modgraph.ir import RouteNode
from modgraph.ir.part import facts_of
from modgraph.program import Program, loads
from tests.backends.onnx.test_scan import agree, randomised

STEP = """block step(hidden) {
  input x: float[dim]
  input h: float[hidden]
  gate = (x, h) -> concat -> linear(hidden, name="opened") -> sigmoid
  new = (x, gate * h) -> concat -> linear(hidden, name="made") -> tanh
  output y = (1 - gate) * h + gate * new
}
"""
LSTM = """block lstm(hidden) {
  input x: float[dim]
  input h: float[hidden]
  input c: float[hidden]
  i, f, o, g = (x, h) -> concat -> linear(4 * hidden, name="gates") -> split(4)
  d = (f -> sigmoid) * c + (i -> sigmoid) * (g -> tanh)
  output next = (o -> sigmoid) * (d -> tanh)
  output cell = d
}
"""
INPUTS = "input x: float[time, 6] input h: float[time, 4] input w: float[time, cell]"
ROUTES = {
    "over the modules": "y = (x, h) -> cell by (x -> linear(cell) -> softmax)",
    "over the tokens": 'y = (x, h) -> cell by (x -> linear(cell) -> softmax(axis="time")) over time',
    "a choice": "s = x -> linear(cell) y = (x, h) -> cell by ((s, s -> top_k(2)) -> masked_softmax)",
    "a router": "router r = agreement(2) y = (x, h) -> cell by r",
    "a text": "router r = scored y = (x, h) -> cell by r",
}
SCORED = "router scored() for e { input x: float[n, d] y = x -> e by (x -> linear(e) -> softmax) output y } "


def program_of(body: str, inputs: str = "input x: float[5, 6] input h: float[5, 4]", pool: str = "step(4)") -> Program:
    return loads(f"{STEP}{LSTM}{SCORED}model m() {{ {inputs} pool cell[3] = {pool} {body} output y }}")


def message_of(body: str, **given: str) -> str:
    with pytest.raises(ModgraphError) as raised:
        program_of(body, **given)
    (only,) = raised.value.diagnostics
    assert only.advice()
    return f"{only.code}: {only.text()}"


def by_hand(weights: dict[str, Tensor], x: Tensor, h: Tensor) -> Tensor:
    """What each module makes of x [..., 6] and h [..., 4]: [..., 3, 4]."""
    found = []
    for j in range(3):
        gate, new = (
            {part: weights[f"cell.{j}.step.{op}.{part}"] for part in ("weight", "bias")} for op in ("opened", "made")
        )
        open_ = torch.sigmoid(torch.cat((x, h), -1) @ gate["weight"].T + gate["bias"])
        made = torch.tanh(torch.cat((x, open_ * h), -1) @ new["weight"].T + new["bias"])
        found.append((1 - open_) * h + open_ * made)
    return torch.stack(found, -2)


def test_each_module_takes_the_values_of_its_own_token() -> None:
    model = randomised(program_of(f"{ROUTES['over the modules']} output z = (x, h) -> cell")).double()
    x, h = torch.randn(2, 5, 6, dtype=torch.float64), torch.randn(2, 5, 4, dtype=torch.float64)
    outputs, weights = model(x, h), dict(model.named_parameters())
    messages = by_hand(weights, x, h)
    shares = torch.softmax(x @ weights["y.linear.weight"].T + weights["y.linear.bias"], -1)
    torch.testing.assert_close(outputs["z"], messages)
    torch.testing.assert_close(outputs["y"], (messages * shares.unsqueeze(-1)).sum(-2))


@pytest.mark.parametrize("body", ROUTES.values(), ids=ROUTES)
def test_every_lowering_computes_what_message_passing_does(body: str) -> None:
    inputs = "input x: float[time, 6] input h: float[time, 4]"
    program = program_of(body, inputs)
    fast, defined = randomised(program).double(), randomised_as(program, "message_passing").double()
    x, h = torch.randn(3, 5, 6, dtype=torch.float64), torch.randn(3, 5, 4, dtype=torch.float64)
    lengths = torch.tensor([5, 2, 1])
    torch.testing.assert_close(fast(x, h, lengths), defined(x, h, lengths), atol=1e-10, rtol=0)


def randomised_as(program: Program, lowering: str) -> modgraph.backends.torch.Model:
    fast, defined = randomised(program), program.build(lowering=lowering)
    defined.load_state_dict(fast.state_dict())
    return defined


def test_values_may_have_any_number_of_axes_and_keep_their_names() -> None:
    block = "block join(n) { input a: float[3, 2] input b: float[n] input c: float output y = (a -> flatten) * b * c }"
    inputs = "input a: float[5, 3, 2] input b: float[5, 6] input c: float[5]"
    text = f"{block} model m() {{ {inputs} pool p[2] = join(6) y = (a, b, c) -> p output y }}"
    a, b, c = torch.randn(2, 5, 3, 2), torch.randn(2, 5, 6), torch.randn(2, 5)
    expected = a.flatten(-2) * b * c.unsqueeze(-1)
    torch.testing.assert_close(loads(text).build()(a, b, c), torch.stack((expected, expected), -2))
    named = "pool q[6] = linear(2) pool p[2] = concat -> sum(axis=-1) y = (x -> q -> mean(axis=-1), x) -> p output y"
    graph = loads(f"model m() {{ input x: float[5, 6] {named} }}").ir
    assert [str(each.types[0]) for each in graph["p"].regions[0].graph if "rename" in each.name] == ["float[q=6]"]


def test_a_value_without_the_tokens_of_the_others_is_the_same_for_each() -> None:
    inputs = "input x: float[6] input h: float[3, 5, 4]"
    model = randomised(program_of("y = (x, h) -> cell", inputs))
    x, h = torch.randn(2, 6), torch.randn(2, 3, 5, 4)
    torch.testing.assert_close(model(x, h), model(x, h))
    torch.testing.assert_close(
        model(x, h), by_hand(dict(model.named_parameters()), x[:, None, None].expand(2, 3, 5, 6), h)
    )


def test_so_is_one_of_tokens_of_any_number() -> None:
    model = randomised(program_of("y = (x, h) -> cell", "input x: float[6] input h: float[time, 4]")).double()
    x, h = torch.randn(2, 6, dtype=torch.float64), torch.randn(2, 5, 4, dtype=torch.float64)
    found = model.compute({"x": x, "h": h, "time_length": torch.tensor([5, 2])}).outputs["y"]
    expected = by_hand(dict(model.named_parameters()), x[:, None].expand(2, 5, 6), h)
    torch.testing.assert_close(found[0], expected[0])
    torch.testing.assert_close(found[1, :2], expected[1, :2])


def test_modules_may_yield_several_values() -> None:
    inputs = "input x: float[5, 6] input h: float[5, 4] input c: float[5, 4]"
    body = (
        "y, d = (x, h, c) -> cell by (x -> linear(cell) -> softmax) u, v = (x, h, c) -> cell output d output u output v"
    )
    program = program_of(body, inputs, "lstm(4)")
    shapes = {name: program.ir.type_of(result).dimensions for name, result in program.ir.outputs.items()}
    assert shapes == {"y": (5, 4), "d": (5, 4), "u": (5, 3, 4), "v": (5, 3, 4)}
    model = randomised(program)
    x, h, c = torch.randn(2, 5, 6), torch.randn(2, 5, 4), torch.randn(2, 5, 4)
    weights, found = dict(model.named_parameters()), model(x, h, c)
    for j in range(3):
        gates = torch.cat((x, h), -1) @ weights[f"cell.{j}.lstm.gates.weight"].T + weights[f"cell.{j}.lstm.gates.bias"]
        i, f, o, g = gates.chunk(4, -1)
        d = f.sigmoid() * c + i.sigmoid() * g.tanh()
        torch.testing.assert_close(found["v"][:, :, j], d)
        torch.testing.assert_close(found["u"][:, :, j], o.sigmoid() * d.tanh())


MODULES_WITH_STATES = """
model m(hidden=4) {
  input words: float[time, 6]
  pool cell[3] = step(hidden)
  scan words as x with h: float[cell, hidden] {
    scores = (x, h -> mean(axis=cell)) -> concat -> linear(cell)
    gates = (scores, scores -> top_k(2)) -> masked_softmax
    h = h + gates * (((x, h) -> cell) - h)
    yield h -> mean(axis=cell)
  } as states
  output states
}
"""


@pytest.mark.slow
@pytest.mark.usefixtures("trace_once")
def test_modules_with_states_of_their_own_are_exported(tmp_path: Path) -> None:
    """Independent mechanisms (Goyal et al., 2021): each has its own state, all see the same word."""
    model = randomised(loads(STEP + MODULES_WITH_STATES))
    modgraph.export(model, tmp_path / "m.onnx")
    agree(model, tmp_path / "m.onnx", routing=False)


def test_pools_that_share_an_axis_take_several_values() -> None:
    body = "pool other[cell] = concat -> linear(2) z = (x, h) -> cell y = (x, z) -> other output z"
    model = randomised(program_of(body))
    x, h, weights = torch.randn(2, 5, 6), torch.randn(2, 5, 4), dict(model.named_parameters())
    found = model(x, h)
    for j in range(3):
        both = torch.cat((x, found["z"][:, :, j]), -1)
        expected = both @ weights[f"other.{j}.linear.weight"].T + weights[f"other.{j}.linear.bias"]
        torch.testing.assert_close(found["y"][:, :, j], expected)


def test_modules_that_are_affine_in_their_values_together_run_on_sums() -> None:
    body = "w = x -> linear(cell) -> softmax(axis=-2) y = (x, h) -> cell by w over -2"
    program = program_of(body, pool="concat -> linear(4)")
    (route,) = program.ir.nodes_of(RouteNode)
    offered = program.ir.router_of(route).router.lowerings(facts_of(program.ir.pool_of(route)))
    assert [each.name for each in offered] == ["factorised", "dense", "message_passing"]
    factorised, defined = randomised(program).double(), randomised_as(program, "message_passing").double()
    x, h = torch.randn(2, 5, 6, dtype=torch.float64), torch.randn(2, 5, 4, dtype=torch.float64)
    torch.testing.assert_close(factorised(x, h), defined(x, h), atol=1e-10, rtol=0)


@pytest.mark.parametrize(
    ("body", "given", "words"),
    [
        ("a = (x, h) -> cell y = x -> cell", {}, "its modules take 2 values together, not 1"),
        ("a = (x, h) -> cell y = (h, x) -> cell", {}, "its modules take float[6] there, not float[5, 4]"),
        ("y = (x, h, x) -> cell", {}, 'block "step" takes 2 inputs, not 3'),
        ("y = x -> cell", {}, 'block "step" takes 2 inputs, not 1'),
        (
            "y = (x, g) -> cell",
            {"inputs": "input x: float[5, 6] input g: float[7, 4]"},
            "one value has the token axes",
        ),
        ("y = (x, g) -> cell", {"inputs": "input x: float[5, 6] input g: token[5, 9]"}, "float of each example"),
        ("y = (x, x -> batch_mean) -> cell", {}, "float of each example"),
        ("y = (x, g) -> cell", {"inputs": "input x: float[5, 6] input g: float[5, time]"}, "fixed lengths"),
    ],
)
def test_values_that_cannot_be_routed_together_are_reported(body: str, given: dict[str, str], words: str) -> None:
    assert words in message_of(body, **given)


def test_unlike_modules_yield_the_same_values() -> None:
    inputs = "input x: float[5, 6] input h: float[5, 4]"
    text = f"model m() {{ {inputs} pool p = [concat -> split(2), concat -> linear(10)] y = (x, h) -> p output y }}"
    with pytest.raises(ModgraphError) as raised:
        loads(text)
    assert "and module 0 yields float[5] and float[5]" in raised.value.diagnostics[0].text()


def test_a_route_of_two_values_is_one_route_of_one_message() -> None:
    graph = program_of(ROUTES["over the modules"]).ir
    (route,) = graph.nodes_of(RouteNode)
    assert str(graph["cell"].message) == "float[10]"
    assert graph.inputs(route.name)["tokens"].node == "y.sent.concat"
