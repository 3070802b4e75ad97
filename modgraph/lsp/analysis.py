"""What is known of a text while it is being written: its messages, its names, and what stands where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from modgraph.diagnostics import Diagnostic, Report, Source, Span
from modgraph.elaboration import diagnose, elaborate_blocks, resolve_path
from modgraph.elaboration.context import Elaborated
from modgraph.inspect.cost import Cost, compute_cost
from modgraph.ir import Graph, OpNode, PoolNode
from modgraph.lsp.repair import parse_broken
from modgraph.syntax import ast, parse, read, read_tokens
from modgraph.syntax.tokens import PlacedToken


@dataclass(frozen=True)
class Analysis:
    """A text, read as far as it goes.

    `file` is the tree without broken lines. `values` are the meanings of names and stages, and `statements` those of
    statements, by place, in the order of elaboration. `graph` is that of a text without mistakes.
    """

    source: Source
    tokens: tuple[PlacedToken, ...]
    file: ast.File | None
    diagnostics: tuple[Diagnostic, ...]
    values: tuple[tuple[Span, Any], ...]
    statements: tuple[tuple[Span, Elaborated], ...] = ()
    graph: Graph | None = None

    def value_at(self, offset: int) -> Any | None:
        """The meaning of the smallest known stretch of text around a place."""
        here = (each for each in self.values if each[0].source is self.source)
        around = [each for each in here if each[0].start <= offset <= each[0].end]
        return min(around, key=lambda each: each[0].end - each[0].start, default=(None, None))[1]

    def values_of(self, span: Span) -> list[Any]:
        """The meanings of a stretch of text, one for each round or use in which it is elaborated."""
        return [value for place, value in self.values if place.source is self.source and place == span]

    def meaning_of(self, name: str, offset: int) -> Any | None:
        """The meaning of a name in the innermost statement around a place that declares it."""
        found = [
            (place, each.names[name])
            for place, each in self.statements
            if place.source is self.source and place.start <= offset <= place.end and name in each.names
        ]
        return min(found, key=lambda each: each[0].end - each[0].start, default=(None, None))[1]

    @cached_property
    def costs(self) -> Cost | None:
        """The costs of the model; None for a text with mistakes or without a model."""
        return None if self.graph is None else compute_cost(self.graph)

    def cost_at(self, offset: int) -> tuple[Cost, int] | None:
        """What the innermost statement around a place adds, in all of its rounds, and how often it is elaborated."""
        places = [place for place, _ in self.statements if place.source is self.source]
        around = [place for place in places if place.start <= offset <= place.end]
        if self.costs is None or not around:
            return None
        place = min(around, key=lambda each: each.end - each.start)
        nodes = [node for span, each in self.statements if span == place for node in each.nodes]
        owners = {node.owner for node in nodes if isinstance(node, OpNode)}
        pools = tuple(f"{node.name}." for node in nodes if isinstance(node, PoolNode))
        names = {node.name for node in nodes}
        own = self.costs.own.items()
        added = [cost for name, cost in own if name in owners | names or (pools and name.startswith(pools))]
        return sum(added, Cost()), Counter(span for span, _ in self.statements)[place]

    def word_at(self, offset: int) -> PlacedToken | None:
        """The token that a place touches; a name rather than the sign next to it."""
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
        found = self.head(name)
        return found if found is not None and found.keyword.type == "BLOCK" else None

    def head(self, name: str) -> Head | None:
        """How a definition begins that the text has or imports."""
        return _head_of(name, self.tokens) or self.find_import(name)


def analyse(source: Source) -> Analysis:
    """Read a text. The model's parameters have their defaults."""
    report = Report()
    values: list[tuple[Span, Any]] = []
    file = parse(source, report)
    tree = parse_broken(source) if file is None else file
    elaborated = report if file is not None else Report()  # of a broken text, syntax mistakes are all that is certain
    observe = lambda span, value: values.append((span, value))  # noqa: E731
    graph = None
    if tree is not None and tree.models:
        graph = diagnose(tree, {}, elaborated, observe)
    elif tree is not None:
        elaborate_blocks(tree, elaborated, observe)
    found = tuple(read_tokens(source))
    named = [(span, value) for span, value in values if not isinstance(value, Elaborated)]
    statements = [(span, value) for span, value in values if isinstance(value, Elaborated)]
    return Analysis(source, found, tree, tuple(report.list_diagnostics()), tuple(named), tuple(statements), graph)


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
    """The kind of the token behind the bracket that closes the one at a place."""
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
