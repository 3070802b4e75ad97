"""Sums that are gathered batch by batch, by several processes, and over interruptions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Sample = tuple[NDArray[Any], NDArray[Any]]


@dataclass
class Means:
    """Sums and weights by name, and samples: pairs of arrays that are looked at together. What they mean is for
    `Metrics` to say. A checkpoint keeps sums and weights alone."""

    sums: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    samples: dict[str, list[Sample]] = field(default_factory=dict)

    def __contains__(self, name: object) -> bool:
        return name in self.sums or name in self.samples

    def add(self, name: str, total: float, weight: float) -> None:
        self.sums[name] = self.sums.get(name, 0.0) + total
        self.weights[name] = self.weights.get(name, 0.0) + weight

    def keep(self, name: str, first: NDArray[Any], second: NDArray[Any]) -> None:
        """Keep a sample."""
        self.samples.setdefault(name, []).append((first, second))

    def kept(self, name: str) -> Sample:
        """All samples of a name, one behind the other."""
        first, second = zip(*self.samples[name], strict=True)
        return np.concatenate(first), np.concatenate(second)

    def mean(self, name: str) -> float:
        """The mean of one; not a number of nothing."""
        return self.sums[name] / self.weights[name] if self.weights[name] else math.nan

    def each(self) -> dict[str, float]:
        """The mean of each; zero of nothing."""
        return {name: total / (self.weights[name] or 1.0) for name, total in self.sums.items()}

    def add_all(self, other: Means, prefix: str = "") -> None:
        """Add what another has gathered, its names behind a prefix."""
        for name, total in other.sums.items():
            self.add(prefix + name, total, other.weights[name])
        for name, samples in other.samples.items():
            self.samples.setdefault(prefix + name, []).extend(samples)

    def below(self, prefix: str) -> Means:
        """What was gathered under names that begin so, without the beginning."""
        return Means(*(_below(prefix, each) for each in (self.sums, self.weights, self.samples)))

    def facts(self) -> dict[str, dict[str, float | str]]:
        """What a checkpoint keeps; numbers that JSON does not have as words."""
        each = {"sums": self.sums, "weights": self.weights}
        return {
            kind: {name: value if math.isfinite(value) else str(value) for name, value in values.items()}
            for kind, values in each.items()
        }

    @classmethod
    def read(cls, record: Mapping[str, Mapping[str, float | str]]) -> Means:
        """Means from what `facts` gave. Raises `TypeError` or `ValueError` if it is something else."""
        sums, weights = ({k: _number(v) for k, v in record.get(name, {}).items()} for name in ("sums", "weights"))
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


def _below(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}


def _number(value: float | str) -> float:
    if type(value) not in (int, float) and value not in ("nan", "inf", "-inf"):
        raise ValueError(f"a mean is {value!r}")
    return float(value)
