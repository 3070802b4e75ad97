"""What has to be computed for some results of a body, and of the calls in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from modgraph.backends.torch.padding import Padding
from modgraph.backends.torch.run import Action, Mask, Plan, Takes
from modgraph.backends.torch.steps import Once, Step
from modgraph.ir import Result
from modgraph.nn import Parameter


@dataclass(frozen=True, eq=False)
class CallSteps:
    """The steps of a call, in the place of the call. `nodes` are all in it, in order; `values` are the results that it
    gives, of all that others may read."""

    instance: Callable[..., Any]
    steps: Sequence[Step | CallSteps]
    nodes: tuple[str, ...]
    values: tuple[Result, ...]


Steps = Sequence[Step | CallSteps]


def all_steps(steps: Steps) -> Iterator[Step]:
    """The steps, those of calls too, in order."""
    for each in steps:
        if isinstance(each, CallSteps):
            yield from all_steps(each.steps)
        else:
            yield each


class Narrows(Protocol):
    """A computation of several results that can leave out unread ones outside training."""

    def evaluated(self, read: Set[int]) -> tuple[Callable[..., Any], Sequence[int]]:
        """A computation of these results alone, and the places of its operands."""
        ...


def needed(
    steps: Steps, wanted: Iterable[Result], training: bool = True, arguments: Sequence[str] | None = None
) -> Plan:
    """The plan for some results, without steps that compute nothing; an array that is learned is given for each example
    where any reads it so. Outside training, what only training reads is left out. The arguments are those named, or
    what is read and not computed."""
    selection = _Selection(training, _same(steps, training))
    ends = [selection.source(result) for result in wanted]
    selection.reads(*ends)
    given = None if arguments is None else tuple(map(Result, arguments))
    return selection.body(steps, ends, given)


def _same(steps: Steps, training: bool) -> dict[Result, Result]:
    """The results of steps that compute nothing, and what each is."""
    found = {}
    for step in all_steps(steps):
        for result in step.same if training or not step.evaluated else step.evaluated:
            found[Result(step.node)] = result
    return found


@dataclass(frozen=True)
class _Chosen:
    """A step that is needed, and which of its results are read; a call is one with an inner plan."""

    step: Step
    results: tuple[Result, ...]
    inner: Plan | None = None

    @property
    def reads(self) -> Iterator[Result]:
        yield from self.step.operands
        yield from self.step.lengths


@dataclass(eq=False)
class _Selection:
    """What is read so far, while the steps are gone through from the last to the first."""

    training: bool
    same: Mapping[Result, Result]
    read: dict[str, set[int]] = field(default_factory=dict)
    for_one: set[Result] = field(default_factory=set)
    lengths: set[Result] = field(default_factory=set)

    def source(self, result: Result) -> Result:
        """The result that is computed, where others are the same."""
        while result in self.same:
            result = self.same[result]
        return result

    def reads(self, *results: Result) -> None:
        for result in results:
            self.read.setdefault(result.node, set()).add(result.index)

    def body(self, steps: Steps, ends: Sequence[Result], arguments: tuple[Result, ...] | None = None) -> Plan:
        """The plan of a body for the results that are read of it, with those of its calls."""
        found = []
        for each in reversed(steps):
            if isinstance(each, CallSteps):
                if asked := self._asked(each):
                    inner = self.body(each.steps, asked)
                    found.append(_Chosen(Step("", inner.arguments, each.instance), tuple(asked), inner))
            elif each.node in self.read and Result(each.node) not in self.same:
                results = tuple(Result(each.node, index) for index in sorted(self.read[each.node]))
                found.append(_Chosen(self._step(each), results))
        return self._numbered(found[::-1], ends, arguments)

    def _asked(self, call: CallSteps) -> list[Result]:
        """The results of a call that are read: first those that it gives."""
        read = [Result(name, index) for name in call.nodes for index in sorted(self.read.get(name, ()))]
        values = [self.source(value) for value in call.values]
        return [
            *(value for value in dict.fromkeys(values) if value in read),
            *(each for each in read if each not in values),
        ]

    def _step(self, step: Step) -> Step:
        if not self.training and hasattr(type(step.compute), "evaluated"):
            narrow: Narrows = step.compute  # type: ignore[assignment]
            compute, places = narrow.evaluated(self.read[step.node])
            step = replace(step, compute=compute, operands=tuple(step.operands[place] for place in places))
        step = replace(step, operands=tuple(map(self.source, step.operands)))
        self.reads(*step.operands, *step.lengths)
        self.lengths.update(step.lengths)
        if isinstance(step.compute, Once):
            self.for_one.update(step.operands)
        if not isinstance(step.compute, Parameter) or 0 in self.read[step.node]:
            return step
        return step if Result(step.node, 1) in self.for_one else replace(step, compute=step.compute.bare)

    def _numbered(self, found: Sequence[_Chosen], ends: Sequence[Result], given: tuple[Result, ...] | None) -> Plan:
        """A plan of what is chosen, each value with a number: lengths are the last arguments."""
        made = {result for each in found for result in each.results}
        read = dict.fromkeys((*(result for each in found for result in each.reads), *ends))
        arguments = tuple(sorted((each for each in read if each not in made), key=self.lengths.__contains__))
        if given is not None:
            assert {*arguments} <= {*given}, "a region reads what is no argument of it"
            arguments = given
        numbers = {
            result: at for at, result in enumerate((*arguments, *(one for each in found for one in each.results)))
        }
        actions = tuple(_action(each, numbers) for each in found)
        return Plan(arguments, actions, tuple(numbers[result] for result in ends))


def _action(chosen: _Chosen, numbers: Mapping[Result, int]) -> Action:
    step, indices = chosen.step, tuple(result.index for result in chosen.results)
    operands = tuple(numbers[result] for result in step.operands)
    if chosen.inner is not None:
        return Action("", step.compute, operands, tuple(range(len(indices))), inner=chosen.inner)
    takes = Takes(
        masks=tuple(_mask(each, numbers) for each in step.padding),
        each=step.each,
        length=None if step.length is None else numbers[step.length],
        told=step.told,
        told_inside=step.told_inside,
        active=step.takes_active,
    )
    return Action(step.node, step.compute, operands, indices, None if takes == Takes(each=step.each) else takes)


def _mask(padding: Padding, numbers: Mapping[Result, int]) -> Mask:
    return Mask(padding.name, tuple((axis, numbers[length]) for axis, length in padding.lengths.items()))
