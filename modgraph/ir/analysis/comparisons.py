"""What a graph compares with its targets, as its ops declare it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modgraph.ir.graph import Graph
from modgraph.ir.node import LossNode, OpNode, Result, TargetNode
from modgraph.ops.op import Comparison, Measure


@dataclass(frozen=True)
class Compared:
    """One op that compares a result with a target."""

    node: OpNode
    prediction: Result
    target: str
    comparison: Comparison

    @property
    def measures(self) -> tuple[Measure, ...]:
        return self.comparison.measures

    @property
    def value(self) -> Result:
        """What the op makes of the two."""
        return Result(self.node.name)

    @property
    def ignored(self) -> int | None:
        """The label that does not count, if there is one."""
        ignored: int | None = self._setting(self.comparison.ignore)
        return ignored

    @property
    def missing(self) -> bool:
        """Whether labels may be missing."""
        return bool(self._setting(self.comparison.missing))

    @property
    def may_miss(self) -> bool:
        """Whether it can be told that labels may be missing."""
        return self.comparison.missing is not None

    @property
    def class_weights(self) -> tuple[float, ...]:
        """How much each class counts; empty where all count alike."""
        return self._setting(self.comparison.class_weights) or ()

    @property
    def reduce(self) -> str:
        """What a likelihood takes over an example's positions: mean or sum."""
        return str(getattr(self.node.op, "reduce", "mean"))

    def _setting(self, name: str | None) -> Any:
        return None if name is None else getattr(self.node.op, name)


def comparisons(graph: Graph) -> list[Compared]:
    """The ops of a graph that compare something with a target, in the order of work."""
    found = []
    for node in graph.of_kind(OpNode):
        compares, inputs = node.op.compares, graph.inputs(node.name)
        if compares is not None and isinstance(graph[inputs[compares.target].node], TargetNode):
            found.append(Compared(node, inputs[compares.prediction], inputs[compares.target].node, compares))
    return found


def ignored_labels(graph: Graph) -> dict[str, int]:
    """The label of each target that does not count, though it may be no class, where there is one."""
    found = {each.target: each.ignored for each in comparisons(graph)}
    return {name: ignored for name, ignored in found.items() if ignored is not None}


def with_missing_labels(graph: Graph) -> set[str]:
    """The targets whose labels may be missing: all that reads them compares with them, and knows it."""
    known = {each.node.name for each in comparisons(graph) if each.missing}
    read = [(node.name, result.node) for node in graph for result in graph.inputs(node.name).values()]
    targets = {node.name for node in graph.of_kind(TargetNode)} & {target for _, target in read}
    return targets - {target for reader, target in read if reader not in known}


def compared_in(graph: Graph) -> dict[str, set[str]]:
    """The targets behind each loss."""
    targets = {node.name for node in graph.of_kind(TargetNode)}
    return {loss.name: targets & graph.ancestors([loss.name]) for loss in graph.of_kind(LossNode)}
