"""Numbers and values as tables print them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, TypeGuard

NUMBER = re.compile(r"([0-9]{1,15})")
NONE = "–"  # of what is missing
DIGITS = 4  # significant ones of the largest number of a column
MOST_DIGITS = 6
SMALLEST = 1e-3  # below which a number has an exponent
LETTERS = 44  # of a value


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a finite number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def order_of(value: Any) -> tuple[Any, ...]:
    """Return what sorts values of any kind: numbers first, then texts, numbers in them by size."""
    if isinstance(value, int | float):
        return 0, float(value)
    parts = NUMBER.split(str(value))
    return 1, [(int(part), "") if at % 2 else (-1, part) for at, part in enumerate(parts)]


def choose_digits(numbers: Sequence[float]) -> int | None:
    """Return how many digits after the point the numbers of a column have; None if they are whole."""
    finite = [abs(number) for number in numbers if math.isfinite(number)]
    if all(number == int(number) for number in finite):
        return None
    largest = max(finite)
    return min(MOST_DIGITS, max(0, DIGITS - 1 - math.floor(math.log10(largest)))) if largest else 1


def format_number(number: float | None, digits: int | None) -> str:
    """Format a number with digits after the point, or as a whole one; one below 0.001 with an exponent."""
    if number is None:
        return NONE
    if not math.isfinite(number):
        return str(number)
    if digits is None:
        return f"{number:,.0f}" if number == int(number) else f"{number:,.1f}"
    return f"{number:.1e}" if 0 < abs(number) < SMALLEST else f"{number:,.{digits}f}"


def format_deviation(mean: float, deviation: float, digits: int) -> str:
    """Format a mean and its standard deviation, both with digits after the point, or both with an exponent."""
    if 0 < abs(mean) < SMALLEST:
        return f"{mean:.1e} ± {deviation:.1e}"
    return f"{mean:,.{digits}f} ± {deviation:,.{digits}f}"


def format_p(p: float | None) -> str:
    """Format a probability."""
    return "" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def format_value(value: Any) -> str:
    """Format the value of a setting, on one line."""
    match value:
        case None | "":
            return NONE
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.6g}"
        case list() | tuple():
            text = f"[{', '.join(map(format_value, value))}]"
        case _:
            text = " ".join(str(value).split())
    if len(text) <= LETTERS:
        return text
    head = LETTERS // 2
    return f"{text[: head - 1]}…{text[len(text) - LETTERS + head :]}"
