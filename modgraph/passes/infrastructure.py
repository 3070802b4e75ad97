"""What a pass is: a frozen value whose fields are its options, called on a graph to give another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from modgraph.ir import Graph, Result


@dataclass(frozen=True)
class Moved:
    """A graph after passes, and the results in it that stand for results of the graph before, where they differ."""

    graph: Graph
    results: Mapping[Result, Result] = field(default_factory=dict)

    def then(self, each: Pass) -> Moved:
        """The same after another pass."""
        after = each.rewrite(self.graph)
        results = {old: after.results.get(now, now) for old, now in self.results.items()}
        return Moved(after.graph, {**after.results, **results})


class Pass(ABC):
    """A pure function from graph to graph. Applied to what it gave, it changes nothing."""

    name: ClassVar[str]

    def __call__(self, graph: Graph) -> Graph:
        return self.rewrite(graph).graph

    def rewrite(self, graph: Graph) -> Moved:
        """The graph after this pass, and what has moved in it."""
        return Moved(self(graph))

    @abstractmethod
    def ensures(self, graph: Graph) -> bool:
        """Whether a graph is as this pass leaves every graph."""


def apply_passes(graph: Graph, passes: Iterable[Pass]) -> Graph:
    """The graph after each pass in turn."""
    for each in passes:
        graph = each(graph)
    return graph


def optimised(graph: Graph, passes: Iterable[Pass]) -> Moved:
    """The graph after each pass in turn, and where its results are to be had."""
    found = Moved(graph)
    for each in passes:
        found = found.then(each)
    return found
