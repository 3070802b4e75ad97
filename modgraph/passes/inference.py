"""Remove what only training needs, and dead nodes."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from typing import ClassVar

from modgraph.ir import (
    Graph,
    Region,
    Result,
    ScanNode,
    find_decisions_by_result,
    find_dependencies,
    find_moved_states,
)
from modgraph.ir.node import DecisionNode, GrowthNode, InputNode, LossNode, OutputNode, TargetNode
from modgraph.ir.rewrite import Built, Change, prune_region, rewrite_graph
from modgraph.passes.infrastructure import Pass


@dataclass(frozen=True)
class InferenceOnly(Pass):
    """Remove targets, losses, and what only they need. A decision stays if its route does."""

    name: ClassVar[str] = "inference"

    def __call__(self, graph: Graph) -> Graph:
        by_result, decisions, before = find_decisions_by_result(graph), set[str](), -1
        while before < len(decisions):
            before = len(decisions)
            kept, live = _keep(graph, decisions)
            decisions |= {name for result in live for name in by_result.get(result, ())}
        return rewrite_graph(graph, lambda node, part: kept.get(node.name) if part.graph is graph else node)


def _keep(graph: Graph, decisions: Set[str]) -> tuple[dict[str, Change], set[Result]]:
    """Find the replacements of the nodes that outputs and `decisions` need, by name, and the live results."""
    kept: dict[str, Change] = {}
    live: set[Result] = set()
    for node in reversed(list(graph)):  # sources come first, so users come before them here
        is_live = any(Result(node.name, index) in live for index in range(max(1, len(node.types))))
        if not (is_live or isinstance(node, InputNode | OutputNode) or node.name in decisions):
            continue
        inputs, kept[node.name] = graph.inputs(node.name), node
        if isinstance(node, ScanNode):
            scan, places = narrow_scan(node, live)
            inputs = {slot: result for slot, result in inputs.items() if slot in scan.region.arguments}
            moved = {Result(node.name, old): Result(node.name, new) for new, old in enumerate(places)}
            kept[node.name] = Built(((scan, inputs),), moved=moved)
        live |= {*inputs.values(), *graph.lengths(node.name).values(), *map(Result, graph.uses(node.name).values())}
    return kept, live


def narrow_scan(scan: ScanNode, live: Set[Result]) -> tuple[ScanNode, tuple[int, ...]]:
    """Remove dead results of a scan, states that the others do not depend on, and what only these need.

    Returns the scan, and the old places of the results that it keeps.
    """
    graph = scan.region.graph
    if not any(Result(scan.name, index) in live for index in range(scan.final)):
        live = {*live, *[Result(scan.name)][: scan.final]}  # a scan that ends by a value holds one
    wanted = [result for index, result in enumerate(scan.stacked) if Result(scan.name, index) in live]
    ends = () if scan.going is None else (scan.going,)
    following: dict[str, Result] = {}
    while True:
        needed = find_dependencies(graph, (*wanted, *ends, *following.values())).nodes
        found = {state: next_ for state, next_ in zip(scan.states, scan.following, strict=True) if state in needed}
        if found == following:
            break
        following = found
    decisions = (each for each in graph.decisions() if (each.part.outermost or each.node).name in needed)
    records = {result for each in decisions for result in each.results.values()}
    kept = tuple(index for index, result in enumerate(scan.stacked) if result in {*wanted, *records})
    results = (*following.values(), *ends, *(scan.stacked[index] for index in kept))
    needed |= {scan.variable}
    region = prune_region(
        Region(graph, scan.region.arguments, results),
        lambda node, part: node if part.graph is not graph or node.name in needed else None,
    )
    types = tuple(scan.types[index] for index in kept)
    final = sum(index < scan.final for index in kept)
    return replace(scan, types=types, region=region, carried=len(following), final=final), kept


ENDS = InputNode | TargetNode | OutputNode | LossNode | DecisionNode | GrowthNode


@dataclass(frozen=True)
class Prune(Pass):
    """Remove nodes that no output, loss, decision, growth, next state or `asked` node needs. Inputs stay."""

    name: ClassVar[str] = "prune"

    asked: frozenset[str] = frozenset()

    def __call__(self, graph: Graph) -> Graph:
        dead = find_dead_nodes(graph, self.asked)
        if not dead:
            return graph
        return rewrite_graph(graph, lambda node, part: None if part.graph is graph and node.name in dead else node)


def find_dead_nodes(graph: Graph, asked: Set[str]) -> set[str]:
    """The dead nodes of a graph."""
    return {node.name for node in graph} - graph.ancestors(list_ends(graph, asked))


def list_ends(graph: Graph, asked: Set[str]) -> list[str]:
    """List the nodes for which a graph is computed, `asked` ones among them."""
    results = (*graph.records().values(), *find_moved_states(graph).values())
    ends = [node.name for node in graph if isinstance(node, ENDS) or node.name in asked]
    return [*ends, *(result.node for result in results)]
