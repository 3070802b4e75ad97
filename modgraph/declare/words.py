"""Formats constants as the language writes them, whole or shortened for a message."""

from __future__ import annotations

from typing import Any

MOST_LETTERS = 60  # of a constant in a message
MOST_MEMBERS = 8


def format_count(number: int, noun: str) -> str:
    """Format a count with its noun: 1 operand, 2 operands."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_value(value: Any) -> str:
    """Format a constant as the language writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(format_value, value))}]"
    if isinstance(value, range):
        return f"{value.start}..{value.stop}"
    return str(value)


def format_briefly(value: Any) -> str:
    """Format a constant for a message: its first members, its first letters."""
    if isinstance(value, str):
        return format_value(value if len(value) <= MOST_LETTERS else value[:MOST_LETTERS] + "…")
    if isinstance(value, list | tuple):
        inner = [format_briefly(item) for item in value[:MOST_MEMBERS]]
        text = ", ".join([*inner, "…"] if len(value) > MOST_MEMBERS else inner)
        return f"[{text if len(text) <= MOST_LETTERS else text[:MOST_LETTERS] + '…'}]"
    return format_value(value)
