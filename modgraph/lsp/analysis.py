"""What is known of a text while it is being written: its messages, its names, and what stands where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modgraph.diagnostics import Diagnostic, Report, Source, Span
from modgraph.elaboration import diagnose, elaborate_blocks, resolved
from modgraph.syntax import ast, parse, read, words_of
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


CALLABLE = ("MODULE", "TOKENIZER", "POOL", "BLOCK")
DECLARING = (*CALLABLE, "ROUTER", "INPUT", "TARGET")
DEFINING = ("BLOCK", "MODEL", "ROUTER")
OPENING, CLOSING = ("LPAR", "LSQB"), ("RPAR", "RSQB")
LONGEST_INDEX = 20  # tokens of what stands in brackets


def declared_names(found: Sequence[PlacedToken]) -> Iterator[tuple[str, str]]:
    """Names a text declares or binds, with the keyword before them: in order."""
    for at, token in enumerate(found):
        before = found[at - 1].type if at else ""
        after = found[at + 1].type if at + 1 < len(found) else ""
        bound = after == "EQUAL" or (after == "LSQB" and _after_brackets(found, at + 1) == "EQUAL")
        if token.type == "NAME" and (before in DECLARING or bound or before in ("REPEAT", "FOR", "AS")):
            yield str(token), before if before in DECLARING else "VALUE"


def _after_brackets(found: Sequence[PlacedToken], at: int) -> str:
    """What kind of token follows the bracket that closes the one at a place."""
    within = range(at, min(at + LONGEST_INDEX, len(found)))
    closing = next((later for later in within if found[later].type == "RSQB"), len(found))
    return found[closing + 1].type if closing + 1 < len(found) else ""


def parameters_around(before: Sequence[PlacedToken]) -> Iterator[str]:
    """The parameters of the block or router that a place lies in, the tokens before it given."""
    heads = [at for at in range(len(before)) if _begins_definition(before, at)]
    if heads and before[heads[-1]].type != "MODEL":
        yield from _listed_at(heads[-1], before)


def _begins_definition(found: Sequence[PlacedToken], at: int) -> bool:
    return found[at].type in DEFINING and at + 2 < len(found) and found[at + 2].type == "LPAR"


def _listed_at(head: int, found: Sequence[PlacedToken]) -> Iterator[str]:
    depth = 0
    for at in range(head + 2, len(found)):
        depth += (found[at].type in OPENING) - (found[at].type in CLOSING)
        if depth == 0:
            return
        if depth == 1 and found[at - 1].type in ("LPAR", "COMMA") and found[at].type == "NAME":
            yield str(found[at])


def parameters_of(block: str, source: Source, found: Sequence[PlacedToken]) -> list[str]:
    """The parameters of a block that a text defines or imports, though the text may be broken."""
    for stream in (found, *_imported(block, source, found)):
        for at in range(len(stream)):
            if stream[at].type == "BLOCK" and _begins_definition(stream, at) and str(stream[at + 1]) == block:
                return [*_listed_at(at, stream)]
    return []


def _imported(name: str, source: Source, found: Sequence[PlacedToken]) -> Iterator[tuple[PlacedToken, ...]]:
    names: list[str] = []
    for token in found:
        if token.type == "IMPORT":
            names = []
        if token.type == "STRING" and name in names:
            other = read(resolved(Path(source.name).parent / str(token)[1:-1]), Report())
            yield () if other is None else tuple(words_of(other))
            return
        names.append(str(token))
