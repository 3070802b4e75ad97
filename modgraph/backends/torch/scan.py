"""A scan whose steps are compiled from its region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from copy import copy

import torch
from torch import Tensor, nn

from modgraph.backends.torch.plan import Steps, all_steps, needed
from modgraph.backends.torch.run import Context, stacked_once
from modgraph.declare import sizes
from modgraph.ir import ScanNode
from modgraph.nn import scan


class CompiledScan:
    """Runs the steps of a region along a sequence. It has no weights: they are the model's, under its names."""

    def __init__(self, node: ScanNode, steps: Steps, slots: Sequence[str], model: nn.Module) -> None:
        self.node = node
        self.steps = steps
        self.slots = [*slots]
        self.states = node.states
        self.stacked: Sequence[int] = range(len(node.stacked))
        self.shapes = {state: sizes(node.region.graph[state].types[0].shape) for state in node.states}
        self.model = model
        self.over_batch = any(step.takes_active for step in all_steps(steps))
        self.plan = needed(steps, node.region.results, arguments=self.arguments)

    @property
    def captured(self) -> list[str]:
        """The slots of values from outside, the same at each step."""
        return [slot for slot in self.slots if slot != self.node.variable and slot not in self.node.states]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of a step."""
        return (self.node.variable, *self.states, *self.captured)

    def evaluated(self, read: Set[int]) -> tuple[CompiledScan, list[int]]:
        """The scan outside training, where only some of its results are read, and the places of the operands it takes.

        States that these do not depend on, and what only training reads, are left out.
        """
        following = dict(zip(self.node.states, self.node.following, strict=True))
        stacked, states = sorted(read), tuple[str, ...]()
        while True:
            wanted = (*(following[state] for state in states), *(self.node.stacked[index] for index in stacked))
            reads = {result.node for result in needed(self.steps, wanted, training=False).arguments}
            found = tuple(state for state in self.node.states if state in reads)
            if found == states:
                break
            states = found
        places = [place for place, slot in enumerate(self.slots) if slot in {self.node.variable, *reads}]
        scan = copy(self)
        scan.states, scan.stacked = states, stacked
        scan.slots = [self.slots[place] for place in places]
        scan.plan = needed(self.steps, wanted, training=False, arguments=scan.arguments)
        return scan, places

    def __call__(
        self, *operands: Tensor, length: Tensor | None = None, told: Mapping[str, Tensor] | None = None
    ) -> tuple[Tensor | None, ...]:
        """What flows into the slots, batch first, gives what the region stacks [B, T, ...], None for what is not read;
        draws may be told what to take at each step, [B, T, ...] by name."""
        given = dict(zip(self.slots, operands, strict=True))
        sequence, captured = given[self.node.variable], [given[slot] for slot in self.captured]
        states = [given[state] if state in given else self._zeros(sequence, state) for state in self.states]
        plan, told = self.plan.with_computes(stacked_once), told or {}
        active: list[Tensor] = []  # which examples reach each step [B, T], if anything asks
        if length is not None and self.over_batch and not torch.compiler.is_exporting():
            active = [torch.arange(sequence.shape[1], device=sequence.device) < length.to(sequence.device)[:, None]]

        def step(slices: Sequence[Tensor], states: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            x, *taken = slices
            reached = taken.pop() if active else None
            found = plan.run((x, *states, *captured), Context(dict(zip(told, taken, strict=True)), reached))
            return found[: len(states)], found[len(states) :]

        results = scan(step, (sequence, *told.values(), *active), states, length)
        found = dict(zip(self.stacked, results, strict=True))
        return tuple(found.get(index) for index in range(len(self.node.stacked)))

    def _zeros(self, sequence: Tensor, state: str) -> Tensor:
        """A state's start, in the precision of the sequence, or of the model's weights if it is one of ids."""
        floats = (each.dtype for each in (sequence, *self.model.parameters()) if each.is_floating_point())
        dtype = next(floats, torch.get_default_dtype())
        return torch.zeros(sequence.shape[0], *self.shapes[state], dtype=dtype, device=sequence.device)
