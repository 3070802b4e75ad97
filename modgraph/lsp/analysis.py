"""What is known of a text while it is being written: its messages, and what stands where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modgraph.diagnostics import Diagnostic, Report, Source, Span
from modgraph.elaboration import diagnose, elaborate_blocks
from modgraph.syntax import ast, parse, words_of
from modgraph.syntax.tokens import PlacedToken


@dataclass(frozen=True)
class Analysis:
    """A text, read as far as it goes. `values` are what its names and stages stand for, by place."""

    source: Source
    tokens: tuple[PlacedToken, ...]
    file: ast.File | None
    diagnostics: tuple[Diagnostic, ...]
    values: tuple[tuple[Span, Any], ...]

    def value_at(self, offset: int) -> Any | None:
        """What the smallest known stretch of text around a place stands for."""
        around = [each for each in self.values if self._holds(each[0], offset)]
        return min(around, key=lambda each: each[0].end - each[0].start, default=(None, None))[1]

    def word_at(self, offset: int) -> PlacedToken | None:
        """The token that a place touches; a name rather than the sign beside it."""
        touching = [token for token in self.tokens if token.span.start <= offset <= token.span.end]
        return next((token for token in touching if token.type == "NAME"), touching[0] if touching else None)

    def _holds(self, span: Span, offset: int) -> bool:
        return span.source is self.source and span.start <= offset <= span.end


def analyse(source: Source) -> Analysis:
    """Read a text. The model's parameters have their defaults."""
    report = Report()
    values: list[tuple[Span, Any]] = []
    file = parse(source, report)
    observe = lambda span, value: values.append((span, value))  # noqa: E731
    if file is not None and file.models:
        diagnose(file, {}, report, observe)
    elif file is not None:
        elaborate_blocks(file, report, observe)
    found = tuple(words_of(source))
    return Analysis(source, found, file, tuple(report.in_order()), tuple(values))
