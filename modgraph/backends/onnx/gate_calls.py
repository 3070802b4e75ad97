"""How close the calls are of routers that record gates of zeros and ones and choose among no modules: each of their
ops that chooses, by what it compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from modgraph.ir import Graph, OpNode, Padding, Result, RouteNode, padding_of
from modgraph.nn.padding import valid_along
from modgraph.ops.choice import Above, TopK


@dataclass(frozen=True)
class GateCall:
    """An op that chooses along an axis of `compared` (counted from the last): what is above a threshold, or the k
    largest. `padding` has the axes that hold padding, from 1, and the inputs that tell their lengths."""

    compared: Result
    op: Above | TopK
    along: int
    padding: Padding

    def gap(self, x: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        """How far the closest call of each example is from being another: [B] from [B, ...]."""
        if isinstance(self.op, Above):
            gaps = (x - self.op.threshold).abs()
        else:
            values = x.movedim(self.along, -1).topk(self.op.k + 1).values
            gaps = (values[..., -2] - values[..., -1]).unsqueeze(-1).movedim(-1, self.along)
        real = valid_along(gaps, {axis: inputs[name] for axis, name in self.padding if name in inputs})
        return (gaps if real is None else gaps.masked_fill(~real, torch.inf)).flatten(1).amin(1)


def gate_calls(graph: Graph) -> list[GateCall]:
    """Those of a graph, but for what a scan does in its steps."""
    routes = [route for route in graph.of_kind(RouteNode) if graph.router_of(route).router.chooses_along is None]
    bodies = tuple(f"{route.name}." for route in routes)
    inside = [node for node in graph.of_kind(OpNode) if node.name.startswith(bodies)]
    return [found for node in inside if (found := _call(graph, node)) is not None]


def _call(graph: Graph, node: OpNode) -> GateCall | None:
    if not isinstance(node.op, Above | TopK):
        return None
    (compared,) = graph.inputs(node.name).values()
    type_ = graph.type_of(compared)
    made = node.op.chosen(graph.signature(node))
    assert made is not None and made.place is not None
    chosen = made.place
    size = type_.shape[chosen].size
    if size is None or (isinstance(node.op, TopK) and node.op.k >= size):
        return None
    return GateCall(compared, node.op, chosen, padding_of(graph, type_))
