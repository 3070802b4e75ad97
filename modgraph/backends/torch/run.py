"""Runs a graph: each node's module on the values of its sources, as far as the wanted results need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from modgraph.backends.torch.padding import Padding
from modgraph.ir import Graph, Node, OpNode, Result, RouteNode, ScanNode, free_draws, is_free_draw, told
from modgraph.nn import Parameter
from modgraph.ops.shape import Flatten, Rename

Values = dict[str, tuple[Tensor, ...]]


@dataclass(frozen=True)
class Step:
    """One node's work. `padding` is that of each operand whose mask it takes; a scan takes the `length` itself.

    `each` says that it takes a mask for every operand, not that of the first alone. `told` is under what name the
    values may hold what a draw is to take, `told_inside` of the draws within a scan. What computes
    nothing `shows` other results as its own.
    """

    node: str
    operands: tuple[Result, ...]
    compute: Callable[..., Any]
    padding: tuple[Padding, ...] = ()
    each: bool = False
    length: Result | None = None
    told: str = ""
    told_inside: tuple[str, ...] = ()
    shows: tuple[Result, ...] = ()

    def run(self, values: Values) -> None:
        operands = [values[source.node][source.index] for source in self.operands]
        if self.is_told:
            result = self.compute(*operands, **self.masks(operands, values), **self.said(values))
        else:
            result = self.compute(*operands)
        values[self.node] = result if isinstance(result, tuple) else (result,)

    @property
    def is_told(self) -> bool:
        """Whether it takes more than its operands."""
        return bool(self.padding or self.length is not None or self.told or self.told_inside)

    def masks(self, operands: Sequence[Tensor], values: Values) -> dict[str, Any]:
        """The arguments that say what is padding: masks of what is real, or of a scan the length."""
        if self.length is not None:
            return {"length": values[self.length.node][self.length.index]}
        if not self.padding:
            return {}
        masks = tuple(each.mask(x, values) for each, x in zip(self.padding, operands, strict=False))
        return {"real": masks if self.each else masks[0]}

    def said(self, values: Values) -> dict[str, Any]:
        """The argument that says what is taken, where the values hold it: of a draw, or by name of a scan's."""
        if self.told in values:
            return {"told": values[self.told][0]}
        inside = {name: values[name][0] for name in self.told_inside if name in values}
        return {"told": inside} if inside else {}

    @property
    def lengths(self) -> list[Result]:
        """The results that tell it of padding."""
        found = [length for each in self.padding for length in each.lengths.values()]
        return list(dict.fromkeys([*found, *filter(None, [self.length])]))


def plan(graph: Graph, computes: Mapping[str, Callable[..., Any]]) -> list[Step]:
    """The steps of a graph in order."""
    return [
        _step(graph, node, computes[node.name], _operands(graph, node, computes))
        for node in graph
        if isinstance(node, OpNode | RouteNode | ScanNode)
    ]


def _step(
    graph: Graph, node: OpNode | RouteNode | ScanNode, compute: Callable[..., Any], operands: tuple[Result, ...]
) -> Step:
    lengths = graph.lengths(node.name)
    if isinstance(node, ScanNode):
        inside = tuple(told(draw.name) for draw in free_draws(node.region.graph))
        length = next(iter(lengths.values()), None)
        return Step(node.name, operands, compute, length=length, told_inside=inside)
    name = told(node.name) if is_free_draw(node, graph) else ""
    if not lengths:
        return Step(node.name, operands, compute, told=name, shows=_shown(graph, node, operands))
    each = graph.signature(node).declaration.masks_each
    return Step(node.name, operands, compute, _padding(graph, node, lengths), each, told=name)


def _shown(graph: Graph, node: OpNode | RouteNode, operands: tuple[Result, ...]) -> tuple[Result, ...]:
    """What a node only shows, of values without padding: one that changes no number, or a router's own text."""
    if isinstance(node, OpNode):
        same = isinstance(node.op, Rename) or (isinstance(node.op, Flatten) and node.op.axes == 1)
        return operands if same else ()
    return () if graph.router_of(node).router.computes else operands[1 : 1 + len(node.types)]


def _operands(graph: Graph, node: Node, computes: Mapping[str, Callable[..., Any]]) -> tuple[Result, ...]:
    """What flows into a node: one that takes values of examples and an array that is learned takes that once."""
    found = tuple(graph.inputs(node.name).values())
    if not isinstance(node, OpNode) or not node.op.broadcasts:
        return found
    learned = {each for each in found if isinstance(computes.get(each.node), Parameter)}
    if not any(each not in learned and graph.type_of(each).per == "example" for each in found):
        return found
    return tuple(Result(each.node, 1) if each in learned else each for each in found)


def _padding(graph: Graph, node: OpNode | RouteNode, lengths: Mapping[str, Result]) -> tuple[Padding, ...]:
    """That of each operand, its axes counted behind that of the batch."""
    operands = graph.signature(node).padding()
    return tuple(Padding({at + 1: lengths[axis] for at, axis in each.items()}) for each in operands)


def run(steps: list[Step], values: Values, wanted: Iterable[Result]) -> list[Tensor]:
    """The wanted results, given the values of the inputs."""
    for step in steps:
        step.run(values)
    return [values[result.node][result.index] for result in wanted]
