"""Cuts a text into tokens that know their place; a stray character is told and stepped over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from modgraph.diagnostics import Report, Source, Span
from modgraph.syntax.errors import StrayCharacter
from modgraph.syntax.limits import REPORTED_SYNTAX_ERRORS
from modgraph.syntax.tables import language


class PlacedToken(str):
    """A token with its kind, as the grammar names it, and its span."""

    __slots__ = ("span", "type")

    type: str
    span: Span

    @classmethod
    def of(cls, kind: str, text: str, span: Span) -> PlacedToken:
        token = cls(text)
        token.type = kind
        token.span = span
        return token

    def as_name(self) -> PlacedToken:
        """The same text read as a name."""
        return PlacedToken.of("NAME", str(self), self.span)


ENDS = frozenset("NAME INTEGER DECIMAL STRING TRUE FALSE RPAR RSQB LBRACE RBRACE".split())  # what a statement follows
COMPLETE = frozenset("NAME RPAR RSQB".split())  # what a value ends with
WORDS = frozenset(
    "CONSTANT NEXT RECORD REQUIRE STATE WEIGHT".split()
)  # what a statement may begin with, and a name may be
NAMES = WORDS | frozenset("NAME MOVED OVER WHERE".split())  # a name, or a word that may be one
AXIS = NAMES | frozenset("STRING MINUS INTEGER DECIMAL".split())  # what the name of an axis begins with
IN_PATH = frozenset("MOVED NAME DOT INTEGER DECIMAL ARROW".split())
HEADS = frozenset(("OUTPUT", "LOSS"))  # what names of nodes may begin with, though they are reserved


def tokens(source: Source, report: Report) -> Iterator[PlacedToken]:
    """The tokens of a text, stray characters reported; it ends where there are too many of them.

    `moved`, `record`, `require`, `weight`, `constant`, `state` and `next` are keywords where a statement may begin and
    a name follows, as in no other one (or `not` behind `require`); `over` behind something complete, with an axis
    behind it, which no name could stand between; `where` behind the condition of `grow … when`.
    """
    before, declares, grows = "", False, False
    for token, following in _with_next(_cut(source, report)):
        match token.type:
            case "MOVED":
                keyword = before in ENDS and (following in NAMES or following in HEADS)
            case kind if kind in WORDS:
                keyword = before in ENDS and (following in NAMES or (kind, following) == ("REQUIRE", "NOT"))
            case "OVER":
                keyword = before in COMPLETE and following in AXIS
            case "WHERE":
                keyword = grows and before in ENDS
            case "OUTPUT" | "LOSS":
                keyword = not (declares and following == "DOT")
            case _:
                keyword = True
        token = token if keyword else token.as_name()
        grows = token.type == "WHEN" or (grows and token.type != "WHERE")
        declares = token.type == "MOVED" or (declares and token.type in IN_PATH)
        before = token.type
        yield token


def _with_next(found: Iterator[PlacedToken]) -> Iterator[tuple[PlacedToken, str]]:
    """Tokens, each with the kind of the next."""
    last = next(found, None)
    for token in found:
        assert last is not None
        yield last, token.type
        last = token
    if last is not None:
        yield last, ""


def _cut(source: Source, report: Report) -> Iterator[PlacedToken]:
    pattern, words, ignored = _terminals()
    text = source.text
    at = strays = 0
    while at < len(text):
        found = pattern.match(text, at)
        if found is None:
            report.add(_stray(source, at))
            strays += 1
            if strays == REPORTED_SYNTAX_ERRORS:
                return
            at += 1
            continue
        start, at, kind = at, found.end(), found.lastgroup or ""
        if kind not in ignored:
            word = found.group()
            yield PlacedToken.of(words.get(word, kind), word, Span(source, start, at))


@cache
def _terminals() -> tuple[re.Pattern[str], dict[str, str], frozenset[str]]:
    """What cuts a text: a pattern with a group for every kind of token, the kinds of reserved words, those left out."""
    lexer: Any = language().parser.lexer
    words = {each.pattern.value: each.name for each in lexer.terminals if each.pattern.type == "str"}
    reserved = {word: kind for word, kind in words.items() if word.isalpha()}
    kinds = (each for each in lexer.terminals if each.name not in reserved.values())  # the longer ones first
    return (
        re.compile("|".join(f"(?P<{each.name}>{each.pattern.to_regexp()})" for each in kinds)),
        reserved,
        lexer.ignore_types,
    )


def _stray(source: Source, at: int) -> StrayCharacter:
    char = source.text[at]
    if char == '"':
        line_end = source.text.find("\n", at)
        end = len(source.text) if line_end < 0 else line_end
        advice = 'close the string with " on the same line; inside it, write \\" and \\\\'
        return StrayCharacter(span=Span(source, at, end), shown="this string has no end, and", way_out=advice)
    shown = f"{char!r}" if char.isprintable() else f"the character U+{ord(char):04X}"
    return StrayCharacter(span=Span(source, at, at + 1), shown=shown, way_out=_SUGGESTIONS.get(char, "remove it"))


_SUGGESTIONS = {
    "'": 'strings stand in double quotes: "…"',
    ";": "statements need no sign between them",
    "\\": "line breaks mean nothing: no backslash is needed",
    "&": 'write "and"',
    "|": 'write "or"',
    "!": 'write "not"',
    "^": 'write "**"',
    "@": "a matrix product is an op: x -> linear(width)",
}
