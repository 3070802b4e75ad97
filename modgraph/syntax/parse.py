"""Reads a text into a syntax tree, telling every syntax mistake of the text in one go.

After a mistake the parser goes back to where the last statement keyword stood, forgets the broken statement, and goes
on at the next keyword or at the brace that closes the body.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lark import Token, UnexpectedToken

from modgraph.diagnostics import Report, Source, Span
from modgraph.files import open_file, reason_of
from modgraph.syntax import ast
from modgraph.syntax.build import Rejected
from modgraph.syntax.errors import NothingHere, NotText, TooDeep, TooLong, UnexpectedText, UnreadableFile
from modgraph.syntax.limits import (
    BRACKET_DEPTH,
    LETTERS,
    PARSER_STACK,
    REPORTED_SYNTAX_ERRORS,
    SOURCE_BYTES,
    TOKENS,
    TREE_DEPTH,
)
from modgraph.syntax.tables import language
from modgraph.syntax.tokens import PlacedToken, tokens

STATEMENT_KEYWORDS = frozenset(
    "INPUT TARGET TOKENIZER MODULE POOL ROUTER OUTPUT LOSS REPEAT FOR IF SCAN GROW FROZEN YIELD".split()
)
DEFINITION_KEYWORDS = frozenset(("MODEL", "BLOCK", "IMPORT"))
NAME_FOLLOWS = frozenset("INPUT TARGET TOKENIZER MODULE POOL ROUTER MODEL BLOCK REPEAT FOR BY AS DOT".split())
FOLLOWS_NAME = frozenset("EQUAL COLON ARROW COMMA RPAR RSQB LSQB".split())
OPERATORS = frozenset("PLUS MINUS STAR SLASH FLOOR PERCENT POWER".split())
OPENING = frozenset(("LPAR", "LSQB", "LBRACE"))
CLOSING = frozenset(("RPAR", "RSQB", "RBRACE"))
ATOM_START = frozenset("NAME INTEGER DECIMAL STRING LPAR LSQB TRUE FALSE".split())
EXPRESSION_START = ATOM_START | {"MINUS"}
WORDS = {
    "NAME": "a name",
    "INTEGER": "a number",
    "DECIMAL": "a number",
    "STRING": "a string",
    "$END": "the end",
}


def read(path: str | Path, report: Report, span: Span | None = None) -> Source | None:
    """The text of a spec file, or None with the reason reported at the place that asked for it."""
    name = str(path)
    try:
        with open_file(path) as file:
            content = file.read(SOURCE_BYTES + 1)
    except (OSError, ValueError) as error:
        report.add(UnreadableFile(span=span, path=name, reason=reason_of(error), way_out=_neighbours(Path(path))))
        return None
    reason = _unreadable(content)
    if reason is not None:
        report.add(NotText(span=span, path=name, reason=reason, limit=SOURCE_BYTES))
        return None
    return Source(name, content.decode("utf-8-sig").replace("\r\n", "\n"))


def parse(source: Source, report: Report) -> ast.File | None:
    """The tree of a text, or None with every syntax mistake reported."""
    if (reason := _unreadable(source.text.encode("utf-8", "surrogatepass"))) is not None:
        report.add(NotText(path=source.name, reason=reason, limit=SOURCE_BYTES))
        return None
    earlier = len(report.errors)
    stream = _bounded(source, report)
    file = _Recovery(source, report).run(stream) if stream is not None else None
    if len(report.errors) > earlier or file is None:
        return None
    if not file.definitions:
        report.add(NothingHere(span=Span(source, 0, min(1, len(source.text)))))
        return None
    return file


def _bounded(source: Source, report: Report) -> list[PlacedToken] | None:
    """The tokens of a text, or None where there are too many or brackets are nested too deep, which is told."""
    stream: list[PlacedToken] = []
    depth = 0
    most = len(report.errors) + REPORTED_SYNTAX_ERRORS
    for token in tokens(source, report):
        depth = max(0, depth + (token.type in OPENING) - (token.type in CLOSING))
        if depth > BRACKET_DEPTH:
            report.add(TooDeep(span=token.span, what="brackets are", limit=BRACKET_DEPTH))
            return None
        if len(stream) == TOKENS:
            report.add(TooLong(span=token.span, what="words and signs", limit=TOKENS))
            return None
        if token.type == "NAME" and len(token) > LETTERS:
            report.add(
                TooLong(span=token.span, what="letters in a name", limit=LETTERS, way_out="choose a shorter one")
            )
            return None
        stream.append(token)
    return stream if len(report.errors) < most else None


def _unreadable(content: bytes) -> str | None:
    if len(content) > SOURCE_BYTES:
        return "it is too long"
    if b"\0" in content:
        return "it contains a NUL character"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"byte {error.start} is not UTF-8"
    return None


def _neighbours(path: Path) -> str:
    """Specs that a misspelt path may have meant."""
    from modgraph.diagnostics import closest

    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.suffix == path.suffix and entry != path]
    except (OSError, ValueError):
        return "check the path"
    match = closest(path.name, names)
    return f'did you mean "{path.parent / match}"?' if match else "check the path"


class _Recovery:
    """Feeds tokens to the parser and steps over broken statements."""

    def __init__(self, source: Source, report: Report) -> None:
        self.source = source
        self.report = report
        self.parser: Any = language().parse_interactive("", start="start")
        self.checkpoint = self._stacks()
        self.mistakes = 0
        self.neighbours = ("", "")

    def run(self, stream: list[PlacedToken]) -> ast.File | None:
        at = 0
        while at < len(stream):
            token = stream[at]
            self.neighbours = stream[at - 1].type if at else "", stream[at + 1].type if at + 1 < len(stream) else ""
            keyword = token.type in STATEMENT_KEYWORDS or token.type in DEFINITION_KEYWORDS
            before = self._stacks() if keyword else self.checkpoint
            if len(before[0]) > PARSER_STACK:
                self.report.add(TooDeep(span=token.span, what="this is", limit=TREE_DEPTH))
                return None
            if self._feed(token):
                self.checkpoint = before
                at += 1
                continue
            if self.mistakes >= REPORTED_SYNTAX_ERRORS:
                return None
            if self._is_misused_word(token):
                stream[at] = token.as_name()
                continue
            at = self._resume(stream, at)
        result = self._feed(self._end(stream))
        return result if isinstance(result, ast.File) else None

    def _feed(self, token: Any) -> Any:
        """The parser's answer to a token: true or the finished file, or False after a reported mistake."""
        try:
            result = self.parser.feed_token(token)
        except UnexpectedToken:
            self.report.add(self._unexpected(token))
        except Rejected as rejection:
            self.report.add(rejection.diagnostic)
        else:
            return result if result is not None else True
        self.mistakes += 1
        return False

    def _is_misused_word(self, token: PlacedToken) -> bool:
        """A reserved word where a name must stand, and no statement's beginning: read it as that name and go on."""
        as_name = self.neighbours[0] in NAME_FOLLOWS or self.neighbours[1] in FOLLOWS_NAME
        return as_name and token.isalpha() and token.type != "NAME" and "NAME" in self.parser.accepts()

    def _resume(self, stream: list[PlacedToken], at: int) -> int:
        """Go back to the last checkpoint, and on in the text to where it can continue."""
        self._restore(self.checkpoint)
        opened = 0
        for later in range(at, len(stream)):
            kind = stream[later].type
            opened += (kind == "LBRACE") - (kind == "RBRACE")
            if kind in DEFINITION_KEYWORDS or (kind in STATEMENT_KEYWORDS and opened <= 0) or opened < 0:
                if "$END" in self.parser.accepts() and kind not in DEFINITION_KEYWORDS:
                    continue
                if kind in self.parser.accepts():
                    return later
        return len(stream)

    def _stacks(self) -> tuple[list[Any], list[Any]]:
        state = self.parser.parser_state
        return list(state.state_stack), list(state.value_stack)

    def _restore(self, stacks: tuple[list[Any], list[Any]]) -> None:
        state = self.parser.parser_state
        state.state_stack[:], state.value_stack[:] = stacks

    def _end(self, stream: list[PlacedToken]) -> Token:
        end = len(self.source.text.rstrip())
        token = PlacedToken("$END", "")
        token.span = Span(self.source, max(0, end - 1), end)
        return token

    def _unexpected(self, token: Any) -> UnexpectedText:
        accepted = set(self.parser.accepts())
        found = "the end of the file" if token.type == "$END" else f'"{token}"'
        advice = self._advice(token, accepted)
        return UnexpectedText(span=token.span, found=found, expected=_expected(accepted), way_out=advice)

    def _advice(self, token: Any, accepted: set[str]) -> str:
        """A way out of what is most likely meant."""
        if self._is_misused_word(token):
            return f'"{token}" is a reserved word: choose another name'
        if token.type == "RBRACE" and "$END" in accepted:
            return "one closing brace too many"
        if token.type == "$END":
            return "a bracket or brace is not closed"
        if token.type in OPERATORS and "ARROW" in accepted:
            return f"put the pipeline in parentheses: (x -> op) {token} y"
        if token.type in DEFINITION_KEYWORDS and "RBRACE" in accepted:
            return f"{token}s stand at the top of the file, outside of the braces"
        return ""


def _expected(accepted: set[str]) -> str:
    """What could stand here, in words, shortest useful form."""
    phrases = []
    if accepted >= EXPRESSION_START:
        accepted = accepted - EXPRESSION_START - {"NOT"}
        phrases.append("an expression")
    elif accepted >= ATOM_START:
        accepted = accepted - ATOM_START
        phrases.append("an op, a module or a pool")
    if accepted >= STATEMENT_KEYWORDS:
        accepted = accepted - STATEMENT_KEYWORDS - {"NAME"}
        phrases.append("a statement")
    phrases += sorted({WORDS.get(name) or f'"{_literals().get(name, name.lower())}"' for name in accepted})
    if len(phrases) > 6:
        phrases = [*phrases[:5], "another operator"]
    return phrases[0] if len(phrases) == 1 else ", ".join(phrases[:-1]) + " or " + phrases[-1]


def _literals() -> dict[str, str]:
    return {terminal.name: str(terminal.pattern.value) for terminal in language().terminals}


def keywords() -> Iterator[str]:
    """The reserved words of the language."""
    for name, text in _literals().items():
        if text.isalpha() and name == text.upper():
            yield text
