"""What is computed once, learned arrays and messages that routes share, or in another order, products of three."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import modgraph
from modgraph.backends.report import compile_report
from modgraph.backends.torch import Model
from modgraph.backends.torch.construct import Namespace
from modgraph.ir import UnreadableGraph
from modgraph.ir.text.parse import parse_text
from modgraph.nn import Contract
from modgraph.passes import images
from tests.nn.by_router import messages_of, randomised
from tests.ordinary_run import some_examples


def calls_of(module: Namespace, kind: str) -> list[torch.Size]:
    """The shapes that the ops of a kind are called with in a module, from here on."""
    found: list[torch.Size] = []

    def seen(op: Any, inputs: Any) -> None:
        found.append(inputs[0].shape)

    (op,) = (each for each in module.functions if type(each).__name__ == kind)
    op.register_forward_pre_hook(seen)
    return found


class Counted(TorchDispatchMode):
    """Counts the operators that torch runs."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = Counter[str]()

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        self.calls[str(function)] += 1
        return function(*arguments, **(named or {}))


def test_what_is_made_of_learned_arrays_is_made_for_one_example_and_given_to_each() -> None:
    body = """input x: float[5] weight a: float[3, 4] = normal(1) weight b: float[2, 4] = normal(1)
      constant c: float[2] = [1, 2] u = a -> unit y = (u, b) -> contract z = y * c -> exp s = (y, y) -> concat
      output y output z output s w = x * (c -> sum(axis=-1)) output w"""
    model = modgraph.loads(f"model m() {{ {body} }}").build()
    calls = calls_of(model, "Unit")
    found = model(torch.ones(7, 5))
    assert calls == [torch.Size((1, 3, 4))]
    expected = F.normalize(model.get_parameter("a"), dim=-1) @ model.get_parameter("b").T
    torch.testing.assert_close(found["y"], expected.expand(7, 3, 2))
    torch.testing.assert_close(found["z"], (expected * torch.tensor([1.0, 2])).exp().expand(7, 3, 2))
    assert found["s"].shape == (7, 3, 4) and torch.equal(found["w"], torch.full((7, 5), 3.0))


def test_chance_is_not_the_same_for_every_example() -> None:
    body = """input x: float[5] weight a: float[4] = normal(1)
      y = a + (a -> normal_noise(1.0)) z = a -> dropout(0.5) output y output z"""
    found = modgraph.loads(f"model m() {{ {body} }}").build()(torch.ones(64, 5))
    assert all(len(each.unique(dim=0)) > 8 for each in found.values())


SHARED = """model m() { input x: float[time, 3] input other: float[time, 3] pool p[2] = linear(4) -> tanh
  a = x -> p by (x -> linear(p) -> softmax(axis="time")) over time
  b = x -> p by (x -> linear(p) -> softmax)
  c = x -> p by (x -> linear(p)) over time
  d = other -> p by (x -> linear(p)) over time
  output a output b output c output d }"""


def test_messages_of_routes_that_send_one_value_are_computed_once() -> None:
    program = modgraph.loads(SHARED)
    model, reference = program.build().double(), program.build(lowering="message_passing").double()
    reference.load_state_dict(model.state_dict())
    batch = {"x": torch.randn(2, 5, 3, dtype=torch.float64), "other": torch.randn(2, 5, 3, dtype=torch.float64)}
    batch["time_length"] = torch.tensor([5, 2])
    with Counted() as counted:
        outputs = model.compute(batch).outputs
    assert counted.calls["aten.tanh.default"] == 2 * len(model.p), "messages are computed for x, and for the other"
    found = [outputs, reference.compute(batch).outputs]
    for name, value in found[0].items():
        torch.testing.assert_close(value, found[1][name])
    assert program.cost(time=5).nodes["p"].macs == 2 * 5 * 2 * 12
    said = [line for line in compile_report(program.ir, model.float()).splitlines() if line.startswith("route")]
    assert ["computed once for 3 routes" in line for line in said] == [True, True, True, False]


def test_messages_that_only_one_of_the_wanted_results_needs_are_computed_for_it() -> None:
    model = modgraph.loads(SHARED).build()
    (wanted,) = (result for name, result in model.graph.outputs.items() if name == "c")
    (found,) = model.results({"x": torch.ones(2, 5, 3), "other": torch.ones(2, 5, 3)}, (wanted,))
    assert found.shape == (2, 2, 4)


def test_tokens_are_summed_by_the_weights_of_each_example_even_where_these_are_the_same_for_all() -> None:
    body = "input x: float[24, 5] constant c: float[24] = 0.3 pool p[2] = linear(4)"
    model = modgraph.loads(f"model m() {{ {body} y = x -> p by c over -1 output y }}").build()
    x = torch.randn(5, 5, 24, generator=torch.Generator().manual_seed(0)).mT  # whose order in memory is another
    c = torch.full((5, 24), 0.3)[:1].expand(5, 24)
    summed, total = torch.einsum("za,zaD->zD", c, x), c.sum(1)[:, None]
    linears: list[Any] = [model.get_submodule(f"p.{at}.linear") for at in range(2)]
    of_modules = [F.linear(summed, each.weight, each.bias) + (total - 1) * each.bias for each in linears]
    assert torch.equal(model(x), torch.stack(of_modules, 1)), "they are summed in another order"


def test_a_graph_that_computes_once_what_examples_change_is_refused() -> None:
    text = str(modgraph.loads("model m() { input x: float[4] y = x -> exp output y }").ir)
    with pytest.raises(UnreadableGraph, match="it is computed once, and examples or steps change it"):
        parse_text(text.replace("op exp", "op exp once for batch"))
    with pytest.raises(UnreadableGraph, match="it has no weights to stack"):
        parse_text(text.replace("op exp", "op exp once for scan"))


@st.composite
def products(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "dim": draw(st.integers(1, 3)),
        "width": draw(st.sampled_from([2, 24])),
        "bias": draw(st.booleans()),
        "unit": draw(st.booleans()),
        "first": draw(st.booleans()),  # the image is the left value
        "learned": draw(st.booleans()),  # and the other one is learned
        "length": draw(st.sampled_from([[6, 6, 6], [6, 2, 0]])),
    }


@some_examples(40)
@given(case=products())
def test_products_of_three_are_the_same_in_either_order(case: dict[str, Any]) -> None:
    dim, width, changes = case["dim"], case["width"], "-> unit" if case["unit"] else ""
    other = f"weight v: float[m, {width}] = normal(1)" if case["learned"] else 'v = x -> mean(axis="time") -> m'
    body = f"""input x: float[time, {dim}] pool m[2] = linear({width})
      weight w: float[{width}, {dim}] = normal(1) weight b: float[{width}] = normal(1) {other}
      key = ((x, w) -> contract) {"+ b" if case["bias"] else ""} {changes}
      y = ({"key, v" if case["first"] else "v, key"}) -> contract z = (key, v * v) -> contract output y output z"""
    model = modgraph.loads(f"model m() {{ {body} }}").build().double()
    randomised(model, 3)
    found = [image.last.name for image in images(model.graph)]
    if width == 24:
        assert found == [f"key.{'unit' if case['unit'] else 'add' if case['bias'] else 'contract'}"]
    x = torch.randn(3, 6, dim, dtype=torch.float64, requires_grad=True)
    length = torch.tensor(case["length"])
    outputs = model.compute({"x": x, "time_length": length}).outputs
    mask = torch.arange(6) < length[:, None]
    ours = {"y": outputs["y"] if case["first"] else outputs["y"].mT, "z": outputs["z"]}
    theirs = written_out(case, model, x, mask)
    read = [x, *model.parameters()]
    for name, value in ours.items():
        unpadded = [each * mask[..., None] for each in (value, theirs[name])]
        torch.testing.assert_close(*unpadded, atol=1e-10, rtol=0)
        gradients = [
            torch.autograd.grad(each.square().sum(), read, retain_graph=True, materialize_grads=True)
            for each in unpadded
        ]
        torch.testing.assert_close(*gradients, atol=1e-9, rtol=1e-9)


def written_out(case: dict[str, Any], model: Model, x: Tensor, mask: Tensor) -> dict[str, Tensor]:
    """The products of all pairs, [B, time, m]."""
    key = x @ model.get_parameter("w").T + (model.get_parameter("b") if case["bias"] else 0)
    key = F.normalize(key, dim=-1, eps=1e-8) if case["unit"] else key
    mean = (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
    v = model.get_parameter("v") if case["learned"] else messages_of(model, mean, "m")
    return {"y": key @ v.mT, "z": key @ (v * v).mT}


@pytest.mark.parametrize("change", ["-> tanh", "", "-> relu -> unit"])
def test_an_image_that_is_read_otherwise_is_made(change: str) -> None:
    body = f"""input x: float[time, 2] pool m[2] = linear(24) weight w: float[24, 2] = normal(1)
      key = (x, w) -> contract {change} v = x -> mean(axis="time") -> m y = (key, v) -> contract output y
      {"output key" if not change else ""}"""
    assert not images(modgraph.loads(f"model m() {{ {body} }}").ir)


EQUATIONS = {  # with the axes of an example of either value
    "...ab,...cb->...ac": ((3, 4), (5, 4)),
    "...ab,...bc->...ac": ((3, 4), (4, 5)),
    "...ba,...bc->...ac": ((4, 3), (4, 5)),
    "...ab,...b->...a": ((3, 4), (4,)),
    "...b,...bc->...c": ((4,), (4, 5)),
    "...b,...b->...": ((4,), (4,)),
    "...abc,...dc->...abd": ((2, 3, 4), (5, 4)),
    "...ab,...cdb->...acd": ((3, 4), (2, 5, 4)),
    "...ab,...ab->...a": ((3, 4), (3, 4)),
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_a_product_of_matrices_is_the_sum_that_its_equation_says(equation: str) -> None:
    for outer in product([(), (1,), (6,)], repeat=2):
        values = [torch.randn(*own, *of_one) for own, of_one in zip(outer, EQUATIONS[equation], strict=True)]
        torch.testing.assert_close(Contract(equation)(*values), torch.einsum(equation, *values))
