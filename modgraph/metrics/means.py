"""Sums that are gathered batch by batch, by several processes, and over interruptions."""

from __future__ import annotations

import math
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

    def add_all(self, other: Means, prefix: str = "") -> None:
        """Add what another has gathered, its names behind a prefix."""
        for name, total in other.sums.items():
            self.add(prefix + name, total, other.weights[name])

    def below(self, prefix: str) -> Means:
        """What was gathered under names that begin so, without the beginning."""
        names = {name: name.removeprefix(prefix) for name in self.sums if name.startswith(prefix)}
        return Means(*({names[name]: each[name] for name in names} for each in (self.sums, self.weights)))

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


def _number(value: float | str) -> float:
    if type(value) not in (int, float) and value not in ("nan", "inf", "-inf"):
        raise ValueError(f"a mean is {value!r}")
    return float(value)
