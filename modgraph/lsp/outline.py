"""The outline of a text: its definitions, and what each of them declares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from modgraph.diagnostics import Span
from modgraph.lsp.symbols import Kind, Occurrence


@dataclass(frozen=True)
class Entry:
    """A line of an outline; `span` is all of it, `name_span` its name."""

    name: str
    kind: Kind
    span: Span
    name_span: Span
    detail: str = ""
    children: tuple[Entry, ...] = ()


def outline(occurrences: list[Occurrence], definitions: dict[str, Span]) -> Iterator[Entry]:
    """The definitions of a file with what they declare, each name once. `definitions` are their extents by name."""
    declared = [each for each in occurrences if each.declares]
    for top in (each for each in declared if not each.symbol.definition):
        inside = [each for each in declared if each.symbol.definition == top.symbol.name]
        first = {each.symbol: each for each in reversed(inside)}
        children = sorted(first.values(), key=lambda each: each.span.start)
        entries = tuple(Entry(each.symbol.name, each.kind, each.span, each.span, each.kind) for each in children)
        extent = definitions[top.symbol.name]
        yield Entry(top.symbol.name, top.kind, extent, top.span, top.kind, entries)
