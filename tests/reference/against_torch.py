"""Holds what torch computes of a program against the interpreter: the same weights, the same batch, 64 bits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from modgraph import Program
from modgraph.backends.torch.model import Model
from modgraph.ir import Graph, OpNode, Result, ScanNode, comparisons, flat_to_json
from modgraph.types import TensorType
from tests.reference import Interpreted, interpret

Array = NDArray[Any]
Batch = Mapping[str, Array]
SEED = 5
LONGEST = 6


def record_of(program: Program) -> dict[str, Any]:
    """The graph as it is stored."""
    record: dict[str, Any] = json.loads(json.dumps(flat_to_json(program.ir)))
    return record


def random_model(program: Program, seed: int = 0, lowering: str | None = None) -> Model:
    """A model in 64 bits with random weights, none at a start that hides what it does; variances are positive."""
    model, rng = program.build(lowering=lowering).double(), np.random.default_rng(seed)
    weights = {}
    for name, each in model.state_dict().items():
        numbers = np.asarray(rng.standard_normal(tuple(each.shape)) * 0.5)
        weights[name] = torch.from_numpy(np.asarray(np.abs(numbers) + 0.1 if name.endswith("running_var") else numbers))
    model.load_state_dict(weights)
    return model


def random_batch(program: Program, seed: int = 0, examples: int = 3) -> dict[str, Array]:
    """Inputs, targets and lengths, one of them full; what stands in padding is random too, and labels may be missing
    where a comparison says so."""
    rng, graph = np.random.default_rng(seed), program.ir
    types = graph.input_types | graph.target_types
    found = {name: _numbers(type_, rng, examples) for name, type_ in types.items()}
    for name, type_ in graph.input_types.items():  # edges lead to nodes that their examples have
        for end, axis in enumerate(type_.ends):
            length = graph.length_inputs.get(axis.lengths)
            nodes = np.full(examples, axis.size or LONGEST) if length is None else found[length]
            found[name][..., end] = rng.integers(0, 2**31, found[name].shape[:2]) % nodes[:, None]
    for each in comparisons(graph):
        label, settings = found[each.target], each.node.op.values()
        if label.dtype == np.int64:
            label = np.maximum(label, settings.get("since", 0))
        if each.missing:
            nothing = -1 if label.dtype == np.int64 else np.nan
            label = np.where(rng.random(label.shape) < 0.3, nothing, label)
            label[-1] = nothing
        found[each.target] = label
    return found


def _numbers(type_: TensorType, rng: np.random.Generator, examples: int) -> Array:
    if type_.dtype == "length":
        return np.array([LONGEST, *rng.integers(1, LONGEST, examples - 1)])
    shape = (examples, *(LONGEST if axis.size is None else axis.size for axis in type_.shape))
    return rng.standard_normal(shape) if type_.dtype == "float" else rng.integers(0, type_.size or 1, shape)


def compare(program: Program, batch: Batch, model: Model, training: bool = False, tolerance: float = 1e-9) -> None:
    """Both on one batch: outputs, losses, records and next states agree; torch's chance is the interpreter's too."""
    model.train(training)
    tensors = {name: torch.from_numpy(np.asarray(each)) for name, each in batch.items()}
    weights = {name: each.detach().numpy().copy() for name, each in model.state_dict().items()}
    draws = {**_samples(model, tensors), **_forced(program, batch)} if training else {}
    model.load_state_dict({name: torch.from_numpy(each) for name, each in weights.items()})
    if training:
        tensors |= {f"{name}:forced": torch.from_numpy(each) for name, each in _forced(program, batch).items()}
    expected = interpret(record_of(program), weights, batch, training=training, draws=draws)
    torch.manual_seed(SEED)
    with torch.no_grad():
        computed = model.compute(tensors, losses=True, routing=True)
        following = {name: each.numpy().copy() for name, each in model.state_dict().items()}
    assert_agrees(expected, computed.outputs | computed.routing, tolerance)
    assert_close({name: each.numpy() for name, each in computed.losses.items()}, expected.losses, tolerance)
    assert_close({name: following[name] for name in expected.states}, expected.states, tolerance)


def _samples(model: Model, batch: dict[str, torch.Tensor]) -> dict[str, Array]:
    """What chance gives in a step of training, as the interpreter is told it, but for scans and pools."""
    graph, found = model.graph, {}
    wanted = (*graph.outputs.values(), *graph.losses.values(), *graph.records().values())
    needed = _needed(graph, wanted)
    nodes = [node for node in graph.nodes_of(OpNode) if node.op.name in CHANCE and node.name in needed]
    scales = [graph.inputs(node.name).get("deviation") for node in nodes]
    torch.manual_seed(SEED)
    with torch.no_grad():
        asked = (*wanted, *(Result(node.name) for node in nodes), *filter(None, scales))
        results = dict(zip(asked, model.results(batch, asked), strict=True))
    for node, scale in zip(nodes, scales, strict=True):
        x = results[Result(node.name)].numpy()
        constant = getattr(node.op, "deviation", None)
        divisor = np.asarray(constant or 1.0) if scale is None else results[scale].numpy()
        found[node.name] = CHANCE[node.op.name](x, graph.signature(node).axes.bound.get("position", -1), divisor)
    return found


def _needed(graph: Graph, wanted: Iterable[Result]) -> set[str]:
    """The nodes that results are computed from: torch runs no others."""
    pending = [each.node for each in wanted]
    seen = set(pending)
    while pending:
        new = {each.node for each in graph.inputs(pending.pop()).values()} - seen
        seen |= new
        pending += new
    return seen


def _forced(program: Program, batch: Batch) -> dict[str, Array]:
    """Numbers of places for the draws in scans, [B, T, ...]."""
    rng, found = np.random.default_rng(SEED), {}
    count = len(next(iter(batch.values())))
    for scan in program.ir.nodes_of(ScanNode):
        for node in scan.region.graph.nodes_of(OpNode):
            if node.op.draws:
                place = scan.region.graph.signature(node).axes.bound["position"]
                *shape, time = (axis.size or LONGEST for axis in (*node.types[0].shape, scan.types[0].shape[0]))
                places = shape.pop(place)
                found[node.name] = rng.integers(0, places, (count, time, *shape))
    return found


CHANCE: dict[str, Callable[[Array, int, Array], Array]] = {
    "normal_noise": lambda x, axis, deviation: x / deviation,
    "gumbel_noise": lambda x, axis, deviation: x,
    "dropout": lambda x, axis, deviation: (x != 0).astype(np.float64),
    "drop_path": lambda x, axis, deviation: (x != 0).astype(np.float64),
    "draw": lambda x, axis, deviation: x.argmax(axis),
}


def assert_close(found: Mapping[str, Any], expected: Mapping[str, Any], tolerance: float) -> None:
    assert set(found) == set(expected), f"{sorted(found)} are not {sorted(expected)}"
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, tolerance, tolerance, err_msg=name)


def assert_agrees(expected: Interpreted, computed: Mapping[str, torch.Tensor], tolerance: float) -> None:
    """Outputs and records are the same wherever there is no padding."""
    wanted = expected.outputs | expected.routing
    assert set(computed) == set(wanted), "outputs and records have other names"
    for name, value in wanted.items():
        found = computed[name].detach().numpy()
        assert found.shape == value.shape, f"{name}: {found.shape} is not {value.shape}"
        mask = expected.mask[name]
        np.testing.assert_allclose(found[mask], value[mask], tolerance, tolerance, err_msg=name)
