"""Cuts a text into tokens that know their place; a stray character is told and stepped over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lark import Token, UnexpectedCharacters
from lark.lexer import LexerState
from lark.utils import TextSlice

from modgraph.diagnostics import Report, Source, Span
from modgraph.syntax.errors import StrayCharacter
from modgraph.syntax.limits import REPORTED_SYNTAX_ERRORS
from modgraph.syntax.tables import language


class PlacedToken(Token):
    """A token with its span."""

    span: Span

    @classmethod
    def of(cls, token: Token, source: Source) -> PlacedToken:
        assert token.start_pos is not None
        placed = cls(token.type, token.value, token.start_pos, token.line, token.column)
        placed.span = Span(source, token.start_pos, token.start_pos + len(token.value))
        return placed

    def as_name(self) -> PlacedToken:
        """The same text read as a name."""
        name = PlacedToken("NAME", str(self))
        name.span = self.span
        return name


ENDS = frozenset("NAME INTEGER DECIMAL STRING TRUE FALSE RPAR RSQB LBRACE RBRACE".split())  # what a statement follows
COMPLETE = frozenset("NAME RPAR RSQB".split())  # what a value ends with
AXIS = frozenset("NAME STRING MINUS MOVED OVER".split())  # what the name of an axis begins with
IN_PATH = frozenset("MOVED NAME DOT INTEGER DECIMAL ARROW".split())
HEADS = frozenset(("OUTPUT", "LOSS"))  # what names of nodes may begin with, though they are reserved


def tokens(source: Source, report: Report) -> Iterator[PlacedToken]:
    """The tokens of a text, stray characters reported; it ends where there are too many of them.

    `moved` is a keyword where a statement may begin and a name follows, which no other statement does; `over` behind
    something complete, with an axis behind it, which no name could stand between.
    """
    before, declares = "", False
    for token, following in _with_next(_cut(source, report)):
        if token.type == "OVER" and not (before in COMPLETE and following in AXIS):
            token = token.as_name()
        begins = token.type == "MOVED" and before in ENDS and following in ("NAME", "MOVED", *HEADS)
        if (token.type == "MOVED" and not begins) or (declares and token.type in HEADS and following == "DOT"):
            token = token.as_name()
        declares = begins or (declares and token.type in IN_PATH)
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
    parser: Any = language().parser
    lexer = parser.lexer
    state = LexerState(TextSlice.cast_from(source.text))
    strays = 0
    while True:
        try:
            yield PlacedToken.of(lexer.next_token(state, None), source)
        except UnexpectedCharacters as error:
            at = error.pos_in_stream or 0
            report.add(_stray(source, at))
            strays += 1
            if strays == REPORTED_SYNTAX_ERRORS:
                return
            state.line_ctr.feed(source.text[at : at + 1], test_newline=True)
        except EOFError:
            return


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
