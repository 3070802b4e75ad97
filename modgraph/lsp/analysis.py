"""What is known of a text while it is being written: its messages, its names, and what stands where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from modgraph.diagnostics import Diagnostic, Report, Source, Span
from modgraph.elaboration import diagnose, elaborate_blocks, resolve_path
from modgraph.syntax import ast, parse, read, read_tokens
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
        here = (each for each in self.values if each[0].source is self.source)
        around = [each for each in here if each[0].start <= offset <= each[0].end]
        return min(around, key=lambda each: each[0].end - each[0].start, default=(None, None))[1]

    def word_at(self, offset: int) -> PlacedToken | None:
        """The token that a place touches; a name rather than the sign beside it."""
        touching = [token for token in self.tokens if token.span.start <= offset <= token.span.end]
        return next((token for token in touching if token.type == "NAME"), touching[0] if touching else None)

    def find_import(self, name: str) -> Head | None:
        """The definition of another file that the text imports by a name."""
        names: list[str] = []
        for before, token in pairwise(self.tokens):
            names = [] if token.type == "IMPORT" else names
            names.append(token)
            if before.type == "FROM" and name in names:
                other = read(resolve_path(Path(self.source.name).parent / token[1:-1]), Report())
                return None if other is None else _head_of(name, read_tokens(other))
        return None

    def block(self, name: str) -> Head | None:
        """A block that the text defines or imports."""
        found = _head_of(name, self.tokens) or self.find_import(name)
        return found if found is not None and found.keyword.type == "BLOCK" else None


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
    found = tuple(read_tokens(source))
    return Analysis(source, found, file, tuple(report.list_diagnostics()), tuple(values))


CALLABLE = ("MODULE", "TOKENIZER", "POOL", "BLOCK")
DECLARING = (*CALLABLE, "ROUTER", "INPUT", "TARGET")
DEFINING = ("BLOCK", "MODEL", "ROUTER")
BEHIND_NAME = ("LPAR", "FOR", "LBRACE")  # of a definition
OPENING, CLOSING = ("LPAR", "LSQB"), ("RPAR", "RSQB")
LONGEST_INDEX = 20  # tokens of what stands in brackets


def list_declarations(found: Sequence[PlacedToken]) -> Iterator[tuple[str, str]]:
    """Names a text declares or binds, with the keyword before them: in order."""
    for at, token in enumerate(found):
        before = found[at - 1].type if at else ""
        after = found[at + 1].type if at + 1 < len(found) else ""
        bound = after == "EQUAL" or (after == "LSQB" and _type_behind_brackets(found, at + 1) == "EQUAL")
        if token.type == "NAME" and (before in DECLARING or bound or before in ("REPEAT", "FOR", "AS")):
            yield str(token), before if before in DECLARING else "VALUE"


def _type_behind_brackets(found: Sequence[PlacedToken], at: int) -> str:
    """What kind of token follows the bracket that closes the one at a place."""
    within = range(at, min(at + LONGEST_INDEX, len(found)))
    closing = next((later for later in within if found[later].type == "RSQB"), len(found))
    return found[closing + 1].type if closing + 1 < len(found) else ""


@dataclass(frozen=True)
class Head:
    """How a definition begins, in a text that may be broken."""

    keyword: PlacedToken
    name: PlacedToken
    parameters: list[str]

    def __str__(self) -> str:
        span = self.keyword.span
        return " ".join(span.source.text[span.start :].partition("{")[0].split())


def heads(found: Sequence[PlacedToken]) -> Iterator[Head]:
    """How the definitions of a text begin: in order."""
    for at, keyword in enumerate(found[:-2]):
        if keyword.type in DEFINING and found[at + 2].type in BEHIND_NAME:
            yield Head(keyword, found[at + 1], [*_list_parameters(found[at + 2 :])])


def _list_parameters(found: Sequence[PlacedToken]) -> Iterator[str]:
    depth, before = 0, ""
    for token in found:
        depth += (token.type in OPENING) - (token.type in CLOSING)
        if depth == 0:
            return
        if depth == 1 and before in ("LPAR", "COMMA") and token.type == "NAME":
            yield str(token)
        before = token.type


def _head_of(name: str, found: Sequence[PlacedToken]) -> Head | None:
    return next((each for each in heads(found) if each.name == name), None)
