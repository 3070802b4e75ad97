"""Runs a graph: each node's module on the values of its sources, as far as the wanted results need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from modgraph.backends.torch.padding import Padding
from modgraph.backends.torch.route import CompiledRoute
from modgraph.ir import Graph, Node, OpNode, Result, RouteNode, ScanNode
from modgraph.nn.parameter import for_each

Values = dict[str, tuple[Tensor, ...]]


@dataclass(frozen=True)
class Step:
    """One node's work. `padding` is that of each operand whose mask it takes; a scan takes the `length` itself.

    `each` says that it takes a mask for every operand, not that of the first alone. What a route has in `common` with
    others is kept under this name by the first of them that runs.
    """

    node: str
    operands: tuple[Result, ...]
    compute: Callable[..., Any]
    padding: tuple[Padding, ...] = ()
    each: bool = False
    length: Result | None = None
    common: str = ""

    def run(self, values: Values) -> None:
        operands = [values[source.node][source.index] for source in self.operands]
        given = self.masks(operands, values)
        if self.common:
            if self.common not in values:
                assert isinstance(self.compute, CompiledRoute)
                values[self.common] = (self.compute.common(*operands, **given),)
            given["common"] = values[self.common][0]
        result = self.compute(*operands, **given)
        values[self.node] = result if isinstance(result, tuple) else (result,)

    def masks(self, operands: Sequence[Tensor], values: Values) -> dict[str, Any]:
        """The arguments that say what is padding: masks of what is real, or of a scan the length."""
        if self.length is not None:
            return {"length": values[self.length.node][self.length.index]}
        if not self.padding:
            return {}
        masks = tuple(each.mask(x, values) for each, x in zip(self.padding, operands, strict=False))
        return {"real": masks if self.each else masks[0]}

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


def plan(graph: Graph, computes: Mapping[str, Callable[..., Any]], once: Set[str] = frozenset()) -> list[Step]:
    """The steps of a graph in order; of values that are the same for every example, some are computed `once`."""
    steps = []
    for node in graph:
        if isinstance(node, OpNode | RouteNode | ScanNode):
            operands, compute = _operands(graph, node, once), computes[node.name]
            if isinstance(node, OpNode) and node.name in once and not node.op.is_array:
                first = next(iter(graph.inputs(node.name).values()))
                operands, compute = (first, *operands), Once(compute, len(graph.type_of(first).shape))
            lengths = graph.lengths(node.name)
            common = compute.common_name(operands[0]) if isinstance(compute, CompiledRoute) else ""
            if not lengths:
                steps.append(Step(node.name, operands, compute, common=common))
            elif isinstance(node, ScanNode):
                (length,) = lengths.values()
                steps.append(Step(node.name, operands, compute, length=length))
            else:
                each = graph.signature(node).declaration.masks_each
                steps.append(Step(node.name, operands, compute, _padding(graph, node, lengths), each, common=common))
    return steps


def _operands(graph: Graph, node: Node, once: Set[str]) -> tuple[Result, ...]:
    """What flows into a node: of what is the same for every example that for one alone, where this is enough."""
    found = tuple(graph.inputs(node.name).values())
    if isinstance(node, OpNode) and (node.op.broadcasts or node.name in once):
        return tuple(
            Result(each.node, each.index + len(graph[each.node].types)) if each.node in once else each for each in found
        )
    return found


def _padding(graph: Graph, node: OpNode | RouteNode, lengths: Mapping[str, Result]) -> tuple[Padding, ...]:
    """That of each operand, its axes counted behind that of the batch."""
    operands = graph.signature(node).padding()
    return tuple(Padding({at + 1: lengths[axis] for at, axis in each.items()}) for each in operands)


def needed(graph: Graph, steps: list[Step], wanted: Iterable[Result]) -> list[Step]:
    """The steps that some results depend on."""
    names = graph.ancestors(result.node for result in wanted)
    return [step for step in steps if step.node in names]


def begun(steps: list[Step]) -> list[Step]:
    """Steps that will run many times with the same weights: what depends on these alone is made once."""
    routes = [step.compute.begun() if isinstance(step.compute, CompiledRoute) else step.compute for step in steps]
    return [replace(step, compute=compute) for step, compute in zip(steps, routes, strict=True)]


def run(steps: list[Step], values: Values, wanted: Iterable[Result]) -> list[Tensor]:
    """The wanted results, given the values of the inputs."""
    for step in steps:
        step.run(values)
    return [values[result.node][result.index] for result in wanted]
