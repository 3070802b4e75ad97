"""What editors display in a text: inferred types behind names, and the kind of each word."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from modgraph.diagnostics import Span
from modgraph.elaboration import entities
from modgraph.lsp.analysis import Analysis
from modgraph.lsp.symbols import Kind, Occurrence
from modgraph.syntax import ast, keywords
from modgraph.vocabulary import find_op, is_router

MOST_TYPES = 2  # of one name in several rounds, which a hint lists
LITERALS = {"STRING": "string", "INTEGER": "number", "DECIMAL": "number", "TRUE": "keyword", "FALSE": "keyword"}
DTYPES = frozenset(("float", "token", "class", "edge"))
OF_KIND = {
    Kind.MODEL: "class",
    Kind.BLOCK: "class",
    Kind.ROUTER_TYPE: "class",
    Kind.PARAMETER: "parameter",
    Kind.KEY: "parameter",
    Kind.AXIS: "property",
    Kind.ROUNDS: "namespace",
}


def type_hints(analysis: Analysis, start: int, end: int) -> Iterator[tuple[int, str]]:
    """The inferred type of each bound value between two offsets, and where to display it."""
    for tree in ast.walk(analysis.file) if analysis.file is not None else ():
        places = list(_places(tree)) if tree.span.end >= start and tree.span.start <= end else []
        yield from ((span.end, f": {found}") for span in places if (found := _types(analysis, span)))


def _places(tree: ast.Tree) -> Iterator[Span]:
    """Names that a statement binds, and stages at the end of a line that goes on with an arrow."""
    if isinstance(tree, ast.Binding):
        yield from (reference.span for reference in tree.references)
    if isinstance(tree, ast.Pipeline):
        for stage, following in pairwise(tree.stages):
            if "\n" in stage.span.source.text[stage.span.end : following.span.start]:
                yield stage.span


def _types(analysis: Analysis, span: Span) -> str:
    """The types of a value in all rounds, as far as they differ."""
    values = analysis.values_of(span)
    types = dict.fromkeys(str(each.type) for each in values if isinstance(each, entities.Tensor))
    return " | ".join([*types][:MOST_TYPES]) + (" | …" if len(types) > MOST_TYPES else "")


def token_types(analysis: Analysis, occurrences: list[Occurrence]) -> Iterator[tuple[int, int, str, bool]]:
    """For each word of a text its offset, its length, its type for editors, and whether it declares a symbol."""
    symbols = {each.span.start: each for each in occurrences}
    reserved = set(keywords())
    for at, token in enumerate(analysis.tokens):
        text, following = str(token), analysis.tokens[at + 1].type if at + 1 < len(analysis.tokens) else ""
        found = symbols.get(token.span.start)
        if found is not None and token.type == "NAME":
            kind = OF_KIND.get(found.kind, "variable")
        elif token.type != "NAME":
            kind = LITERALS.get(token.type, "keyword" if text in reserved else "")
        else:
            before = analysis.tokens[at - 1].type if at else ""
            kind = _kind_of_word(text, before, following)
        if kind and "\n" not in text:
            yield token.span.start, len(text), kind, found is not None and found.declares


def _kind_of_word(word: str, before: str, following: str) -> str:
    """The type of a name that is no symbol of the text."""
    if word in DTYPES and before == "COLON":
        return "type"
    if following == "EQUAL" or before == "DOT":
        return "property"
    return "function" if find_op(word) is not None or is_router(word) else ""
