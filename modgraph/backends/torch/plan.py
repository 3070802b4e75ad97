"""What has to be computed for some results of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from modgraph.backends.torch.route import CompiledRoute
from modgraph.backends.torch.run import Once, Step, Values, run
from modgraph.ir import Result
from modgraph.nn import Parameter


@dataclass(frozen=True)
class Plan:
    """The steps that some results depend on, and where these are found after them."""

    steps: list[Step]
    wanted: tuple[Result, ...]

    def run(self, values: Values) -> list[Tensor]:
        """The wanted results, given the values of the inputs."""
        return run(self.steps, values, self.wanted)

    def begun(self) -> Plan:
        """The same, to be run many times with the same weights: what depends on these alone is made once."""
        return replace(self, steps=[replace(step, compute=_begun(step.compute)) for step in self.steps])


def _begun(compute: Callable[..., Any]) -> Callable[..., Any]:
    return compute.begun() if isinstance(compute, CompiledRoute) else compute


def needed(steps: Sequence[Step], wanted: Iterable[Result]) -> Plan:
    """The steps that some results depend on, without those that compute nothing; an array that is learned is given for
    each example where any reads it so."""
    shown = {Result(step.node, at): result for step in steps for at, result in enumerate(step.shows)}
    sources = tuple(_source(result, shown) for result in wanted)
    read, found = set(sources), list[Step]()
    nodes = {result.node for result in read}
    for step in reversed(steps):
        if step.shows or step.node not in nodes:
            continue
        step = replace(step, operands=tuple(_source(result, shown) for result in step.operands))
        read.update(step.operands, step.lengths)
        nodes.update(result.node for result in (*step.operands, *step.lengths))
        found.append(step)
    for_one = {result for step in found if isinstance(step.compute, Once) for result in step.operands}
    return Plan([_ready(step, read, for_one) for step in reversed(found)], sources)


def _source(result: Result, shown: Mapping[Result, Result]) -> Result:
    """The result that is computed, where others only show it."""
    while result in shown:
        result = shown[result]
    return result


def _ready(step: Step, read: Set[Result], for_one: Set[Result]) -> Step:
    """A step that knows what it takes; an array that only broadcasts is the weight itself."""
    step = replace(step, alone=not step.takes_more)
    if not isinstance(step.compute, Parameter) or Result(step.node) in read:
        return step
    return step if Result(step.node, 1) in for_one else replace(step, compute=step.compute.bare)
