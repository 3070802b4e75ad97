"""Numbers and values as tables print them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

NUMBER = re.compile(r"([0-9]{1,15})")
NONE = "–"  # of what is missing
DIGITS = 4  # significant ones of the largest number of a column
SMALLEST = 1e-3  # below which a number has an exponent
LETTERS = 44  # of a value


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
    return max(0, DIGITS - max(0, math.floor(math.log10(largest)) + 1)) if largest >= 1 else DIGITS


def format_number(number: float | None, digits: int | None) -> str:
    """Format a number with digits after the point, or as a whole one; a very small one with an exponent."""
    if number is None:
        return NONE
    if not math.isfinite(number):
        return str(number)
    if digits is None:
        return f"{number:,.0f}" if number == int(number) else f"{number:,.1f}"
    is_small = 0 < abs(number) < min(SMALLEST, 10**-digits)
    return f"{number:.1e}" if is_small else f"{number:,.{digits}f}"


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
