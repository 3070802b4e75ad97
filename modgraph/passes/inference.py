"""Leave out what only training needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from modgraph.ir import SCAN_SLOTS, Graph, InputNode, Node, OutputNode, Result, RouteNode, ScanNode
from modgraph.passes.infrastructure import Pass, rebuilt


@dataclass(frozen=True)
class InferenceOnly(Pass):
    """Leave out targets, losses, and what only they need. What routes record stays, if the route does."""

    name: ClassVar[str] = "inference"

    def __call__(self, graph: Graph) -> Graph:
        kept: dict[str, Node] = {}
        moved: dict[Result, Result] = {}
        live: set[Result] = set()
        for node in reversed(list(graph)):  # sources come first, so users come before them here
            if isinstance(node, ScanNode) and _is_live(node, live):
                kept[node.name] = scan = pruned(node, live)
                moved |= _moved(node, scan)
                slots = {slot: result for slot, result in graph.inputs(node.name).items() if _takes(scan, slot)}
                live |= {*slots.values(), *graph.lengths(node.name).values()}
            elif isinstance(node, InputNode | OutputNode) or _is_live(node, live):
                kept[node.name] = node
                live |= {*graph.inputs(node.name).values(), *graph.lengths(node.name).values()}
                live |= {*map(Result, graph.uses(node.name).values())}
        return rebuilt(graph, lambda node: kept.get(node.name), moved)


def _is_live(node: Node, live: set[Result]) -> bool:
    return any(Result(node.name, index) in live for index in range(max(1, len(node.types))))


def _takes(scan: ScanNode, slot: str) -> bool:
    return slot in SCAN_SLOTS or slot in scan.region


def _moved(before: ScanNode, after: ScanNode) -> dict[Result, Result]:
    """Results of a scan under the places they have once others are gone."""
    return {
        Result(before.name, before.stacked.index(name)): Result(after.name, index)
        for index, name in enumerate(after.stacked)
    }


def pruned(scan: ScanNode, live: set[Result]) -> ScanNode:
    """A scan without results that nobody reads, states that they do not depend on, and what only these need."""
    region = scan.region
    wanted = [f"output.{name}" for index, name in enumerate(scan.stacked) if Result(scan.name, index) in live]
    states: set[str] = set()
    while True:
        needed = region.ancestors(wanted)
        found = {state for state in scan.states if state in needed}
        if found == states:
            break
        states = found
        wanted += [f"output.next.{state}" for state in scan.states if state in states]
    routes = [node.name for node in region.of_kind(RouteNode) if node.name in needed]
    wanted += [f"output.{name}" for name in scan.stacked if name.rpartition(".")[0] in routes]
    needed = region.ancestors(wanted) | {scan.variable}
    kept = [index for index, name in enumerate(scan.stacked) if f"output.{name}" in needed]
    return replace(
        scan,
        types=tuple(scan.types[index] for index in kept),
        region=rebuilt(region, lambda node: node if node.name in needed else None),
        states=tuple(state for state in scan.states if state in states),
        stacked=tuple(scan.stacked[index] for index in kept),
    )
