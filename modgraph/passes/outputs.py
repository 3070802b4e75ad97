"""Remove outputs of a model; turn records of novelty into outputs, or remove them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from modgraph.declare import Role
from modgraph.ir import Built, Change, Decision, Graph, Part, copy_graph, find_dependencies, rewrite_graph
from modgraph.ir.node import DecisionNode, InputNode, Node, OpNode, OutputNode, Result
from modgraph.ops.array import State
from modgraph.passes.inference import InferenceOnly
from modgraph.passes.infrastructure import Pass


@dataclass(frozen=True)
class WithoutOutputs(Pass):
    """Remove the outputs of some labels, what only they need, and inputs that no remaining node needs."""

    name: ClassVar[str] = "without_outputs"
    labels: frozenset[str] = frozenset()

    def __call__(self, graph: Graph) -> Graph:
        if not self.labels & graph.outputs.keys():
            return graph
        without = rewrite_graph(
            graph, lambda node, _: None if isinstance(node, OutputNode) and node.label in self.labels else node
        )
        left = _ask_read_inputs(InferenceOnly()(without))
        unread = _unread_inputs(left)
        return rewrite_graph(left, lambda node, part: None if part.graph is left and node.name in unread else node)


def drop_outputs(labels: Iterable[str]) -> tuple[Pass, ...]:
    """The pass that removes some outputs, if there are any."""
    found = frozenset(labels)
    return (WithoutOutputs(found),) if found else ()


def _ask_read_inputs(graph: Graph) -> Graph:
    """Let arrays, which read an input only for the batch size, read one that outputs need anyway."""
    pending, read = [each.name for each in (*graph.nodes_of(OutputNode), *graph.nodes_of(DecisionNode))], set[str]()
    while pending:
        node = graph[pending.pop()]
        if node.name not in read and not _counts_examples(node):
            pending += (result.node for result in graph.inputs(node.name).values())
        read.add(node.name)
    inputs = [each.name for each in graph.nodes_of(InputNode) if each.types[0].dtype != "length" and each.name in read]

    def rule(node: Node, part: Part) -> Change:
        if part.graph is not graph or not isinstance(node, OpNode) or not _counts_examples(node):
            return node
        ((slot, asked),) = graph.inputs(node.name).items()
        before = itertools.takewhile(lambda each: each != node, graph)
        known = [each.name for each in before if each.name in inputs]
        return node if asked.node in inputs or not known else Built(((node, {slot: Result(known[0])}),))

    return rewrite_graph(graph, rule)


def _counts_examples(node: Node) -> bool:
    return isinstance(node, OpNode) and (node.op.is_array or isinstance(node.op, State))


def _unread_inputs(graph: Graph) -> set[str]:
    """The inputs that no output needs, and lengths of axes that no needed input has.

    The set is empty if outputs need no input at all: an input gives the batch size.
    """
    needed = find_dependencies(graph, graph.outputs.values()).nodes
    inputs = graph.input_types
    axes = {axis for name, type_ in inputs.items() if name in needed for axis in type_.padded}
    unread = {name for name, type_ in inputs.items() if name not in needed and type_.of not in axes}
    return unread if needed & inputs.keys() else set()


@dataclass(frozen=True)
class NoveltyAsOutputs(Pass):
    """Make every record of novelty an output, named after record and route: `novelty.blocks.9.adapter`."""

    name: ClassVar[str] = "novelty_as_outputs"

    def __call__(self, graph: Graph) -> Graph:
        found = copy_graph(graph)
        for label, result in novelties(graph).items():
            if label not in graph.outputs:
                found.add(OutputNode(name=f"output.{label}", label=label), {"x": result})
        return found


@dataclass(frozen=True)
class WithoutNovelty(Pass):
    """Remove records of novelty that nothing reads, and what only they need; in a scan they stay."""

    name: ClassVar[str] = "without_novelty"

    def __call__(self, graph: Graph) -> Graph:
        left_out = find_unread_novelties(graph)

        def rule(node: Node, part: Part) -> Change:
            if not isinstance(node, DecisionNode) or part.graph.router_of(node).name not in left_out:
                return node
            return replace(node, records=tuple(each for each in node.records if each.role is not Role.NOVELTY))

        return InferenceOnly()(rewrite_graph(graph, rule)) if left_out else graph


def novelties(graph: Graph) -> dict[str, Result]:
    """The records of novelty, by `record.label`; for a route in a scan, stacked over the steps."""
    decisions = graph.decisions()
    return {f"{name}.{each.label}": each.results[name] for each in decisions for name in _names(each)}


def _names(decision: Decision) -> list[str]:
    return [record.name for record in decision.declared if record.role is Role.NOVELTY]


def find_unread_novelties(graph: Graph) -> frozenset[str]:
    """The routers whose records of novelty nothing reads on any of their routes."""
    readers = (node.name for node in graph if not isinstance(node, DecisionNode))
    read = {result for name in readers for result in graph.inputs(name).values()}
    decisions, kept = graph.decisions(), set()
    for each in decisions:
        names, records = _names(each), each.inside
        if each.part.graph is not graph or not names or any(records[name] in read for name in names):
            kept.add(each.router.name)
    return frozenset({each.router.name for each in decisions} - kept)
