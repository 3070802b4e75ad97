"""Parses a text that is being written: lines that the parser refuses are left out."""

from __future__ import annotations

from collections.abc import Sequence

from modgraph.diagnostics import Report, Source, Span
from modgraph.syntax import ast
from modgraph.syntax.parse import CLOSING, OPENING, Recovery
from modgraph.syntax.tokens import PlacedToken, tokens

MOST_REPAIRS = 40  # lines that are left out


def parse_broken(source: Source) -> ast.File | None:
    """The tree of a text without its broken lines, and with the braces that it lacks at the end; None if none is left.

    Spans are those of the text itself.
    """
    stream = [*tokens(source, Report())]
    for _ in range(MOST_REPAIRS):
        report = Report()
        file = Recovery(source, report).run([*stream, *_missing_braces(source, stream)])
        if not report.errors:
            return file if file is not None and (file.definitions or file.imports) else None
        spans = [each.span for each in report.list_diagnostics() if each.span is not None]
        line = _find_broken_line(stream, spans[0].start) if spans else None
        if line is None:
            return None
        stream = [token for token in stream if _line_of(token) != line]
    return None


def _missing_braces(source: Source, stream: Sequence[PlacedToken]) -> list[PlacedToken]:
    end = Span(source, len(source.text), len(source.text))
    depth = 0
    for token in stream:
        depth = max(0, depth + (token.type == "LBRACE") - (token.type == "RBRACE"))
    return [PlacedToken.create("RBRACE", "}", end)] * depth


def _find_broken_line(stream: Sequence[PlacedToken], offset: int) -> int | None:
    """The line to leave out for a mistake at an offset: of a bracket that is open there, or of the token before."""
    before = [token for token in stream if token.span.start < offset]
    opened: list[PlacedToken] = []
    for token in before:
        if token.type in ("LBRACE", "RBRACE"):
            opened.clear()
        elif token.type in OPENING:
            opened.append(token)
        elif token.type in CLOSING and opened:
            opened.pop()
    at = next((token for token in stream if token.span.start >= offset), None)
    suspects = [*opened[:1], *before[-1:], *([at] if at is not None else [])]
    if at is not None and not opened and before and before[-1].type in ("LBRACE", "RBRACE"):
        return _line_of(at)
    return _line_of(suspects[0]) if suspects else None


def _line_of(token: PlacedToken) -> int:
    return token.span.source.position(token.span.start)[0]
