"""Runs a graph: each node's module on the values of its sources, as far as the wanted results need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from modgraph.backends.torch.route import CompiledRoute
from modgraph.ir import Graph, OpNode, Result, RouteNode, ScanNode

Values = dict[str, tuple[Tensor, ...]]


@dataclass(frozen=True)
class Step:
    """One node's work. `length`, if there is one, tells what is padding."""

    node: str
    operands: tuple[Result, ...]
    length: Result | None
    compute: Callable[..., Any]

    def run(self, values: Values) -> None:
        operands = [values[source.node][source.index] for source in self.operands]
        named = {} if self.length is None else {"length": values[self.length.node][0]}
        result = self.compute(*operands, **named)
        values[self.node] = result if isinstance(result, tuple) else (result,)


def plan(graph: Graph, computes: Mapping[str, Callable[..., Any]]) -> list[Step]:
    """The steps of a graph in order."""
    steps = []
    for node in graph:
        if isinstance(node, OpNode | RouteNode | ScanNode):
            inputs = graph.inputs(node.name)
            length = inputs.pop("length", None)
            steps.append(Step(node.name, tuple(inputs.values()), length, computes[node.name]))
    return steps


def needed(graph: Graph, steps: list[Step], wanted: Iterable[Result]) -> list[Step]:
    """The steps that some results depend on."""
    names = graph.ancestors(result.node for result in wanted)
    return [step for step in steps if step.node in names]


def begun(steps: list[Step]) -> list[Step]:
    """Steps that will run many times with the same weights: what depends on these alone is made once."""
    routes = [step.compute.begun() if isinstance(step.compute, CompiledRoute) else step.compute for step in steps]
    return [replace(step, compute=compute) for step, compute in zip(steps, routes, strict=True)]


def run(steps: list[Step], values: Values, wanted: Iterable[Result]) -> list[Tensor]:
    """The wanted results, given the values of the inputs."""
    for step in steps:
        step.run(values)
    return [values[result.node][result.index] for result in wanted]
