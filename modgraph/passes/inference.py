"""Leave out what only training needs."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from typing import ClassVar

from modgraph.ir import (
    Change,
    Graph,
    InputNode,
    Narrowed,
    Node,
    OutputNode,
    Part,
    Region,
    Result,
    ScanNode,
    decisions_by_result,
    needed_in,
    pruned,
    rewritten,
)
from modgraph.passes.infrastructure import Pass


@dataclass(frozen=True)
class InferenceOnly(Pass):
    """Leave out targets, losses, and what only they need. What routers decide stays, if its route does."""

    name: ClassVar[str] = "inference"

    def __call__(self, graph: Graph) -> Graph:
        by_result, decisions = decisions_by_result(graph), set[str]()
        kept, live = _keep(graph, decisions)
        while more := {name for result in live for name in by_result.get(result, ())} - decisions:
            decisions |= more
            kept, live = _keep(graph, decisions)
        return rewritten(graph, lambda node, part: kept.get(node.name) if part.graph is graph else node)

    def ensures(self, graph: Graph) -> bool:
        """No losses, and nothing that is not an input and that no output needs."""
        needed = needed_in(graph, graph.outputs.values()).nodes
        return all(isinstance(node, InputNode | OutputNode) or node.name in needed for node in graph)


def _keep(graph: Graph, decisions: Set[str]) -> tuple[dict[str, Change], set[Result]]:
    """What takes the place of the nodes that outputs and some decisions need, by name; and the results they need."""
    kept: dict[str, Change] = {}
    live: set[Result] = set()
    for node in reversed(list(graph)):  # sources come first, so users come before them here
        if isinstance(node, InputNode | OutputNode) or node.name in decisions or _is_live(node, live):
            kept[node.name] = change = narrowed(node, live) if isinstance(node, ScanNode) else node
            live |= _needed(graph, node, change)
    return kept, live


def _is_live(node: Node, live: set[Result]) -> bool:
    return any(Result(node.name, index) in live for index in range(max(1, len(node.types))))


def _needed(graph: Graph, node: Node, change: Node | Narrowed) -> set[Result]:
    """What flows into a node, and what it uses; a narrowed scan has lost arguments."""
    inputs = graph.inputs(node.name)
    if isinstance(change, Narrowed) and isinstance(node, ScanNode) and isinstance(change.node, ScanNode):
        lost = {*node.region.arguments} - {*change.node.region.arguments}
        inputs = {slot: result for slot, result in inputs.items() if slot not in lost}
    used = map(Result, graph.uses(node.name).values())
    return {*inputs.values(), *graph.lengths(node.name).values(), *used}


def narrowed(scan: ScanNode, live: set[Result]) -> Narrowed:
    """A scan without results that nobody reads, states that they do not depend on, and what only these need."""
    graph = scan.region.graph
    wanted = [result for index, result in enumerate(scan.stacked) if Result(scan.name, index) in live]
    following = _depended_on(scan, wanted)
    needed = needed_in(graph, (*wanted, *following.values())).nodes
    decisions = (each for each in Part(graph, scan).decisions() if each.name in needed)
    records = {result for each in decisions for result in each.inside.values()}
    kept = tuple(index for index, result in enumerate(scan.stacked) if result in {*wanted, *records})
    results = (*following.values(), *(scan.stacked[index] for index in kept))
    needed |= {scan.variable}
    region = pruned(
        Region(graph, scan.region.arguments, results),
        lambda node, part: node if _stays(node, part, graph, needed) else None,
    )
    types = tuple(scan.types[index] for index in kept)
    return Narrowed(replace(scan, types=types, region=region, carried=len(following)), kept)


def _stays(node: Node, part: Part, graph: Graph, needed: set[str]) -> bool:
    """Whether a node of a pool's module, or of the scan's graph, is needed."""
    return part.graph is not graph or node.name in needed


def _depended_on(scan: ScanNode, wanted: list[Result]) -> dict[str, Result]:
    """The states that some results of a step depend on, over all steps, and their next values."""
    found: dict[str, Result] = {}
    while True:
        needed = needed_in(scan.region.graph, (*wanted, *found.values())).nodes
        pairs = zip(scan.states, scan.following, strict=True)
        now = {state: following for state, following in pairs if state in needed}
        if now == found:
            return found
        found = now
