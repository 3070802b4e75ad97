"""Comparisons of results with targets, as ops declare them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from modgraph.ir.analysis.ranking import find_prediction
from modgraph.ir.graph import Graph
from modgraph.ir.node import LossNode, OpNode, Result, TargetNode
from modgraph.ops.ids import OneHot
from modgraph.ops.measures import ACCURACY, Measure


@dataclass(frozen=True)
class Compared:
    """An op that compares a result with a target, or one that reads the label for a loss of one's own."""

    node: OpNode
    prediction: Result
    target: str
    measures: tuple[Measure, ...]
    ignored: int | None  # the label that does not count, if any
    may_miss: bool  # whether the op has a setting for missing labels
    missing: bool  # whether labels may be missing
    class_weights: (
        tuple[float, ...] | None
    )  # the weight of each class; () if all weigh the same, None without classes or such a setting
    reduce: str  # how a likelihood reduces an example's positions: mean or sum

    @property
    def binary(self) -> bool:
        """Whether the prediction has a single logit for each label, which is no or yes."""
        return self.node.op.compares is not None and self.node.op.compares.binary

    @property
    def value(self) -> Result:
        """The result of the op."""
        return Result(self.node.name)


def comparisons(graph: Graph) -> list[Compared]:
    """List the ops of a graph that compare a result with a target, in the order of the graph.

    Labels that no such op reads may have losses of one's own; the ops that read these follow.
    """
    found = []
    for node in graph.nodes_of(OpNode):
        compares, inputs = node.op.compares, graph.inputs(node.name)
        if compares is not None and isinstance(graph[inputs[compares.target].node], TargetNode):
            settings: dict[str, Any] = vars(node.op)
            of_classes = graph.type_of(inputs[compares.target]).dtype == "class"
            found.append(
                Compared(
                    node,
                    inputs[compares.prediction],
                    inputs[compares.target].node,
                    compares.measures,
                    ignored=settings.get("ignore"),
                    may_miss="missing" in settings,
                    missing=settings.get("missing", False),
                    class_weights=settings.get("class_weights") if of_classes else None,
                    reduce=settings.get("reduce", "mean"),
                )
            )
    return [*found, *_list_readers(graph, {each.target for each in found})]


def _list_readers(graph: Graph, compared: set[str]) -> Iterator[Compared]:
    """Iterate over the ops that read labels which no op compares, where losses imply the prediction."""
    for name, type_ in graph.target_types.items():
        if type_.dtype != "class" or name in compared or (prediction := find_prediction(graph, name)) is None:
            continue
        for reader in graph.users(name):
            if isinstance(node := graph[reader], OpNode):
                facts = {"may_miss": "missing" in vars(node.op), "missing": vars(node.op).get("missing", False)}
                yield Compared(node, prediction, name, (ACCURACY,), None, **facts, class_weights=None, reduce="mean")


def find_ignored_labels(graph: Graph) -> dict[str, int]:
    """Find the ignored label of each target that has one; it need not be a class."""
    found = {each.target: each.ignored for each in comparisons(graph)}
    return {name: ignored for name, ignored in found.items() if ignored is not None}


def with_missing_labels(graph: Graph) -> set[str]:
    """Find the targets whose labels may be missing: only comparisons read them, all with `missing`."""
    known = {each.node.name for each in comparisons(graph) if each.missing}
    known |= {node.name for node in graph.nodes_of(OpNode) if isinstance(node.op, OneHot) and node.op.missing}
    read = [(node.name, result.node) for node in graph for result in graph.inputs(node.name).values()]
    targets = {node.name for node in graph.nodes_of(TargetNode)} & {target for _, target in read}
    return targets - {target for reader, target in read if reader not in known}


def find_loss_targets(graph: Graph) -> dict[str, set[str]]:
    """Find the targets that each loss depends on."""
    targets = {node.name for node in graph.nodes_of(TargetNode)}
    return {loss.name: targets & graph.ancestors([loss.name]) for loss in graph.nodes_of(LossNode)}
