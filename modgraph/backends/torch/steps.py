"""The steps of a graph: what computes each node, and from which results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from modgraph.backends.torch.padding import Padding
from modgraph.ir import (
    Graph,
    Node,
    OpNode,
    Result,
    RouteNode,
    ScanNode,
    computed_once,
    free_draws,
    is_free_draw,
    told,
)
from modgraph.nn.parameter import for_each
from modgraph.ops import Op
from modgraph.ops.padding import MaskPadding
from modgraph.ops.shape import Flatten, Rename


@dataclass(frozen=True)
class Step:
    """One node's work. `padding` is that of each operand whose mask it takes; a scan takes the `length` itself.

    `each` says that it takes a mask for every operand, not that of the first alone. `told` is under what name the
    values may hold what a draw is to take, `told_inside` of the draws within a scan. `takes_active` says that it leaves
    out examples that have ended before a step of a scan. What computes nothing is the `same` as its operand;
    `evaluated` is the one of several that it is outside training.
    """

    node: str
    operands: tuple[Result, ...]
    compute: Callable[..., Any]
    padding: tuple[Padding, ...] = ()
    each: bool = False
    length: Result | None = None
    told: str = ""
    told_inside: tuple[str, ...] = ()
    takes_active: bool = False
    same: tuple[Result, ...] = ()
    evaluated: tuple[Result, ...] = ()

    @property
    def lengths(self) -> list[Result]:
        """The results that tell it of padding."""
        found = [length for each in self.padding for length in each.lengths.values()]
        return list(dict.fromkeys([*found, *filter(None, [self.length])]))


@dataclass(frozen=True)
class Once:
    """What computes a value that is the same for every example: for one, and then for as many as its first operand,
    whose values have `rank` axes, is there for. Behind the results come those for one alone."""

    compute: Callable[..., Any]
    rank: int

    def __call__(self, like: Tensor, *operands: Tensor) -> tuple[Tensor, ...]:
        found = self.compute(*operands)
        each = [for_each(x, like, self.rank) for x in (found if isinstance(found, tuple) else (found,))]
        return (*(all_ for all_, _ in each), *(one for _, one in each))


def steps_of(graph: Graph, computes: Mapping[str, Callable[..., Any]], alone: bool = True) -> list[Step]:
    """The steps of a graph in order; values that are the same for every example are computed `alone`, once."""
    once = computed_once(graph) if alone else frozenset[str]()
    nodes = [node for node in graph if isinstance(node, OpNode | RouteNode | ScanNode)]
    return [_step(graph, node, computes[node.name], once) for node in nodes]


def _step(graph: Graph, node: OpNode | RouteNode | ScanNode, compute: Callable[..., Any], once: Set[str]) -> Step:
    operands, lengths = _operands(graph, node, once), graph.lengths(node.name)
    if isinstance(node, ScanNode):
        inside = tuple(told(draw.name) for draw in free_draws(node.region.graph))
        length = next(iter(lengths.values()), None)
        return Step(node.name, operands, compute, length=length, told_inside=inside)
    if isinstance(node, OpNode | RouteNode) and node.name in once:
        return _step_once(graph, node, compute, operands)
    step = Step(
        node.name,
        operands,
        compute,
        told=told(node.name) if is_free_draw(node, graph) else "",
        evaluated=_evaluated(graph, node, operands),
    )
    if isinstance(node, OpNode) and node.op.over_batch:
        step = replace(step, takes_active=True, each=node.op.masks_each)
    if not lengths:
        return replace(step, same=operands if isinstance(node, OpNode) and _changes_no_number(node.op) else ())
    each = graph.signature(node).declaration.masks_each
    return replace(step, padding=_padding(graph, node, lengths), each=each)


def _step_once(
    graph: Graph, node: OpNode | RouteNode, compute: Callable[..., Any], operands: tuple[Result, ...]
) -> Step:
    """That of a value which is the same for every example, and so has no padding."""
    if isinstance(node, OpNode) and node.op.is_array:
        return Step(node.name, operands, compute)
    first = next(iter(graph.inputs(node.name).values()))
    return Step(node.name, (first, *operands), Once(compute, len(graph.type_of(first).shape)))


def _changes_no_number(op: Op) -> bool:
    """Whether the result of an op is its operand, where that has no padding."""
    return isinstance(op, Rename | MaskPadding) or (isinstance(op, Flatten) and op.axes == 1)


def _evaluated(graph: Graph, node: OpNode | RouteNode, operands: tuple[Result, ...]) -> tuple[Result, ...]:
    """The operand that an op is outside training, where it has others, which are then not computed."""
    if not isinstance(node, OpNode) or not node.op.outside_training or len(operands) == 1:
        return ()
    return (operands[list(graph.inputs(node.name)).index(node.op.outside_training)],)


def _operands(graph: Graph, node: Node, once: Set[str]) -> tuple[Result, ...]:
    """What flows into a node: of what is the same for every example that for one alone, where this is enough."""
    found = tuple(graph.inputs(node.name).values())
    if isinstance(node, OpNode) and node.op.is_array:  # its operand tells how many examples there are
        return found
    broadcasts = node.op.broadcasts if isinstance(node, OpNode) else getattr(node, "lowering", "") == "factorised"
    if node.name in once or (broadcasts and _has_examples(graph, found, once)):
        return tuple(
            Result(each.node, each.index + len(graph[each.node].types)) if each.node in once else each for each in found
        )
    return found


def _has_examples(graph: Graph, values: Iterable[Result], once: Set[str]) -> bool:
    """Whether any of the values differs between examples."""
    return any(each.node not in once and graph.type_of(each).per == "example" for each in values)


def _padding(graph: Graph, node: OpNode | RouteNode, lengths: Mapping[str, Result]) -> tuple[Padding, ...]:
    """That of each operand, its axes counted behind that of the batch."""
    operands = graph.signature(node).padding()
    return tuple(Padding({at + 1: lengths[axis] for at, axis in each.items()}) for each in operands)
