"""What a sweep tries of each key: one value, alternatives, or a range."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modgraph.declare import format_value

LOG, UNIFORM, INTEGERS = "log", "uniform", "integers"
KINDS = (LOG, UNIFORM, INTEGERS)
RANGE = re.compile(rf"({'|'.join(KINDS)})\(([^()]*)\)")


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included: evenly spread (`uniform`), evenly by their logarithm (`log`), or
    whole (`integers`)."""

    kind: str
    low: float
    high: float

    def problem(self) -> str | None:
        """Explain why there is no such range; None if there is."""
        if not all(type(each) in (int, float) and math.isfinite(each) for each in (self.low, self.high)):
            return "needs two numbers"
        if self.kind == INTEGERS and not all(type(each) is int for each in (self.low, self.high)):
            return "needs two whole numbers"
        if self.low >= self.high:
            return "must begin below its end"
        return "must begin above 0" if self.kind == LOG and self.low <= 0 else None

    def sample(self, generator: random.Random) -> float:
        """Sample a number; real ones have four significant digits, so that names of runs stay short."""
        if self.kind == INTEGERS:
            return generator.randint(int(self.low), int(self.high))
        if self.kind == LOG:
            value = math.exp(generator.uniform(math.log(self.low), math.log(self.high)))
        else:
            value = generator.uniform(self.low, self.high)
        return min(max(float(f"{value:.4g}"), self.low), self.high)

    def __str__(self) -> str:
        return f"{self.kind}({format_value(self.low)}, {format_value(self.high)})"


Alternatives = tuple[Any, ...]
Space = Mapping[str, Alternatives | Range]
