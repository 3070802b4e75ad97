"""What architectures cost before and after, in all and by what differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from modgraph.diagnostics import ModgraphError
from modgraph.inspect.cost import Cost, check_lengths, cost_of
from modgraph.inspect.diff.renames import name_in
from modgraph.inspect.diff.values import Diff
from modgraph.ir import Graph, OpNode

NOTHING = Cost()


@dataclass(frozen=True)
class Costs:
    """Counts before and after: in all, and of each node that differs, by its place (after, where it is there)."""

    before: Cost
    after: Cost
    nodes: Mapping[str, tuple[Cost, Cost]]


def costs_of(diff: Diff, before: Graph, after: Graph, lengths: Mapping[str, int]) -> Costs:
    """What two graphs cost with axes of any length at these lengths. Raises `ModgraphError` for axes of neither."""
    _check(before, after, lengths)
    costs = cost_of(before, lengths), cost_of(after, lengths)
    old, new = _at(before, costs[0]), _at(after, costs[1])
    nodes = {each.place: (old(each.place), NOTHING) for each in diff.removed}
    nodes |= {each.place: (NOTHING, new(each.place)) for each in diff.added}
    nodes |= {each.after: (old(each.before), new(each.after)) for each in diff.changed}
    return Costs(*costs, nodes)


def _check(before: Graph, after: Graph, lengths: Mapping[str, int]) -> None:
    """An axis need only be one of one of the graphs."""
    for name, length in lengths.items():
        try:
            check_lengths(before, {name: length})
        except ModgraphError:
            check_lengths(after, {name: length})


def _at(graph: Graph, cost: Cost) -> Callable[[str], Cost]:
    """The counts by the places of nodes: of an op that is whose weights it uses; the modules of a pool are counted
    under the pool."""
    owners = {node.name: node.owner for part in graph.parts() for node in part.graph.of_kind(OpNode)}
    return lambda place: cost.nodes.get(owners.get(name_in(place), name_in(place)), NOTHING)
