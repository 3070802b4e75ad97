"""Routes by ids: values, gradients and records are those of the weights, and nothing has an axis of modules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import modgraph
from modgraph.backends.torch import Model
from modgraph.ir import Graph, RouteNode, ScanNode
from modgraph.passes import OPTIMISE, TRAINING, ByIds, Lower, Pass, apply_passes, optimise
from tests.papers.test_papers import HOME

LARGEST = "(s -> softmax) * (s -> top_k(2))"
WEIGHTS = {
    "ids": "id -> one_hot(p)",
    "gates": "g * (id -> one_hot(p))",
    "values of modules": '(s -> softmax -> new_axis(3, axis="slot", at=-2)) * (id -> one_hot(p))',
    "sum": 'g * (id -> one_hot(p)) -> sum(axis="slot")',
    "mean": 'g * (id -> one_hot(p)) -> mean(axis="slot")',
    "product with a sum": '(g * (id -> one_hot(p)) -> sum(axis="slot")) * (s -> sigmoid) / 3',
    "shared by modules": '(id -> one_hot(p) -> sum(axis="slot")) * (s -> mean(axis=p) -> new_axis(p, at=-1))',
    "two": 'g * (id -> one_hot(p)) -> sum(axis="slot") -> stop_gradient',
    "difference": '(g * (id -> one_hot(p)) -> sum(axis="slot")) - 2 * (one -> one_hot(p)) * (s -> tanh)',
    "largest": LARGEST,
    "softmax among the largest": "(s, s -> top_k(2)) -> masked_softmax",
    "share of the largest": f"({LARGEST}) / (({LARGEST}) -> sum(axis=-1) -> new_axis(p, at=-1))",
}
NAMED = {"contraction": '(g, id -> one_hot(p)) -> contract(axis="slot")'}
OTHER = {
    "softmax": "id -> one_hot(p) -> softmax",
    "scores": "(s -> above(0.1)) * s",
    "straight": "(s -> softmax, one -> one_hot(p)) -> straight_through",
    "sum over time": '(g * (id -> one_hot(p)) -> sum(axis="slot")) + s',
}


def text_of(weights: str, tokens: str = "time") -> str:
    return f"""model m() {{
  input x: float[{tokens}, 6] input id: token[{tokens}, slot=3, 9] input one: token[{tokens}, 9]
  pool p[9] = linear(4) -> tanh -> linear(3)
  s = x -> linear(p)
  g = x -> linear(3) -> unmerge([3], into=["slot"])
  y = x -> p by ({weights})
  output y }}"""


def batch_of(graph: Graph) -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(3)
    x = torch.randn(3, 5, 6, dtype=torch.float64, generator=random)
    ids = {"id": (3, 5, 3), "one": (3, 5)}
    found = {name: torch.randint(9, shape, generator=random) for name, shape in ids.items()}
    return {"x": x, **found, **({"time_length": torch.tensor([5, 2, 0])} if "time_length" in graph.input_types else {})}


def routed(graph: Graph) -> tuple[str, tuple[str, ...]]:
    """The router of the only route, and its lowerings."""
    (part,) = (each for each in graph.parts() if each.graph.nodes_of(RouteNode))
    (route,) = part.graph.nodes_of(RouteNode)
    router = part.graph.declaration_of(route)
    return router.name, tuple(each.name for each in router.lowerings(part.facts_of(route)))


def run(graph: Graph, passes: tuple[Pass, ...], weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The output, the records, and the gradients of all weights."""
    model = Model(graph, optimise(graph, (*passes, *OPTIMISE)))
    model.load_state_dict(weights)
    batch = batch_of(graph)
    computed = model.compute({name: batch[name] for name in graph.input_types}, losses=False, routing=True)
    computed.outputs["y"].square().sum().backward()  # type: ignore[no-untyped-call]
    gradients = {name: torch.zeros(()) if each.grad is None else each.grad for name, each in model.named_parameters()}
    return {"y": computed.outputs["y"], **computed.routing, **gradients}


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.some(8)
@pytest.mark.parametrize("tokens", ["time", "5"])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_every_lowering_gives_what_the_weights_give(weights: str, tokens: str) -> None:
    program = modgraph.loads(text_of(WEIGHTS[weights], tokens))
    graph, start = program.ir, program.build(seed=1).state_dict()
    name, lowerings = routed(ByIds(many=1)(graph))
    assert name == "chosen_ids" and len(lowerings) == 4, f"{name} has {lowerings}"
    expected = run(graph, (Lower("message_passing"),), start)
    for lowering in lowerings:
        found = run(graph, (ByIds(many=1), Lower(lowering)), start)
        assert found.keys() == expected.keys(), "other records"
        for key, each in expected.items():
            torch.testing.assert_close(found[key], each, msg=f"{lowering} gives another {key}")


@pytest.mark.parametrize("weights", OTHER)
def test_weights_that_are_no_slots_stay(weights: str) -> None:
    graph = modgraph.loads(text_of(OTHER[weights])).ir
    assert ByIds(many=1)(graph) == graph, "its ids and gates are not known"


def test_a_choice_by_scores_goes_by_ids_where_modules_are_many() -> None:
    graph = modgraph.loads(text_of(LARGEST)).ir
    assert routed(ByIds(many=10)(graph))[0] == "chosen"
    assert routed(ByIds(many=9)(graph))[0] == "chosen_ids"


class Sizes(TorchDispatchMode):
    """Notes the axes of all results."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.shapes: list[tuple[str, tuple[int, ...]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        self.shapes += [(str(func), tuple(each.shape)) for each in tree_leaves(found) if isinstance(each, Tensor)]
        return found


def test_no_value_has_an_axis_of_modules() -> None:
    """Weights begin with that axis, and nothing else has it."""
    torch.set_default_dtype(torch.float32)
    program = modgraph.load(HOME / "peer.mod", keys=11)
    model, batch = program.build(seed=0), {"x": torch.randn(3, 5, 16), "y": torch.randn(3, 5, 16)}
    with Sizes() as sizes:
        model.train().compute(batch).loss.backward()  # type: ignore[no-untyped-call]
    wide = [each for each in sizes.shapes if 121 in each[1][1:]]
    assert not wide, f"modules are an axis of {wide}"


@pytest.mark.slow
def test_no_value_of_a_bundle_has_an_axis_of_modules(tmp_path: Path) -> None:
    torch.set_default_dtype(torch.float32)
    modgraph.export(modgraph.load(HOME / "peer.mod", keys=11).build(seed=0), tmp_path / "m.onnx")
    proto = onnx.shape_inference.infer_shapes(onnx.load(tmp_path / "m.onnx"))
    of_records = ("routing", "gates", "scores", "selected")
    wide = [
        each.name
        for each in proto.graph.value_info
        if any(axis.dim_value == 121 for axis in each.type.tensor_type.shape.dim[1:])
        and not any(word in each.name for word in of_records)
    ]
    assert not wide, f"modules are an axis of {wide}"


SCAN = """model m() { input x: float[time, 6] pool p[9] = linear(6)
  scan x as v with h: float[6] {
    h = v + (h -> p by (v - h -> top_k_indices(2, into="slot") -> one_hot(p) -> sum(axis="slot"))) yield h } as s
  output s }"""


def test_ids_in_a_scan_gather_weights_that_are_stacked_once() -> None:
    program = modgraph.loads(SCAN)
    model = program.build(seed=0)
    x = torch.randn(2, 4, 6)
    found = model.compute({"x": x}, losses=False).outputs["s"]
    (scan,) = (node for node in apply_passes(program.ir, TRAINING).nodes_of(ScanNode))
    (route,) = scan.region.graph.nodes_of(RouteNode)
    assert (route.lowering, route.once) == ("gathered", "scan")
    h = torch.zeros(2, 6)
    for at in range(4):
        best = (x[:, at] - h).topk(2).indices
        h = x[:, at] + torch.stack([sum(model.p[int(j)](row) for j in own) for row, own in zip(h, best, strict=True)])
        torch.testing.assert_close(found[:, at], h)


@pytest.mark.slow
def test_ids_in_a_scan_are_exported(tmp_path: Path) -> None:
    torch.set_default_dtype(torch.float32)
    modgraph.export(modgraph.loads(SCAN).build(seed=0), tmp_path / "m.onnx")
