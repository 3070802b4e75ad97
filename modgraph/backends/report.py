"""What compiling a spec gave: a batch run through it, counts, and how each route is computed."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from modgraph.backends.torch import Model, generator_for
from modgraph.elaboration.sparsity import made_dense_by, support_of
from modgraph.inspect.cost import cost_of
from modgraph.ir import Graph, RouteNode, longest
from modgraph.passes import INFERENCE, apply_passes, choices, images
from modgraph.types import TensorType

BATCH = 2
SYMBOLIC_LENGTH = 8


def compile_report(graph: Graph, model: Model) -> str:
    """Run one random batch through a model, and say in a few lines what it is made of."""
    cost = cost_of(graph)
    with torch.no_grad():
        computed = model.compute(random_batch(model))
    lines = [
        f"model {graph.name}: {len(graph)} nodes, {cost.parameters:,} parameters "
        f"({cost.trainable:,} trainable), {cost.macs:,} MACs per example ({cost.active_macs:,} active)",
    ]
    for name, output in computed.outputs.items():
        lines.append(f"output {name}: {list(output.shape)} from a batch of {BATCH}")
    for name, loss in computed.losses.items():
        lines.append(f"{name}: {loss.item():.6g}")
    lines += [f"op {image.last.name}: {image.reason}" for image in images(model.graph)]
    return "\n".join([*lines, *_routes(model.graph)])


def _routes(graph: Graph) -> list[str]:
    """How each route is computed, and how in a bundle where that is another way."""
    lines = []
    here, exported = choices(graph), choices(apply_passes(graph, INFERENCE))
    for part in graph.parts():
        for route in part.graph.of_kind(RouteNode):
            uses, form = part.graph.uses(route.name), here[route.name]
            lines.append(f"route {route.name} ({uses['pool']} by {uses['router']}): {form.form}; {form.reason}")
            lines[-1] += _made_dense(part.graph, route)
            other = exported.get(route.name, form)
            if not form.exportable and other.form != form.form:
                lines.append(f"route {route.name} when exported: {other.form}; {other.reason}")
    return lines


def _made_dense(graph: Graph, route: RouteNode) -> str:
    """Which op keeps a route by weights from computing no more than what was chosen, if one does."""
    weights = graph.inputs(route.name).get("weights")
    if weights is None or graph.router_of(route).router.chooses_along is not None:
        return ""
    if support_of(weights, graph) is not None:
        return (
            "; the choice behind the weights is followed where their axes are those of vectors and their modules alone"
        )
    op = made_dense_by(weights, graph)
    return "" if op is None else f'; a choice lies behind the weights, but "{op.op.name}" ({op.span}) keeps no zeros'


def random_batch(model: Model, size: int = BATCH) -> dict[str, Tensor]:
    """Inputs and targets of the model's types, a function of their names alone."""
    types = {**model.graph.input_types, **model.graph.target_types}
    lengths = {axis: min(SYMBOLIC_LENGTH, most) for axis, most in longest(model.graph).items()}
    return {name: _random(name, type_, size, lengths) for name, type_ in types.items() if type_.dtype != "length"}


def _random(name: str, type_: TensorType, size: int, lengths: Mapping[str, int]) -> Tensor:
    shape = [
        size,
        *(lengths.get(axis.name, SYMBOLIC_LENGTH) if axis.size is None else axis.size for axis in type_.shape),
    ]
    generator = generator_for("batch", name)
    if type_.size is not None:
        return torch.randint(type_.size, shape, generator=generator)
    return torch.randn(shape, generator=generator)
