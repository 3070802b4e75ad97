"""Edits that follow a diagnostic's help, such as `did you mean "linear"?`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from modgraph.diagnostics import Diagnostic, Source, Span, closest
from modgraph.lsp.analysis import Analysis, analyse

REPLACEMENT = re.compile(r'^(?:did you mean|write|it is called) "([^"]+)"')


@dataclass(frozen=True)
class Fix:
    """The text to put in the place of a span, and the diagnostic that it settles."""

    title: str
    span: Span
    text: str
    diagnostic: Diagnostic


def find_fixes(analysis: Analysis, start: int, end: int) -> Iterator[Fix]:
    """The fixes of the diagnostics between two offsets: those after which the diagnostic is gone."""
    for diagnostic in analysis.diagnostics:
        span, advice = diagnostic.span, REPLACEMENT.match(diagnostic.advice())
        is_here = span is not None and span.source is analysis.source and span.start <= end and start <= span.end
        if span is None or advice is None or not is_here:
            continue
        text = advice[1]
        for place in _places(analysis, diagnostic, span, text):
            if _settles(analysis, diagnostic, place, text):
                yield Fix(f'replace "{place.text}" by "{text}"', place, text, diagnostic)
                break


def _places(analysis: Analysis, diagnostic: Diagnostic, span: Span, text: str) -> Iterator[Span]:
    """The words that a diagnostic may be about: names among its facts, its own token, a similar word before it."""
    inside = [token for token in analysis.tokens if span.holds(token.span)]
    names = {value for value in vars(diagnostic).values() if isinstance(value, str) and value}
    for token in inside:
        if token in names:
            yield token.span
        if token.type == "STRING" and token[1:-1] in names:
            yield Span(token.span.source, token.span.start + 1, token.span.end - 1)
    if len(inside) <= 1 and span.text.strip():
        yield span
    before = [token for token in analysis.tokens if token.span.end <= span.start][-1:]
    yield from (token.span for token in before if closest(token, [text]))


def _settles(analysis: Analysis, diagnostic: Diagnostic, place: Span, text: str) -> bool:
    source = analysis.source
    changed = source.text[: place.start] + text + source.text[place.end :]
    before, after = analysis.diagnostics, analyse(Source(source.name, changed)).diagnostics
    same = [[each for each in found if each.code == diagnostic.code] for found in (before, after)]
    return len(same[1]) < len(same[0])
