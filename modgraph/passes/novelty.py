"""What routers record of novelty, in inference: outputs of the model, or left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from modgraph.declare import Role
from modgraph.ir import Change, Decision, DecisionNode, Graph, Node, OutputNode, Part, Result, rewritten
from modgraph.passes.inference import InferenceOnly
from modgraph.passes.infrastructure import Pass


@dataclass(frozen=True)
class NoveltyAsOutputs(Pass):
    """Make every record of novelty an output, called as it is and after its route: `novelty.blocks.9.adapter`."""

    name: ClassVar[str] = "novelty_as_outputs"

    def __call__(self, graph: Graph) -> Graph:
        found = rewritten(graph)
        for label, result in self._missing(graph).items():
            found.add(OutputNode(name=f"output.{label}", label=label), {"x": result})
        return found

    def ensures(self, graph: Graph) -> bool:
        return not self._missing(graph)

    def _missing(self, graph: Graph) -> dict[str, Result]:
        return {label: result for label, result in novelties(graph).items() if label not in graph.outputs}


@dataclass(frozen=True)
class WithoutNovelty(Pass):
    """Leave out records of novelty that nothing reads, and what only they need. In a scan they stay."""

    name: ClassVar[str] = "without_novelty"

    def __call__(self, graph: Graph) -> Graph:
        left_out = _unread(graph)
        return InferenceOnly()(rewritten(graph, _Without(left_out))) if left_out else graph

    def ensures(self, graph: Graph) -> bool:
        return not _unread(graph)


def novelties(graph: Graph) -> dict[str, Result]:
    """The records of novelty, by `record.label`; of a route inside a scan, those of all steps."""
    decisions = graph.decisions()
    return {f"{name}.{each.label}": each.results[name] for each in decisions for name in _names(each)}


def _names(decision: Decision) -> list[str]:
    return [record.name for record in decision.declared if record.role is Role.NOVELTY]


def _unread(graph: Graph) -> frozenset[str]:
    """The routers whose records of novelty nothing reads, in any of their routes."""
    readers = (node.name for node in graph if not isinstance(node, DecisionNode))
    read = {result for name in readers for result in graph.inputs(name).values()}
    decisions, kept = graph.decisions(), set()
    for each in decisions:
        names, records = _names(each), each.inside
        if each.part.graph is not graph or not names or any(records[name] in read for name in names):
            kept.add(each.router.name)
    return frozenset({each.router.name for each in decisions} - kept)


@dataclass(frozen=True)
class _Without:
    """The rule that takes the records of novelty from what some routers decide."""

    routers: frozenset[str]

    def __call__(self, node: Node, part: Part) -> Change:
        if isinstance(node, DecisionNode) and part.graph.router_of(node).name in self.routers:
            return replace(node, records=tuple(each for each in node.records if each.role is not Role.NOVELTY))
        return node
