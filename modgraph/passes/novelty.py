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
        for label, result in novelties(graph).items():
            if label not in graph.outputs:
                found.add(OutputNode(name=f"output.{label}", label=label), {"x": result})
        return found


@dataclass(frozen=True)
class WithoutNovelty(Pass):
    """Leave out records of novelty that nothing reads, and what only they need. In a scan they stay."""

    name: ClassVar[str] = "without_novelty"

    def __call__(self, graph: Graph) -> Graph:
        left_out = unread_novelties(graph)

        def rule(node: Node, part: Part) -> Change:
            if not isinstance(node, DecisionNode) or part.graph.router_of(node).name not in left_out:
                return node
            return replace(node, records=tuple(each for each in node.records if each.role is not Role.NOVELTY))

        return InferenceOnly()(rewritten(graph, rule)) if left_out else graph


def novelties(graph: Graph) -> dict[str, Result]:
    """The records of novelty, by `record.label`; of a route inside a scan, those of all steps."""
    decisions = graph.decisions()
    return {f"{name}.{each.label}": each.results[name] for each in decisions for name in _names(each)}


def _names(decision: Decision) -> list[str]:
    return [record.name for record in decision.declared if record.role is Role.NOVELTY]


def unread_novelties(graph: Graph) -> frozenset[str]:
    """The routers whose records of novelty nothing reads, in any of their routes."""
    readers = (node.name for node in graph if not isinstance(node, DecisionNode))
    read = {result for name in readers for result in graph.inputs(name).values()}
    decisions, kept = graph.decisions(), set()
    for each in decisions:
        names, records = _names(each), each.inside
        if each.part.graph is not graph or not names or any(records[name] in read for name in names):
            kept.add(each.router.name)
    return frozenset({each.router.name for each in decisions} - kept)
