"""Writes a spec's texts and values in Python: no text ends the literal, the docstring or the comment around it."""

from __future__ import annotations

import math
import re
from typing import Any

QUOTE, ESCAPED = '"', '\\"'
ENDING = re.compile(r'"(?="|$)')  # a quote that could end a docstring


def prose(text: str) -> str:
    """A text in a docstring or in a comment, on one line."""
    return ENDING.sub(r'\\"', _visible(text))


def _visible(text: str) -> str:
    """A text with escapes for backslashes and for characters that cannot be printed."""
    return "".join(
        char if char.isprintable() and char != "\\" else char.encode("unicode_escape").decode() for char in text
    )


def literal(value: Any) -> str:
    """The Python expression of a text, a number, or a list, tuple or dictionary of them."""
    match value:
        case str():
            return f'"{_visible(value).replace(QUOTE, ESCAPED)}"'
        case float() if not math.isfinite(value):
            return f'float("{value}")'
        case dict():
            return f"{{{', '.join(f'{literal(key)}: {literal(each)}' for key, each in value.items())}}}"
        case list():
            return f"[{', '.join(map(literal, value))}]"
        case tuple():
            return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    return repr(value)
