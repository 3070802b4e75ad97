"""Splits a text into tokens with spans, and reports and skips stray characters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from modgraph.diagnostics import Report, Source, Span
from modgraph.syntax.errors import StrayCharacter
from modgraph.syntax.limits import REPORTED_SYNTAX_ERRORS
from modgraph.syntax.tables import load_language


class PlacedToken(str):
    """A token with its kind, the name of a terminal of the grammar, and its span."""

    __slots__ = ("span", "type")

    type: str
    span: Span

    @classmethod
    def create(cls, kind: str, text: str, span: Span) -> PlacedToken:
        token = cls(text)
        token.type = kind
        token.span = span
        return token

    def as_name(self) -> PlacedToken:
        """Return the same text as a name."""
        return PlacedToken.create("NAME", str(self), self.span)


SOFT = frozenset(
    "CONSTANT MOVED NEXT OVER RECORD REQUIRE STATE UNTIL WEIGHT WHERE".split()
)  # names wherever the grammar allows one


def tokens(source: Source, report: Report) -> Iterator[PlacedToken]:
    """Iterate over the tokens of a text and report stray characters; stop after too many of them."""
    pattern, words, ignored = _compile_terminals()
    text = source.text
    at = strays = 0
    while at < len(text):
        found = pattern.match(text, at)
        if found is None:
            report.add(_describe_stray(source, at))
            strays += 1
            if strays == REPORTED_SYNTAX_ERRORS:
                return
            at += 1
            continue
        start, at, kind = at, found.end(), found.lastgroup or ""
        if kind not in ignored:
            word = found.group()
            yield PlacedToken.create(words.get(word, kind), word, Span(source, start, at))


@cache
def _compile_terminals() -> tuple[re.Pattern[str], dict[str, str], frozenset[str]]:
    """Return a pattern with a group for each kind of token, the kinds of reserved words, and the ignored kinds."""
    lexer: Any = load_language().parser.lexer
    words = {each.pattern.value: each.name for each in lexer.terminals if each.pattern.type == "str"}
    reserved = {word: kind for word, kind in words.items() if word.isalpha()}
    kinds = (each for each in lexer.terminals if each.name not in reserved.values())  # the longer ones first
    return (
        re.compile("|".join(f"(?P<{each.name}>{each.pattern.to_regexp()})" for each in kinds)),
        reserved,
        lexer.ignore_types,
    )


def _describe_stray(source: Source, at: int) -> StrayCharacter:
    char = source.text[at]
    if char == '"':
        line_end = source.text.find("\n", at)
        end = len(source.text) if line_end < 0 else line_end
        advice = 'close the string with " on the same line; inside it, write \\" and \\\\'
        return StrayCharacter(span=Span(source, at, end), found="string without an end", way_out=advice)
    found = f"{char!r}" if char.isprintable() else f"the character U+{ord(char):04X}"
    return StrayCharacter(span=Span(source, at, at + 1), found=found, way_out=_SUGGESTIONS.get(char, "remove it"))


_SUGGESTIONS = {
    "'": 'write strings in double quotes: "…"',
    ";": "leave it out: statements need no sign between them",
    "\\": "leave it out: a statement may span lines",
    "&": 'write "and"',
    "|": 'write "or"',
    "!": 'write "not"',
    "^": 'write "**"',
    "@": "write a matrix product as an op: x -> linear(width)",
}
