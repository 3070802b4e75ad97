"""What has to be computed for some results of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Protocol

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

    @property
    def reads(self) -> set[str]:
        """The names of the values that it must be given, lengths that a batch may leave out among them."""
        read = {result.node for step in self.steps for result in (*step.operands, *step.lengths)}
        return (read | {result.node for result in self.wanted}) - {step.node for step in self.steps}

    def run(self, values: Values) -> list[Tensor]:
        """The wanted results, given the values of the inputs."""
        return run(self.steps, values, self.wanted)

    def begun(self) -> Plan:
        """The same, to be run many times with the same weights: what depends on these alone is made once."""
        return replace(self, steps=[replace(step, compute=_begun(step.compute)) for step in self.steps])


def _begun(compute: Callable[..., Any]) -> Callable[..., Any]:
    return compute.begun() if isinstance(compute, CompiledRoute) else compute


class Narrows(Protocol):
    """A computation of several results that can leave out unread ones outside training."""

    def evaluated(self, read: Set[int]) -> tuple[Callable[..., Any], Sequence[int]]:
        """A computation of these results alone, and the places of its operands."""
        ...


def needed(steps: Sequence[Step], wanted: Iterable[Result], training: bool = True) -> Plan:
    """The steps that some results depend on, without those that compute nothing; an array that is learned is given for
    each example where any reads it so. Outside training, what only training reads is left out."""
    if not training:
        steps = [replace(step, same=step.evaluated) if step.evaluated else step for step in steps]
    same = {Result(step.node): result for step in steps for result in step.same}
    sources = tuple(_source(result, same) for result in wanted)
    found: list[Step] = []
    read = set(sources)
    nodes = {result.node for result in read}
    for step in reversed(steps):
        if step.same or step.node not in nodes:
            continue
        if not training and hasattr(type(step.compute), "evaluated"):
            step = _narrowed(step, {result.index for result in read if result.node == step.node})
        step = replace(step, operands=tuple(_source(result, same) for result in step.operands))
        read.update(step.operands, step.lengths)
        nodes.update(result.node for result in (*step.operands, *step.lengths))
        found.append(step)
    for_one = {result for step in found if isinstance(step.compute, Once) for result in step.operands}
    return Plan([_ready(step, read, for_one) for step in reversed(found)], sources)


def _narrowed(step: Step, read: Set[int]) -> Step:
    """A step outside training, with the results that are read and the operands that these need."""
    narrow: Narrows = step.compute  # type: ignore[assignment]
    compute, places = narrow.evaluated(read)
    return replace(step, compute=compute, operands=tuple(step.operands[place] for place in places))


def _source(result: Result, same: Mapping[Result, Result]) -> Result:
    """The result that is computed, where others are the same."""
    while result in same:
        result = same[result]
    return result


def _ready(step: Step, read: Set[Result], for_one: Set[Result]) -> Step:
    """A step that knows what it takes; an array that only broadcasts is the weight itself."""
    step = replace(step, alone=not step.takes_more)
    if not isinstance(step.compute, Parameter) or Result(step.node) in read:
        return step
    return step if Result(step.node, 1) in for_one else replace(step, compute=step.compute.bare)
