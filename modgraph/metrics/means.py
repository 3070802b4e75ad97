"""Sums that are gathered batch by batch, by several processes, and over interruptions."""

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
class Means:
    """Sums and weights by name, and samples: pairs of arrays that are looked at together. What they mean is for
    `Metrics` to say. A checkpoint keeps sums and weights alone. What tensors add is held where they are, so that a step
    that measures waits for no device, until any of it is asked for: then all is told at once. A sum comes to the same
    number whenever that was."""

    sums: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    samples: dict[str, list[Sample]] = field(default_factory=dict)  # tensors, and the rows of them that are kept
    held: dict[Names, Tensor] = field(default_factory=dict, repr=False)  # sums and weights so far, [2, names]

    def __contains__(self, name: object) -> bool:
        self.tell()
        return name in self.sums or name in self.samples

    def __getstate__(self) -> dict[str, Any]:
        samples = {name: [tuple(x.cpu() for x in each) for each in several] for name, several in self.samples.items()}
        return {**vars(self.tell()), "samples": samples}  # other processes are told numbers

    def add(self, name: str, total: float, weight: float) -> None:
        self.tell()
        self.sums[name] = self.sums.get(name, 0.0) + total
        self.weights[name] = self.weights.get(name, 0.0) + weight

    def hold(self, names: Names, totals: Tensor, weight: Tensor | float) -> None:
        """Add totals [names], each of the same weight or of its own [names], without waiting for them."""
        totals = totals.detach().double().reshape(len(names))
        weight = weight.double().expand(totals.shape) if isinstance(weight, Tensor) else torch.full_like(totals, weight)
        added = torch.stack((totals, weight))
        if names in self.held:
            before = self.held[names]
        elif any(name in self.sums for name in names):  # which are held from here on
            told = [[values.pop(name, 0.0) for name in names] for values in (self.sums, self.weights)]
            before = torch.tensor(told, dtype=added.dtype, device=added.device)
        else:
            before = torch.zeros_like(added)
        self.held[names] = before + added

    def keep(self, name: str, first: Tensor, second: Tensor, among: Tensor) -> None:
        """Keep a sample: those rows of two tensors that a mask tells, without waiting for them."""
        self.samples.setdefault(name, []).append((first, second, among))

    def tell(self) -> Means:
        """The same, nothing of it held: the numbers of all tensors are fetched at once."""
        if self.held:
            numbers = torch.split(torch.cat([*self.held.values()], 1).cpu(), [*map(len, self.held)], 1)
            for names, values in zip(self.held, numbers, strict=True):
                for known, found in zip((self.sums, self.weights), values.tolist(), strict=True):
                    known.update(zip(names, found, strict=True))
            self.held = {}
        return self

    def kept(self, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """All samples of a name, one behind the other."""
        parts = [[each[among].cpu().numpy() for each in pair] for *pair, among in self.samples[name]]
        first, second = zip(*parts, strict=True)
        return np.concatenate(first), np.concatenate(second)

    def mean(self, name: str) -> float:
        """The mean of one; not a number of nothing."""
        self.tell()
        return self.sums[name] / self.weights[name] if self.weights[name] else math.nan

    def each(self) -> dict[str, float]:
        """The mean of each; zero of nothing."""
        self.tell()
        return {name: total / (self.weights[name] or 1.0) for name, total in self.sums.items()}

    def add_all(self, other: Means, prefix: str = "") -> None:
        """Add what another has gathered, its names behind a prefix."""
        for name, total in other.sums.items():
            self.add(prefix + name, total, other.weights[name])
        for name, samples in other.samples.items():
            self.samples.setdefault(prefix + name, []).extend(samples)
        for names, values in other.held.items():
            self.hold(tuple(prefix + name for name in names), *values.unbind())

    def below(self, prefix: str) -> Means:
        """What was gathered under names that begin so, without the beginning."""
        self.tell()

        def within(values: Mapping[str, T]) -> dict[str, T]:
            return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}

        return Means(within(self.sums), within(self.weights), within(self.samples))

    def facts(self) -> dict[str, dict[str, float | str]]:
        """What a checkpoint keeps; numbers that JSON does not have as words."""
        self.tell()
        each = {"sums": self.sums, "weights": self.weights}
        return {
            kind: {name: value if math.isfinite(value) else str(value) for name, value in values.items()}
            for kind, values in each.items()
        }

    @classmethod
    def read(cls, record: Mapping[str, Mapping[str, float | str]]) -> Means:
        """Means from what `facts` gave. Raises `KeyError`, `TypeError` or `ValueError` if it is something
        else."""
        for name in ("sums", "weights"):
            for value in record[name].values():
                if type(value) not in (int, float) and value not in ("nan", "inf", "-inf"):
                    raise ValueError(f"a mean is {value!r}")
        sums, weights = ({k: float(v) for k, v in record[name].items()} for name in ("sums", "weights"))
        if sums.keys() != weights.keys():
            raise ValueError("its means are not whole")
        return cls(sums, weights)

    @classmethod
    def joined(cls, parts: Iterable[Means]) -> Means:
        """The means over all that several have gathered."""
        whole = cls()
        for part in parts:
            whole.add_all(part)
        return whole
