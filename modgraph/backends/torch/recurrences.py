"""Scans whose states are linear recurrences, computed at all steps at once. B is the batch axis, T that of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.backends.torch.one_recurrence import count_numbers, run_one_recurrence
from modgraph.backends.torch.plan import CallSteps, Steps, plan_for
from modgraph.backends.torch.regions import CompiledScan
from modgraph.backends.torch.run import Plan
from modgraph.backends.torch.terms import Values
from modgraph.ir import Result, ScanNode, find_recurrences

SEGMENT = 1_000_000  # numbers of states that are computed together
SHORTEST = 64  # steps of a segment


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
        self.stages = self._plan(training=True)

    def specialise(self, read: Set[int]) -> tuple[CompiledScan, list[int]]:
        """The scan outside training with only the results that are read, and the places of the operands that it needs.

        It lacks recurrences that these do not depend on.
        """
        scan, places = super().specialise(read)
        assert isinstance(scan, CompiledRecurrence)
        kept = tuple(each for each in self.found.each if each.state in scan.states)
        scan.found = replace(self.found, each=kept)
        scan.stages = scan._plan(training=False)
        return scan, places

    def _plan(self, training: bool) -> list[Stage]:
        """Plan the stages, from the last to the first: each computes what later ones and recurrences read."""
        depends, found = self.found.depends, list[Stage]()
        given = {result for each in self.found.each for result in each.given}
        states = [each.state for each in self.found.each]
        known = {name: read for name, read in depends.items() if read <= {*states}}
        stage_of = {name: max((states.index(each) + 1 for each in read), default=0) for name, read in known.items()}
        pending = [self.node.stacked[index] for index in self.stacked]
        for at in reversed(range(len(states) + 1)):
            pending += [factor.value for each in self.found.each[at : at + 1] for factor in each.factors]
            own = dict.fromkeys(each for each in pending if stage_of[each.node] == at and each not in given)
            names = {name for name in known if stage_of[name] == at and Result(name) not in given}
            found.append(Stage(plan_for(_keep(self.steps, names), own, training), tuple(own)))
            pending = [*(each for each in pending if each not in own), *found[-1].plan.arguments]
        return found[::-1]

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
        if mask is not None and not is_traced and bool(mask.all()):
            mask = None  # no example ends early
        states = {each: given[each] if each in given else self._zeros(sequence, each) for each in self.states}
        long = T if is_traced else self._segment(*sequence.shape[:2])
        parts = []
        for x, here in [(sequence, mask)] if long == T else _cut(sequence, mask, long):
            values = {Result(self.node.variable): x}
            for slot in self.captured:
                values[Result(slot)] = given[slot].unsqueeze(1).expand(-1, x.shape[1], *given[slot].shape[1:])
            parts.append(self._run(values, states, here))
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
            states[each.state] = run_one_recurrence(each, values, states[each.state], mask)
        self.stages[-1].run(values)
        return [values[self.node.stacked[index]] for index in self.stacked]


def _cut(sequence: Tensor, mask: Tensor | None, length: int) -> list[tuple[Tensor, Tensor | None]]:
    cuts = [slice(start, start + length) for start in range(0, sequence.shape[1], length)]
    return [(sequence[:, each], None if mask is None else mask[:, each]) for each in cuts]


def _keep(steps: Steps, names: Set[str]) -> Steps:
    """The steps of some nodes, in calls too."""
    found: list[Any] = []
    for each in steps:
        if isinstance(each, CallSteps):
            found.append(replace(each, steps=_keep(each.steps, names)))
        elif each.node in names:
            found.append(each)
    return found
