"""Samples of single steps, for `steps.jsonl`: the loss, the norm of the gradient, and the load of modules.

Whether a step is sampled depends on its number alone, so a resumed training logs the same lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from modgraph.declare import Role
from modgraph.ir import Graph, Result

MOST_SAMPLES = 200  # of a phase
LEAST_APART = 10  # steps
MOST_MODULES = 128  # of a pool whose load is sampled


def find_loads(graph: Graph) -> dict[str, Result]:
    """Return the choices of each route, or its gates where its router makes no choice, by the route's name."""
    found = {}
    for each in graph.decisions():
        name = each.record_as(Role.SLOTS, Role.CHOICE, Role.GATES)
        if name is not None and each.pool.size <= MOST_MODULES:
            found[each.label] = each.results[name]
    return found


def sum_load(choice: Tensor) -> Tensor:
    """Sum choices or gates [..., M] over all tokens."""
    return choice.detach().double().reshape(-1, choice.shape[-1]).sum(0)


@dataclass(frozen=True)
class Sample:
    """A step, counted from 1, with its tags, its loss, the norm of its gradient before clipping, and sums of choices
    [M] by route. Tensors stay on their device."""

    step: int
    tags: Mapping[str, Any]
    loss: Tensor
    norm: Tensor | None
    loads: Mapping[str, Tensor]

    def fetch(self) -> dict[str, Any]:
        """Copy the numbers to the host."""
        loads = {name: load.tolist() for name, load in self.loads.items()}
        norm = None if self.norm is None else self.norm.item()
        return {"step": self.step, **self.tags, "loss": self.loss.item(), "gradient_norm": norm, "load": loads}


@dataclass
class Sampler:
    """Collects samples of a phase of so many steps, at most 200 of them and ten steps apart."""

    steps: int
    pending: list[Sample] = field(default_factory=list)

    def takes(self, step: int) -> bool:
        """Whether it samples a step of the phase, counted from 0."""
        return step % max(LEAST_APART, -(-self.steps // MOST_SAMPLES)) == 0

    def fetch(self) -> list[dict[str, Any]]:
        """Return the records of all samples since the last call."""
        pending, self.pending = self.pending, []
        return [each.fetch() for each in pending]


def merge_samples(parts: Iterable[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Merge the records of several processes: loads become the shares of modules in all choices."""
    return [
        {**same[0], "load": {name: _compute_shares([each["load"][name] for each in same]) for name in same[0]["load"]}}
        for same in zip(*parts, strict=True)
    ]


def _compute_shares(loads: Sequence[Sequence[float]]) -> list[float]:
    total = torch.tensor(loads, dtype=torch.float64).sum(0)
    shares: list[float] = (total / total.sum().clamp(min=torch.finfo(total.dtype).tiny)).tolist()
    return shares
