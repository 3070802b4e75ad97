"""A scan whose steps are compiled from its region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from copy import copy

import torch
from torch import Tensor, nn

from modgraph.backends.torch.plan import needed
from modgraph.backends.torch.run import ACTIVE, Step, Values
from modgraph.declare import sizes
from modgraph.ir import ScanNode
from modgraph.nn import scan


class CompiledScan:
    """Runs the steps of a region along a sequence. It has no weights: they are the model's, under its names."""

    def __init__(self, node: ScanNode, steps: list[Step], slots: Sequence[str], model: nn.Module) -> None:
        self.node = node
        self.steps = steps
        self.slots = [*slots]
        self.states = node.states
        self.stacked: Sequence[int] = range(len(node.stacked))
        self.plan = needed(steps, node.region.results)
        self.shapes = {state: sizes(node.region.graph[state].types[0].shape) for state in node.states}
        self.model = model
        self.over_batch = any(step.takes_active for step in self.plan.steps)

    def evaluated(self, read: Set[int]) -> tuple[CompiledScan, list[int]]:
        """The scan outside training, where only some of its results are read, and the places of the operands it takes.

        States that these do not depend on, and what only training reads, are left out.
        """
        following = dict(zip(self.node.states, self.node.following, strict=True))
        stacked, states = sorted(read), tuple[str, ...]()
        while True:
            wanted = (*(following[state] for state in states), *(self.node.stacked[index] for index in stacked))
            plan = needed(self.steps, wanted, training=False)
            found = tuple(state for state in self.node.states if state in plan.reads)
            if found == states:
                break
            states = found
        reads = {self.node.variable, *plan.reads}
        places = [place for place, slot in enumerate(self.slots) if slot in reads]
        scan = copy(self)
        scan.plan, scan.states, scan.stacked = plan, states, stacked
        scan.slots = [self.slots[place] for place in places]
        return scan, places

    def __call__(
        self, *operands: Tensor, length: Tensor | None = None, told: Mapping[str, Tensor] | None = None
    ) -> tuple[Tensor | None, ...]:
        """What flows into the slots, batch first, gives what the region stacks [B, T, ...], None for what is not read;
        draws may be told what to take at each step, [B, T, ...] by name."""
        given = dict(zip(self.slots, operands, strict=True))
        sequence = given.pop(self.node.variable)
        starts = [given.pop(state, None) for state in self.states]
        states = [
            self._zeros(sequence, state) if start is None else start
            for state, start in zip(self.states, starts, strict=True)
        ]
        constant: Values = {name: (value,) for name, value in given.items()}
        plan = self.plan.begun()
        told = dict(told or {})
        if length is not None and self.over_batch and not torch.compiler.is_exporting():
            told[ACTIVE] = torch.arange(sequence.shape[1], device=sequence.device) < length.to(sequence.device)[:, None]

        def step(slices: Sequence[Tensor], states: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            x, *taken = slices
            values = constant | {self.node.variable: (x,)}
            values |= {name: (state,) for name, state in zip(self.states, states, strict=True)}
            values |= {name: (each,) for name, each in zip(told, taken, strict=True)}
            found = plan.run(values)
            return found[: len(states)], found[len(states) :]

        found = dict(zip(self.stacked, scan(step, (sequence, *told.values()), states, length), strict=True))
        return tuple(found.get(index) for index in range(len(self.node.stacked)))

    def _zeros(self, sequence: Tensor, state: str) -> Tensor:
        return torch.zeros(sequence.shape[0], *self.shapes[state], dtype=self._dtype(sequence), device=sequence.device)

    def _dtype(self, sequence: Tensor) -> torch.dtype:
        """That of the sequence, or of the model's weights if it is one of ids."""
        tensors = (sequence, *self.model.parameters())
        return next((each.dtype for each in tensors if each.is_floating_point()), torch.get_default_dtype())
