"""Sums and samples that accumulate over batches, processes and interruptions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

T = TypeVar("T")
Sample = tuple[Tensor, Tensor, Tensor]
Names = tuple[str, ...]


@dataclass
class Accumulators:
    """Sums and weights by name, and samples: pairs of arrays that a score reads together.

    `Metrics` gives them their meaning. A checkpoint keeps sums and weights only. Tensors that are added stay on their
    device as `pending`, so that a training step never waits for it; `fetch` copies all of them at once. The sums do not
    depend on when they are fetched.
    """

    sums: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    samples: dict[str, list[Sample]] = field(default_factory=dict)  # two tensors, and the mask of their rows
    pending: dict[Names, Tensor] = field(default_factory=dict, repr=False)  # sums and weights, [2, names]

    def __contains__(self, name: object) -> bool:
        self.fetch()
        return name in self.sums or name in self.samples

    def __getstate__(self) -> dict[str, Any]:
        samples = {name: [tuple(x.cpu() for x in each) for each in several] for name, several in self.samples.items()}
        return {**vars(self.fetch()), "samples": samples}  # other processes receive numbers

    def add(self, name: str, total: float, weight: float) -> None:
        self.fetch()
        self.sums[name] = self.sums.get(name, 0.0) + total
        self.weights[name] = self.weights.get(name, 0.0) + weight

    def add_tensors(self, names: Names, totals: Tensor, weight: Tensor | float) -> None:
        """Add totals [names] with one weight or a weight each [names], without waiting for the device."""
        totals = totals.detach().double().reshape(len(names))
        weight = weight.double().expand(totals.shape) if isinstance(weight, Tensor) else torch.full_like(totals, weight)
        added = torch.stack((totals, weight))
        if names in self.pending:
            before = self.pending[names]
        elif any(name in self.sums for name in names):  # they move to the device
            fetched = [[values.pop(name, 0.0) for name in names] for values in (self.sums, self.weights)]
            before = torch.tensor(fetched, dtype=added.dtype, device=added.device)
        else:
            before = torch.zeros_like(added)
        self.pending[names] = before + added

    def add_sample(self, name: str, first: Tensor, second: Tensor, among: Tensor) -> None:
        """Add a sample: the rows of two tensors that the mask `among` picks, without waiting for the device."""
        self.samples.setdefault(name, []).append((first, second, among))

    def fetch(self) -> Accumulators:
        """Copy all pending tensors to the host in one transfer and return `self`."""
        if self.pending:
            numbers = torch.split(torch.cat([*self.pending.values()], 1).cpu(), [*map(len, self.pending)], 1)
            for names, values in zip(self.pending, numbers, strict=True):
                for known, found in zip((self.sums, self.weights), values.tolist(), strict=True):
                    known.update(zip(names, found, strict=True))
            self.pending = {}
        return self

    def concatenate_samples(self, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return all samples of a name, concatenated."""
        parts = [[each[among].cpu().numpy() for each in pair] for *pair, among in self.samples[name]]
        first, second = zip(*parts, strict=True)
        return np.concatenate(first), np.concatenate(second)

    def mean(self, name: str) -> float:
        """Return the mean of one name; NaN where its weight is zero."""
        self.fetch()
        return self.sums[name] / self.weights[name] if self.weights[name] else math.nan

    def averages(self) -> dict[str, float]:
        """Return the mean of each name; zero where its weight is zero."""
        self.fetch()
        return {name: total / (self.weights[name] or 1.0) for name, total in self.sums.items()}

    def add_all(self, other: Accumulators, prefix: str = "") -> None:
        """Add all sums and samples of another, under a prefix."""
        for name, total in other.sums.items():
            self.add(prefix + name, total, other.weights[name])
        for name, samples in other.samples.items():
            self.samples.setdefault(prefix + name, []).extend(samples)
        for names, values in other.pending.items():
            self.add_tensors(tuple(prefix + name for name in names), *values.unbind())

    def filter_prefix(self, prefix: str) -> Accumulators:
        """Return the accumulators whose names begin with a prefix, without it."""
        self.fetch()

        def pick(values: Mapping[str, T]) -> dict[str, T]:
            return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}

        return Accumulators(pick(self.sums), pick(self.weights), pick(self.samples))

    def facts(self) -> dict[str, dict[str, float | str]]:
        """Return the sums and weights for a checkpoint; infinities and NaN, which JSON lacks, as strings."""
        self.fetch()
        kinds = {"sums": self.sums, "weights": self.weights}
        return {
            kind: {name: value if math.isfinite(value) else str(value) for name, value in values.items()}
            for kind, values in kinds.items()
        }

    @classmethod
    def read(cls, record: Mapping[str, Mapping[str, float | str]]) -> Accumulators:
        """Read the result of `facts`. Raises `KeyError`, `TypeError` or `ValueError` for anything else."""
        for name in ("sums", "weights"):
            for value in record[name].values():
                if type(value) not in (int, float) and value not in ("nan", "inf", "-inf"):
                    raise ValueError(f"a mean is {value!r}")
        sums, weights = ({k: float(v) for k, v in record[name].items()} for name in ("sums", "weights"))
        if sums.keys() != weights.keys():
            raise ValueError("its means are not whole")
        return cls(sums, weights)

    @classmethod
    def merge(cls, parts: Iterable[Accumulators]) -> Accumulators:
        """Sum the accumulators of several processes."""
        whole = cls()
        for part in parts:
            whole.add_all(part)
        return whole
