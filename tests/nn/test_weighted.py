"""Routes by weights: every form against sums written out in numpy, over random axes, paddings and sizes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

import modgraph
from modgraph.backends.torch import Model
from modgraph.diagnostics import ModgraphError
from modgraph.ir import RouteNode
from tests.ordinary_run import some_examples

few = some_examples(40)
BATCH, WIDTH = 2, 3
SIZES = {"time": 4, "slot": 2, "p": 3}
LENGTHS = {"time": (3, 0), "slot": (2, 1)}
MODULES = ("linear(2)", "linear(2) -> tanh", "[linear(2), linear(2) -> tanh, linear(2)]")


@dataclass(frozen=True)
class Case:
    """The axes of senders and of their weights, by name or length, what is summed, the modules, and whether each takes
    a row of its own."""

    tokens: tuple[str, ...]
    weights: tuple[str, ...]
    over: str
    modules: str
    rows: bool = False

    @property
    def routed(self) -> tuple[str, ...]:
        return (*self.tokens, "p") if self.rows else self.tokens

    @property
    def text(self) -> str:
        tokens, weights = (", ".join(axes) for axes in ((*self.routed, str(WIDTH)), self.weights))
        pool = f"pool p = {self.modules}" if self.modules.startswith("[") else f"pool p[3] = {self.modules}"
        given = f"{pool} input x: float[{tokens}] input w: float[{weights}]"
        return f"model m() {{ {given} y = x -> p by w over {self.place} output y }}"

    @property
    def place(self) -> str:
        return self.over if self.over.isalpha() else str(self.weights.index(self.over) - len(self.weights))

    @property
    def result(self) -> list[str]:
        return [axis for axis in dict.fromkeys((*self.tokens, *self.weights, "p")) if axis != self.over]


def size(axis: str) -> int:
    return SIZES.get(axis) or int(axis)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Senders along named and plain axes; weights along some of these, the modules' and their own, in any order."""
    tokens = tuple(draw(st.permutations(draw(st.lists(st.sampled_from(["time", "5"]), unique=True)))))
    over = draw(st.sampled_from([*tokens, "p"]))
    others = [axis for axis in (*tokens, "p") if axis != over]
    weights = {over, *draw(st.lists(st.sampled_from([*others, "slot"]), unique=True))}
    if "5" in tokens:
        weights.add("5")
    modules, rows = draw(st.sampled_from(MODULES)), draw(st.booleans())
    return Case(tokens, tuple(draw(st.permutations(sorted(weights)))), over, modules, rows)


def padding(axes: tuple[str, ...], trailing: int = 0) -> NDArray[np.bool_]:
    """Where a value with such axes is padding: [B, …]."""
    found = np.zeros((BATCH, *map(size, axes), *[1] * trailing), bool)
    for at, axis in enumerate(axes):
        if axis in LENGTHS:
            past = np.arange(size(axis)) >= np.array(LENGTHS[axis])[:, None]
            places = (size(axis) if each == at else 1 for each in range(len(axes)))
            found |= past.reshape(BATCH, *places, *[1] * trailing)
    return found


def written_out(case: Case, model: Model, x: NDArray[Any], w: NDArray[Any]) -> NDArray[Any]:
    """Σ w f_j(x) over every sender, module and weight, one after another; zero in padding."""
    experts = [model.get_submodule(f"p.{j}") for j in range(3)]
    with torch.no_grad():
        messages = np.stack([expert(torch.from_numpy(x)).numpy() for expert in experts])
    axes = list(dict.fromkeys((*case.tokens, *case.weights, "p")))
    total = np.zeros((BATCH, *map(size, case.result), 2))
    unreal = padding(case.tokens, 0), padding(case.weights, 0)
    for example, *indices in product(range(BATCH), *(range(size(axis)) for axis in axes)):
        at = dict(zip(axes, indices, strict=True))
        token, weight = (tuple([example, *(at[axis] for axis in of)]) for of in (case.tokens, case.weights))
        if not unreal[0][token] and not unreal[1][weight]:
            own = (at["p"],) if case.rows else ()
            total[(example, *(at[axis] for axis in case.result))] += w[weight] * messages[(at["p"], *token, *own)]
    return total


def inputs_of(case: Case, filling: float) -> dict[str, Tensor]:
    """A batch whose padding is filled so."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(BATCH, *map(size, case.routed), WIDTH))
    w = rng.normal(size=(BATCH, *map(size, case.weights)))
    given = {"x": np.where(padding(case.routed, 1), filling, x), "w": np.where(padding(case.weights), filling, w)}
    lengths = {f"{axis}_length": np.array(LENGTHS[axis]) for axis in {*case.tokens, *case.weights} & LENGTHS.keys()}
    return {name: torch.from_numpy(value) for name, value in (given | lengths).items()}


def results_of(case: Case, lowering: str, filling: float) -> tuple[Model, list[Tensor]]:
    """The value of a route in one of its forms, and gradients of all that it reads."""
    model = modgraph.loads(case.text).build(seed=1, lowering=lowering).double()
    inputs = inputs_of(case, filling)
    x, w = inputs["x"].requires_grad_(), inputs["w"].requires_grad_()
    y = model.compute(inputs).outputs["y"]
    (y * torch.arange(1.0, y.numel() + 1).reshape(y.shape).cos()).sum().backward()
    return model, [y.detach(), *(each.grad for each in (x, w, *model.parameters()) if each.grad is not None)]


def lowerings_of(case: Case) -> list[str]:
    (part, *_) = modgraph.loads(case.text).ir.parts()
    (route,) = part.graph.nodes_of(RouteNode)
    return [each.name for each in part.graph.router_of(route).router.lowerings(part.facts_of(route))]


@few
@given(case=cases())
def test_every_lowering_is_the_sum_written_out(case: Case) -> None:
    expected: list[Tensor] | None = None
    assert lowerings_of(case)[-1] == "message_passing"
    for lowering in reversed(lowerings_of(case)):
        model, found = results_of(case, lowering, 0.0)
        inputs = {name: value.detach().numpy() for name, value in inputs_of(case, 0.0).items()}
        np.testing.assert_allclose(found[0], written_out(case, model, inputs["x"], inputs["w"]), atol=1e-12)
        expected = expected or found
        assert len(found) == len(expected)
        for ours, definition in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, definition, atol=1e-10, rtol=1e-10)


@few
@given(case=cases(), filling=st.sampled_from([float("nan"), float("inf")]))
def test_what_stands_in_padding_reaches_nothing(case: Case, filling: float) -> None:
    for lowering in lowerings_of(case):
        (_, expected), (_, found) = results_of(case, lowering, 0.0), results_of(case, lowering, filling)
        for ours, with_zeros in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, with_zeros, atol=0, rtol=0)


GATES = {
    "product": "(scores -> softmax) * choice",
    "among": "(scores, choice) -> masked_softmax(axis=ALONG)",
    "quotient": "choice * scores / 2",
    "choice": "choice",
}
BY_CHOICE = """model m() {
  input x: float[AXESMESSAGE]
  pool p[4] = MODULES
  input scores: float[AXESp]
  choice = scores -> top_k(K, axis=ALONG)
  w = GATES
  y = x -> p by w
  output y
  output w
}"""


MESSAGES = {(WIDTH,): "linear(2) -> tanh", (2, 4, 3): "conv(2, kernel=2) -> tanh"}  # vectors and images


@few
@given(
    axes=st.sampled_from([(), ("5",), ("time",), ("time", "5")]),
    message=st.sampled_from(list(MESSAGES)),
    k=st.integers(1, 4),
    along=st.sampled_from([-1, -2]),
    gates=st.sampled_from(list(GATES)),
    filling=st.sampled_from([0.0, float("nan"), float("-inf")]),
    seed=st.integers(0, 99),
)
def test_only_a_choice_is_computed_and_as_if_every_module_ran(
    axes: tuple[str, ...], message: tuple[int, ...], k: int, along: int, gates: str, filling: float, seed: int
) -> None:
    """With ties, modules that nobody chooses, and padding: values, and gradients of all that is read."""
    along = along if axes else -1
    text = BY_CHOICE.replace("AXES", "".join(f"{axis}, " for axis in axes)).replace("K", str(k))
    text = text.replace("GATES", GATES[gates]).replace("ALONG", str(along))
    text = text.replace("MESSAGE", str([*message])[1:-1]).replace("MODULES", MESSAGES[message])
    ones = [1] * len(message)
    program, rng = modgraph.loads(text), np.random.default_rng(seed)
    (route,) = program.ir.nodes_of(RouteNode)
    assert program.ir.router_of(route).router.name == ("chosen" if along == -1 else "chosen_senders")
    scores = rng.integers(0, 3, (BATCH, *map(size, axes), 4)).astype(float)
    images = np.where(padding(axes, len(message)), filling, rng.normal(size=(BATCH, *map(size, axes), *message)))
    filled = {"x": images, "scores": np.where(padding(axes, 1), filling, scores)}
    unreal = torch.from_numpy(padding(axes, 1))
    for lowering in ("grouped", "per_module", "message_passing"):
        model = program.build(seed=1, lowering=lowering).double()
        inputs = {name: torch.from_numpy(value).requires_grad_() for name, value in filled.items()}
        lengths = {"time_length": torch.tensor(LENGTHS["time"])} if "time" in axes else {}
        read = [*inputs.values(), *model.parameters()]
        found = model.compute({**inputs, **lengths}).outputs
        weights = found["w"].masked_fill(unreal, 0)
        assert (weights != 0).sum(along).max() <= k
        tokens = inputs["x"].masked_fill(unreal.reshape(*unreal.shape[:-1], *ones), 0)
        messages = model.get_submodule("p").all(tokens)
        expected = (messages * weights.reshape(*weights.shape, *ones)).sum(-1 - len(ones))
        torch.testing.assert_close(found["y"], expected, atol=1e-12, rtol=0)
        ours, theirs = (
            torch.autograd.grad(y.square().sum(), read, retain_graph=True, materialize_grads=True)
            for y in (found["y"], expected)
        )
        for gradient, wanted in zip(ours, theirs, strict=True):
            torch.testing.assert_close(gradient, wanted, atol=1e-10, rtol=0)


def test_affine_modules_run_on_sums_where_tokens_are_summed() -> None:
    of = {
        over: lowerings_of(Case(("time",), ("time", "p"), over, modules))
        for over, modules in (("time", MODULES[0]), ("p", MODULES[0]))
    }
    assert of == {"time": ["factorised", "dense", "message_passing"], "p": ["dense", "message_passing"]}
    assert lowerings_of(Case(("time",), ("time", "p"), "time", MODULES[1])) == ["dense", "message_passing"]


MISTAKES = {
    "x -> p by w over q": "unknown axis",
    "x -> p by v": 'have no axis of the modules of "p"',
    "x -> p by v over -1": "begin with these axes",
    "z -> p by v over -1": "neither the value nor",
    "x -> p by r over p": "expected a router without over",
    "x by r": "send it through a pool: x -> p by r",
    "x by v": "say which is summed",
    "x -> p by 3": "a router or weights",
    "(x, x) by w": "the summed value",
    "x -> p by softmax(axis=-1)": "found the op",
    "x -> p by linear(x)": "width",
    "x -> p by u": "begin with these axes",
}


@pytest.mark.parametrize("value", MISTAKES)
def test_mistakes_are_reported(value: str) -> None:
    given = (
        "input x: float[5, 6] input z: float[time, 6] input w: float[5, p] input v: float[5, 2] input u: float[4, p]"
    )
    text = f"model m() {{ pool p[3] = linear(6) router r = linear(k=1) {given} y = {value} output y }}"
    with pytest.raises(ModgraphError) as caught:
        modgraph.loads(text)
    refusal = str(caught.value)
    assert MISTAKES[value] in refusal
    assert refusal.count("error[") == 1


def test_a_result_has_every_axis_once() -> None:
    text = 'model m() { input x: float[time, 6] pool p[3] = linear(4, named="time") router r = linear(k=1) '
    with pytest.raises(ModgraphError, match='the axis "time" would occur twice'):
        modgraph.loads(text + "y = x -> p by r output y }")
