"""Sums that are gathered batch by batch, by several processes, and over interruptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass
class Means:
    """Sums and weights by name. What they mean is for `Metrics` to say."""

    sums: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, total: float, weight: float) -> None:
        self.sums[name] = self.sums.get(name, 0.0) + total
        self.weights[name] = self.weights.get(name, 0.0) + weight

    def each(self) -> dict[str, float]:
        """The mean of each; zero of nothing."""
        return {name: total / (self.weights[name] or 1.0) for name, total in self.sums.items()}

    @classmethod
    def read(cls, record: Mapping[str, Mapping[str, float]]) -> Means:
        """Means from their record. Raises `TypeError` or `ValueError` if it is none."""
        sums, weights = ({k: float(v) for k, v in record.get(name, {}).items()} for name in ("sums", "weights"))
        if sums.keys() != weights.keys():
            raise ValueError("its means are not whole")
        return cls(sums, weights)

    @classmethod
    def joined(cls, parts: Iterable[Means]) -> Means:
        """The means over all that several have gathered."""
        whole = cls()
        for part in parts:
            for name, total in part.sums.items():
                whole.add(name, total, part.weights[name])
        return whole
