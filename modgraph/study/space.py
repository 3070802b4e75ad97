"""What a sweep tries of each key: one value, alternatives, or a range."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from modgraph.declare import format_value
from modgraph.elaboration import read_value

LOG, UNIFORM, INTEGERS = "log", "uniform", "integers"
KINDS = (LOG, UNIFORM, INTEGERS)
RANGE = re.compile(rf"({'|'.join(KINDS)})\((.*)\)")
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[^"\[\](),]+|.', re.DOTALL)  # a string, a sign, or letters between
ATTEMPTS = 50  # for each point that there is, to sample another one
DIGITS = 4  # significant ones, of sampled numbers
MOST_POINTS = 100_000


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
        """Sample a number; real ones have four significant digits, more in a narrow range, so that names of runs stay
        short."""
        if self.kind == INTEGERS:
            return generator.randint(int(self.low), int(self.high))
        if self.kind == LOG:
            value = math.exp(generator.uniform(math.log(self.low), math.log(self.high)))
        else:
            value = generator.uniform(self.low, self.high)
        share = (self.high - self.low) / max(abs(self.low), abs(self.high))
        digits = DIGITS + max(0, -math.floor(math.log10(share)) - 1)
        return float(min(max(float(f"{value:.{digits}g}"), self.low), self.high))

    def __str__(self) -> str:
        return f"{self.kind}({format_value(self.low)}, {format_value(self.high)})"


Alternatives = tuple[Any, ...]
Space = Mapping[str, Alternatives | Range]


def read_tried(text: str) -> Alternatives | Range | None:
    """Read what `-s NAME=TEXT` tries of a key: a list of alternatives, or a range; None for a single value.

    A word in a list is a string, as it is by itself: `[noisy, softmax]`.
    """
    found = RANGE.fullmatch(text)
    ends = [*map(read_single, split_list(found[2]))] if found else []
    if found is not None and len(ends) == 2:  # log(10) is a number
        return Range(found[1], *ends)
    if not (text.startswith("[") and text.endswith("]")):
        return None
    return drop_repeats(tuple(map(read_single, split_list(text[1:-1]))))


def read_single(text: str) -> Any:
    """Read one value: null, a constant of the language, a list that has words, or a string."""
    value = None if text == "null" else read_value(text)
    is_list = isinstance(value, str) and value == text and text.startswith("[") and text.endswith("]")
    return tuple(map(read_single, split_list(text[1:-1]))) if is_list else value


def split_list(text: str) -> list[str]:
    """Split the members of a list, at commas outside of brackets and quotes."""
    members, depth = [""], 0
    for token in TOKEN.findall(text):
        depth += (token in "[(") - (token in "])")
        if token == "," and not depth:
            members.append("")
        else:
            members[-1] += token
    stripped = [each.strip() for each in members]
    return stripped if stripped[-1] else stripped[:-1]


def drop_repeats(values: Alternatives) -> Alternatives:
    """Keep each value once; true and 1 are two, and so are 1 and 1.0."""
    return tuple({repr(each): each for each in values}.values())


def count_points(space: Space) -> float:
    """Count the combinations of a space; infinite with a range of real numbers."""
    sizes = (
        len(each) if isinstance(each, tuple) else each.high - each.low + 1 if each.kind == INTEGERS else math.inf
        for each in space.values()
    )
    return math.prod(sizes)


def list_combinations(space: Space) -> Iterator[dict[str, Any]]:
    """Yield every combination of alternatives, the last key moving first. The space has no ranges."""
    for values in product(*space.values()):  # type: ignore[arg-type]
        yield dict(zip(space, values, strict=True))


def sample_points(space: Space, count: int, seed: int) -> list[dict[str, Any]]:
    """Sample points that differ, fewer than `count` where the space has no more. More points begin with the same."""
    generator, found, most = random.Random(seed), dict[str, dict[str, Any]](), count_points(space)
    for _ in range(int(min(count, most))):
        for _ in range(ATTEMPTS * int(min(most, MOST_POINTS))):
            point = {key: _sample(each, generator) for key, each in space.items()}
            if repr(point) not in found:
                found[repr(point)] = point
                break
    return [*found.values()]


def list_corners(space: Space) -> list[dict[str, Any]]:
    """List points that have every alternative and both ends of every range: the first of each key, then the others of
    one key at a time."""
    ends = {key: each if isinstance(each, tuple) else (each.low, each.high) for key, each in space.items()}
    first = {key: each[0] for key, each in ends.items()}
    return [first, *({**first, key: value} for key, each in ends.items() for value in each[1:])]


def _sample(tried: Alternatives | Range, generator: random.Random) -> Any:
    return tried.sample(generator) if isinstance(tried, Range) else tried[generator.randrange(len(tried))]
