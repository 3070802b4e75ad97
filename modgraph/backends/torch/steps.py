"""The steps of a graph: what computes each node, and from which results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from modgraph.backends.torch.run import Padding, Step
from modgraph.ir import Graph, OpNode, Result, RouteNode, ScanNode, computed_once, free_draws, is_free_draw, told
from modgraph.nn.parameter import for_each
from modgraph.ops.elementwise import MaskPadding
from modgraph.ops.shape import Flatten, Rename

Computed = OpNode | RouteNode | ScanNode


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


def steps_of(graph: Graph, computes: Mapping[str, Callable[..., Any]], alone: bool = True) -> list[Step[Result]]:
    """The steps of a graph in order; values that are the same for every example are computed `alone`, once."""
    once = computed_once(graph) if alone else frozenset[str]()
    return [_step(graph, node, computes[node.name], once) for node in graph if isinstance(node, Computed)]


def _step(graph: Graph, node: Computed, compute: Callable[..., Any], once: Set[str]) -> Step[Result]:
    operands, lengths = _operands(graph, node, once), graph.lengths(node.name)
    step = Step(node.name, compute, operands)
    if isinstance(node, ScanNode):
        inside = tuple(told(draw.name) for draw in free_draws(node.region.graph))
        return replace(step, length=next(iter(lengths.values()), None), forced_inside=inside)
    op = node.op if isinstance(node, OpNode) else None
    if node.name in once:
        if op is not None and op.is_array:
            return step
        first = next(iter(graph.inputs(node.name).values()))
        return replace(step, operands=(first, *operands), compute=Once(compute, len(graph.type_of(first).shape)))
    if op is not None and op.outside_training and len(operands) > 1:
        step = replace(step, evaluated=(operands[[*graph.inputs(node.name)].index(op.outside_training)],))
    step = replace(step, forced=told(node.name) if is_free_draw(node, graph) else "")
    if op is not None and op.over_batch:
        step = replace(step, takes_active=True, each=op.masks_each)
    if not lengths:
        computes_nothing = isinstance(op, Rename | MaskPadding) or (isinstance(op, Flatten) and op.axes == 1)
        return replace(step, same=operands) if computes_nothing else step
    signature = graph.signature(node)
    padded = [tuple((at + 1, lengths[axis]) for at, axis in each.items()) for each in signature.padding()]
    paddings = (Padding(", ".join(f"{axis} {length}" for axis, length in each), each) for each in padded)
    return replace(step, padding=tuple(paddings), each=signature.declaration.masks_each)


def _operands(graph: Graph, node: Computed, once: Set[str]) -> tuple[Result, ...]:
    """What flows into a node: of what is the same for every example that for one alone, where this is enough. Of routes
    it is for f(0)."""
    inputs = graph.inputs(node.name)
    found = tuple(inputs.values())
    if isinstance(node, OpNode) and node.op.is_array:  # its operand tells how many examples there are
        return found
    varies = any(each.node not in once and graph.type_of(each).per == "example" for each in found)
    takes_one = node.name in once or (isinstance(node, OpNode) and node.op.broadcasts and varies)
    of_zero = isinstance(node, RouteNode) and node.lowering == "factorised"
    return tuple(
        Result(each.node, each.index + len(graph[each.node].types))
        if each.node in once and (takes_one or (of_zero and slot == "messages"))
        else each
        for slot, each in inputs.items()
    )
