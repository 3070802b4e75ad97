"""What architectures cost before and after, in all and by what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    old, new = _Counts(before, lengths), _Counts(after, lengths)
    return Costs(old.whole, new.whole, dict(_by_node(diff, old, new)))


def _check(before: Graph, after: Graph, lengths: Mapping[str, int]) -> None:
    """An axis need only be one of one of the graphs."""
    for name, length in lengths.items():
        try:
            check_lengths(before, {name: length})
        except ModgraphError:
            check_lengths(after, {name: length})


class _Counts:
    """The counts of one graph, by the places of its nodes."""

    def __init__(self, graph: Graph, lengths: Mapping[str, int]) -> None:
        self.whole = cost_of(graph, lengths)
        self.owners = {node.name: node.owner for part in graph.parts() for node in part.graph.of_kind(OpNode)}

    def at(self, place: str) -> Cost:
        """Of a node that is whose weights it uses; the modules of a pool are counted under the pool."""
        name = name_in(place)
        return self.whole.nodes.get(self.owners.get(name, name), NOTHING)


def _by_node(diff: Diff, old: _Counts, new: _Counts) -> Iterator[tuple[str, tuple[Cost, Cost]]]:
    for gone in diff.removed:
        yield gone.place, (old.at(gone.place), NOTHING)
    for come in diff.added:
        yield come.place, (NOTHING, new.at(come.place))
    for each in diff.changed:
        yield each.after, (old.at(each.before), new.at(each.after))
