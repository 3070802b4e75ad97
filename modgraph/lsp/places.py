"""Converts places and diagnostics to the JSON of the language server protocol, and places back.

The protocol counts lines from 0, and UTF-16 units along a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modgraph.diagnostics import Diagnostic, Source, Span

Json = dict[str, Any]
SEVERITIES = {"error": 1, "warning": 2}
START: Json = {"line": 0, "character": 0}


def offset_of(source: Source, position: Mapping[str, int]) -> int:
    """The offset of a position in a text."""
    lines, number = source.text.split("\n"), position["line"]
    before = sum(len(line) + 1 for line in lines[:number])
    line = lines[number] if number < len(lines) else ""
    units = line.encode("utf-16-le")[: 2 * position["character"]]
    return min(len(source.text), before + len(units.decode("utf-16-le", errors="ignore")))


def position_of(source: Source, offset: int) -> Json:
    """The position of an offset in a text."""
    line, column = source.position(offset)
    return {"line": line - 1, "character": count_units(source.line(line)[: column - 1])}


def count_units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def range_of(span: Span) -> Json:
    start, end = (position_of(span.source, offset) for offset in (span.start, max(span.end, span.start)))
    return {"start": start, "end": end}


def message_of(diagnostic: Diagnostic) -> Json:
    advice = f"\nhelp: {diagnostic.advice()}" if diagnostic.advice() else ""
    return {
        "range": range_of(diagnostic.span) if diagnostic.span is not None else {"start": START, "end": START},
        "message": diagnostic.text() + advice,
        "code": diagnostic.code,
        "source": "modgraph",
        "severity": SEVERITIES[diagnostic.severity],
    }
