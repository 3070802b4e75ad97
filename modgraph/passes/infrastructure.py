"""The base class of passes: a frozen value whose fields are its options, and a function from graph to graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar

from modgraph.ir import Graph, Result


@dataclass(frozen=True)
class Moved:
    """A graph after passes; `results` maps results of the graph before to their replacements."""

    graph: Graph
    results: Mapping[Result, Result] = field(default_factory=dict)

    def then(self, each: Pass) -> Moved:
        after = each.rewrite(self.graph)
        results = {old: after.results.get(now, now) for old, now in self.results.items()}
        return Moved(after.graph, {**after.results, **results})


class Pass:
    """A pure, idempotent function from graph to graph.

    Subclasses override `rewrite`, or `__call__` if no result moves.
    """

    name: ClassVar[str]

    def __call__(self, graph: Graph) -> Graph:
        return self.rewrite(graph).graph

    def rewrite(self, graph: Graph) -> Moved:
        """The graph after this pass, and the results that have moved."""
        return Moved(self(graph))


def apply_passes(graph: Graph, passes: Iterable[Pass]) -> Graph:
    """Apply passes in order."""
    return reduce(lambda found, each: each(found), passes, graph)


def optimise(graph: Graph, passes: Iterable[Pass]) -> Moved:
    """Apply passes in order, and compose the moves of results."""
    return reduce(Moved.then, passes, Moved(graph))
