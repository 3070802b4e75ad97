"""Scans whose states are linear recurrences, computed at all steps at once. B is the batch axis, T that of steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.backends.torch.one_recurrence import count_numbers, run_one_recurrence
from modgraph.backends.torch.plan import CallSteps, Steps, plan_for
from modgraph.backends.torch.regions import CompiledScan
from modgraph.backends.torch.run import Plan
from modgraph.backends.torch.terms import Values
from modgraph.declare import sizes
from modgraph.ir import Result, ScanNode, find_recurrences

SEGMENT = 1_000_000  # numbers of states that are computed together
SHORTEST = 64  # steps of a segment
NARROW = 4  # a value so many times smaller than a state is computed at all steps before the segments


@dataclass(frozen=True)
class Stage:
    """Computes values between two recurrences; the plan reads values that are known before."""

    plan: Plan
    results: tuple[Result, ...]

    def run(self, values: Values) -> None:
        found = self.plan.run([values[each] for each in self.plan.arguments])
        values |= zip(self.results, found, strict=True)


class CompiledRecurrence(CompiledScan):
    """Runs the ops of a region on all steps: those before the states, the states, and those after.

    Values are [B, T, ...]. A long sequence of wide states is cut into segments, to bound memory.
    """

    def __init__(self, node: ScanNode, steps: Steps, slots: Sequence[str], model: nn.Module) -> None:
        super().__init__(node, steps, slots, model)
        self.found = find_recurrences(node)
        self._plan(training=True)

    def specialise(self, read: Set[int]) -> tuple[CompiledScan, list[int]]:
        """The scan outside training with only the results that are read, and the places of the operands that it needs.

        It lacks recurrences that these do not depend on.
        """
        scan, places = super().specialise(read)
        assert isinstance(scan, CompiledRecurrence)
        kept = tuple(each for each in self.found.each if each.state in scan.states)
        scan.found = replace(self.found, each=kept)
        scan._plan(training=False)
        return scan, places

    def _plan(self, training: bool) -> None:
        """Plan the stages, from the last to the first: each computes what later ones and recurrences read.

        The first stage computes narrow values, of all steps even where the others run in segments.
        """
        depends, found = self.found.depends, list[Stage]()
        given = {result for each in self.found.each for result in each.given}
        states = [each.state for each in self.found.each]
        known = {name: read for name, read in depends.items() if read <= {*states}}
        stage_of = {name: max((states.index(each) + 1 for each in read), default=0) for name, read in known.items()}
        stage_of |= dict.fromkeys(self._find_narrow(), -1)
        pending = [self.node.stacked[index] for index in self.stacked]
        self.reads = {*pending}
        for at in reversed(range(-1, len(states) + 1)):
            factors = [factor.value for each in self.found.each[at : at + 1] for factor in each.factors if at >= 0]
            pending += factors
            own = dict.fromkeys(each for each in pending if stage_of[each.node] == at and each not in given)
            names = {name for name in known if stage_of[name] == at and Result(name) not in given}
            found.append(Stage(plan_for(_keep(self.steps, names), own, training), tuple(own)))
            self.reads |= {*factors, *found[-1].plan.arguments}
            pending = [*(each for each in pending if each not in own), *found[-1].plan.arguments]
        self.narrow, *self.stages = found[::-1]

    def _find_narrow(self) -> Iterator[str]:
        """Find the nodes that depend on no state and whose values are narrow compared with the states."""
        graph, found = self.node.region.graph, {self.node.variable}
        widest = max((prod(self.shapes[each.state]) for each in self.found.each), default=0)
        for node in graph:
            read = {each.node for each in graph.inputs(node.name).values()}
            if not (read and read <= found) or any(type_.padded for type_ in node.types):
                continue
            if sum(prod(sizes(type_.shape)) for type_ in node.types) * NARROW <= widest:
                found.add(node.name)
                yield node.name

    def __call__(
        self,
        *operands: Tensor,
        length: Tensor | None = None,
        forced: Mapping[str, Tensor] | None = None,
        mask: Tensor | None = None,
    ) -> tuple[Tensor | None, ...]:
        """Operands, batch first, give the stacked results [B, T, ...], None for those that nothing reads.

        It samples nothing and mixes no examples, so it needs neither forced choices nor a mask of examples.
        """
        given = dict(zip(self.slots, operands, strict=True))
        sequence = given[self.node.variable]
        T, is_traced = sequence.shape[1], torch.compiler.is_exporting() or torch.compiler.is_compiling()
        if not is_traced and T == 0:
            return super().__call__(*operands, length=length)
        mask = None if length is None else torch.arange(T, device=sequence.device) < length.to(sequence.device)[:, None]
        if mask is not None and not is_traced and mask.is_cpu and bool(mask.all()):  # an accelerator would wait
            mask = None  # no example ends early
        states = {each: given[each] if each in given else self._zeros(sequence, each) for each in self.states}
        long = T if is_traced else self._segment(*sequence.shape[:2])
        values = {Result(self.node.variable): sequence}
        self.narrow.run(values)
        parts = []
        for own, here in _cut(values, mask, long):
            steps = own[Result(self.node.variable)].shape[1]
            for slot in self.captured:
                own[Result(slot)] = given[slot].unsqueeze(1).expand(-1, steps, *given[slot].shape[1:])
            parts.append(self._run(own, states, here))
        results = parts[0] if len(parts) == 1 else [torch.cat(each, 1) for each in zip(*parts, strict=True)]
        if mask is not None:
            masks = [mask.reshape(*mask.shape, *[1] * (each.dim() - 2)) for each in results]
            results = [each.masked_fill(~own, 0) for own, each in zip(masks, results, strict=True)]
        found = dict(zip(self.stacked, results, strict=True))
        return tuple(found.get(index) for index in range(len(self.node.stacked)))

    def _segment(self, B: int, T: int) -> int:
        """The steps of a segment: all if they are few."""
        width = B * max([count_numbers(each, self.shapes[each.state]) for each in self.found.each], default=1)
        return T if width * T <= SEGMENT else min(T, max(SHORTEST, SEGMENT // width // SHORTEST * SHORTEST))

    def _run(self, values: Values, states: dict[str, Tensor], mask: Tensor | None) -> list[Tensor]:
        """Run some steps; `states` are those before, and become those after."""
        for stage, each in zip(self.stages, self.found.each, strict=False):
            stage.run(values)
            states[each.state] = run_one_recurrence(each, values, states[each.state], mask, self.reads)
        self.stages[-1].run(values)
        return [values[self.node.stacked[index]] for index in self.stacked]


def _cut(values: Values, mask: Tensor | None, length: int) -> list[tuple[Values, Tensor | None]]:
    """Cut values, and a mask, into segments of steps."""
    if next(iter(values.values())).shape[1] == length:
        return [(values, mask)]
    cuts = [torch.split(x, length, 1) for x in values.values()]
    masks = [None] * len(cuts[0]) if mask is None else torch.split(mask, length, 1)
    return [(dict(zip(values, each, strict=True)), here) for *each, here in zip(*cuts, masks, strict=True)]


def _keep(steps: Steps, names: Set[str]) -> Steps:
    """The steps of some nodes, in calls too."""
    found: list[Any] = []
    for each in steps:
        if isinstance(each, CallSteps):
            found.append(replace(each, steps=_keep(each.steps, names)))
        elif each.node in names:
            found.append(each)
    return found
