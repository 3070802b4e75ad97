"""A graph inside of a node, with declared arguments and results."""

from __future__ import annotations

from dataclasses import dataclass

from modgraph.ir.graph import Graph
from modgraph.ir.node import Result, ScanNode
from modgraph.types import Axis, Misfit, TensorType


@dataclass(frozen=True)
class Region:
    """A graph that a node runs: `arguments` are names of its inputs, `results` values of its nodes, both in order."""

    graph: Graph
    arguments: tuple[str, ...]
    results: tuple[Result, ...]

    @property
    def argument_types(self) -> tuple[TensorType, ...]:
        return tuple(self.graph[name].types[0] for name in self.arguments)

    @property
    def result_types(self) -> tuple[TensorType, ...]:
        return tuple(map(self.graph.type_of, self.results))


def scan_types(scan: ScanNode, time: Axis) -> tuple[TensorType, ...]:
    """The types of a scan's results over a sequence of some length.

    Raises `Misfit` where a state's next value is of another type than the state.
    """
    region = scan.region
    for state, following in zip(scan.states, scan.following, strict=True):
        before, after = region.graph[state].types[0], region.graph.type_of(following)
        if not before.meets(after):
            raise Misfit(f'state "{state}" is {before}, and its next value would be {after}')
    steps = map(region.graph.type_of, scan.stacked)
    return tuple(step.with_shape((time, *step.shape)) for step in steps)
