"""What a pass is: a frozen value whose fields are its options, called on a graph to give another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar

from modgraph.ir import Graph, Result


@dataclass(frozen=True)
class Moved:
    """A graph after passes, and the results in it that stand for results of the graph before, where they differ."""

    graph: Graph
    results: Mapping[Result, Result] = field(default_factory=dict)

    def then(self, each: Pass) -> Moved:
        after = each.rewrite(self.graph)
        results = {old: after.results.get(now, now) for old, now in self.results.items()}
        return Moved(after.graph, {**after.results, **results})


class Pass:
    """A pure function from graph to graph: subclasses say how to `rewrite` one, or how to call it where nothing moves.
    Applied to what it gave, it changes nothing."""

    name: ClassVar[str]

    def __call__(self, graph: Graph) -> Graph:
        return self.rewrite(graph).graph

    def rewrite(self, graph: Graph) -> Moved:
        """The graph after this pass, and what has moved in it."""
        return Moved(self(graph))


def apply_passes(graph: Graph, passes: Iterable[Pass]) -> Graph:
    """The graph after each pass in turn."""
    return reduce(lambda found, each: each(found), passes, graph)


def optimise(graph: Graph, passes: Iterable[Pass]) -> Moved:
    """The graph after each pass in turn, and where its results are to be had."""
    return reduce(Moved.then, passes, Moved(graph))
