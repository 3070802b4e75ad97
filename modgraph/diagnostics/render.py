"""Renders diagnostics as rustc does: code, place, the line, a caret, help."""

from __future__ import annotations

from collections.abc import Iterable

from modgraph_runtime.streams import printable

from modgraph.diagnostics.diagnostic import Diagnostic, Span

WIDEST_LINE = 160


def render(diagnostic: Diagnostic) -> str:
    """Render one diagnostic as lines without a trailing newline."""
    lines = [f"{diagnostic.severity}[{diagnostic.code}]: {printable(diagnostic.text())}"]
    if diagnostic.span is not None:
        lines += _excerpt(diagnostic.span)
    for note in diagnostic.notes:
        lines.append(f"  note: {printable(note.text)}")
        if note.span is not None:
            lines += _excerpt(note.span)
    if advice := diagnostic.advice():
        lines.append(f"  help: {printable(advice)}")
    return "\n".join(lines)


def render_all(diagnostics: Iterable[Diagnostic]) -> str:
    """Render all diagnostics with blank lines between them and a count at the end."""
    found = list(diagnostics)
    errors = sum(diagnostic.severity == "error" for diagnostic in found)
    counts = (errors, "error"), (len(found) - errors, "warning")
    words = [f"{n} {word}{'s' if n > 1 else ''}" for n, word in counts if n]
    return "\n\n".join([*map(render, found), ", ".join(words)])


class ModgraphError(Exception):
    """Mistakes in a spec, a recipe, data or a file, printed as the commands print them. `diagnostics` are all of them,
    each with its `code`, its place `span`, `text()` and `advice()`."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n" + render_all(self.diagnostics))


def _excerpt(span: Span) -> list[str]:
    number, column = span.source.position(span.start)
    line = span.source.line(number)
    end = min(column - 1 + max(1, span.end - span.start), max(len(line), column))
    first = max(0, column - 1 - WIDEST_LINE // 2)
    visible = line[first : first + WIDEST_LINE]
    before = "".join(char if char == "\t" else " " for char in line[first : column - 1])
    carets = "^" * max(1, min(end - (column - 1), WIDEST_LINE))
    gutter = " " * len(str(number))
    place = printable(str(span)).replace("\n", "\ufffd").replace("\t", "\ufffd")  # names of files may contain these
    return [
        f"{gutter}--> {place}",
        f"{gutter} |",
        f"{number} | {printable(visible)}",
        f"{gutter} | {before}{carets}",
    ]
