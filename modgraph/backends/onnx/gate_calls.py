"""How close the calls are of ops that choose without scores that a route ranks, by the values that they compare.

Such ops stand in the bodies of routers that record gates of zeros and ones and choose no modules, and behind the choice
of a route: thresholds, and choices of k without scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from modgraph.ir import Graph, OpNode, Padding, Part, Result, RouteNode, padding_of
from modgraph.nn import Arithmetic
from modgraph.nn.padding import valid_along
from modgraph.ops.choice import Above, TopK
from modgraph.ops.compared import Comparison, Greater, GreaterEqual, Less, LessEqual
from modgraph.routers.chosen import Chosen


@dataclass(frozen=True)
class GateCall:
    """An op that chooses values above a threshold or the k largest along an axis (counted from the last) of the values
    `compared`, or that compares two of them. `margin` is the difference of both sides. `padding` has the axes that hold
    padding, from 1, and the inputs with their lengths."""

    compared: tuple[Result, ...]
    op: Above | TopK | Comparison
    along: int
    padding: Padding
    margin: Arithmetic

    def gap(self, values: tuple[Tensor, ...], inputs: Mapping[str, Tensor]) -> Tensor:
        """How far the closest call of each example is from being another: [B] from [B, ...]."""
        if isinstance(self.op, TopK):
            largest = values[0].movedim(self.along, -1).topk(self.op.k + 1).values
            gaps = (largest[..., -2] - largest[..., -1]).unsqueeze(-1).movedim(-1, self.along)
        else:
            gaps = self.margin(*values).abs()
        real = valid_along(gaps, {axis: inputs[name] for axis, name in self.padding if name in inputs})
        return (gaps if real is None else gaps.masked_fill(~real, torch.inf)).flatten(1).amin(1)


def gate_calls(graph: Graph) -> list[GateCall]:
    """Those of a graph, but for what a scan does in its steps."""
    bodies = tuple(f"{each.name}." for each in Part(graph).decisions() if each.facts.chooses_along is None)
    nodes = {node.name: node for node in graph.of_kind(OpNode) if node.name.startswith(bodies)}
    nodes = {name: node for name, node in nodes.items() if isinstance(node.op, Above | TopK)}
    for route in graph.of_kind(RouteNode):
        if isinstance(graph.declaration_of(route), Chosen):
            nodes |= {node.name: node for node in _find_choosing(route, graph)}
    return [found for node in nodes.values() if (found := _call(graph, node)) is not None]


def _find_choosing(route: RouteNode, graph: Graph) -> Iterator[OpNode]:
    """The ops that compute the choice of a route without scores of its own; with such scores, comparisons alone."""
    inputs = graph.inputs(route.name)
    kinds = Above | TopK | Comparison if inputs["scores"] == inputs["choice"] else Above | Comparison
    pending = [inputs["choice"]]
    for result in pending:
        node = graph[result.node]
        if not isinstance(node, OpNode):
            continue
        before = [*graph.inputs(node.name).values()]
        if isinstance(node.op, kinds):
            yield node
        follows = node.op.propagate is not None or bool(node.op.zero_with())
        if isinstance(node.op, Comparison):
            follows = any(_is_exact(each, graph) for each in before)
        if follows:
            as_is = {before[at] for at in node.op.taken_as_is if at < len(before)}
            pending += [each for each in dict.fromkeys(before) if each not in {*as_is, *pending}]


def _call(graph: Graph, node: OpNode) -> GateCall | None:
    op, signature, type_ = node.op, graph.signature(node), node.types[0]
    compared, padding = tuple(graph.inputs(node.name).values()), padding_of(graph, node.types[0])
    if isinstance(op, Comparison):
        measured = isinstance(op, Less | LessEqual | Greater | GreaterEqual)
        if not measured or type_.per == "batch" or any(_is_exact(each, graph) for each in compared):
            return None
        lacks = signature.axes["left_lacks"], signature.axes["right_lacks"]
        return GateCall(compared, op, -1, padding, Arithmetic("-", *lacks, right=op.right))
    assert isinstance(op, Above | TopK)
    place = op.chosen(signature).place
    size = type_.shape[place].size if place is not None else None
    if place is None or (isinstance(op, TopK) and (size is None or op.k >= size)):
        return None
    threshold = op.threshold if isinstance(op, Above) else 0.0
    return GateCall(compared, op, place, padding, Arithmetic("-", right=threshold))


def _is_exact(result: Result, graph: Graph) -> bool:
    """Whether a value holds whole numbers alone: a choice, or ranks."""
    node = graph[result.node]
    if not isinstance(node, OpNode):
        return False
    signature = graph.signature(node)
    return node.op.chosen(signature) is not None or node.op.ranked(signature) is not None
