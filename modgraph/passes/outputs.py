"""Leave out some outputs of a model."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from modgraph.ir import Built, Change, Graph, Part, needed_in, rewritten
from modgraph.ir.node import DecisionNode, InputNode, Node, OpNode, OutputNode, Result
from modgraph.ops.array import State
from modgraph.passes.inference import InferenceOnly
from modgraph.passes.infrastructure import Pass


@dataclass(frozen=True)
class WithoutOutputs(Pass):
    """Leave out the outputs of some labels, what only they need, and inputs that nothing left needs."""

    name: ClassVar[str] = "without_outputs"
    labels: frozenset[str] = frozenset()

    def __call__(self, graph: Graph) -> Graph:
        if not self.labels & graph.outputs.keys():
            return graph
        without = rewritten(
            graph, lambda node, _: None if isinstance(node, OutputNode) and node.label in self.labels else node
        )
        left = _ask_read_inputs(InferenceOnly()(without))
        unread = _unread_inputs(left)
        return rewritten(left, lambda node, part: None if part.graph is left and node.name in unread else node)


def without_outputs(labels: Iterable[str]) -> tuple[Pass, ...]:
    """The pass that leaves some outputs out, if there are any."""
    found = frozenset(labels)
    return (WithoutOutputs(found),) if found else ()


def _ask_read_inputs(graph: Graph) -> Graph:
    """Arrays, which ask an input only how many examples there are, ask one that outputs need for more."""
    pending, read = [each.name for each in (*graph.of_kind(OutputNode), *graph.of_kind(DecisionNode))], set[str]()
    while pending:
        node = graph[pending.pop()]
        if node.name not in read and not _counts_examples(node):
            pending += (result.node for result in graph.inputs(node.name).values())
        read.add(node.name)
    inputs = [each.name for each in graph.of_kind(InputNode) if each.types[0].dtype != "length" and each.name in read]

    def rule(node: Node, part: Part) -> Change:
        if part.graph is not graph or not isinstance(node, OpNode) or not _counts_examples(node):
            return node
        ((slot, asked),) = graph.inputs(node.name).items()
        before = itertools.takewhile(lambda each: each != node, graph)
        known = [each.name for each in before if each.name in inputs]
        return node if asked.node in inputs or not known else Built(((node, {slot: Result(known[0])}),))

    return rewritten(graph, rule)


def _counts_examples(node: Node) -> bool:
    return isinstance(node, OpNode) and (node.op.is_array or isinstance(node.op, State))


def _unread_inputs(graph: Graph) -> set[str]:
    """The inputs that no output needs, and lengths along axes that no other input has any more; none if outputs need
    no input at all, since it is an input that says how many examples there are."""
    needed = needed_in(graph, graph.outputs.values()).nodes
    inputs = graph.input_types
    axes = {axis for name, type_ in inputs.items() if name in needed for axis in type_.padded}
    unread = {name for name, type_ in inputs.items() if name not in needed and type_.of not in axes}
    return unread if needed & inputs.keys() else set()
