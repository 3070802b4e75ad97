"""Reads a text into a syntax tree, telling every syntax mistake of the text in one go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from modgraph.diagnostics import Diagnostic, Report, Source, Span, closest, listed
from modgraph.files import open_file, reason_of
from modgraph.syntax import ast
from modgraph.syntax.errors import NothingHere, NotText, TooDeep, TooLong, UnreadableFile
from modgraph.syntax.limits import BRACKET_DEPTH, LETTERS, REPORTED_SYNTAX_ERRORS, SOURCE_BYTES, TOKENS
from modgraph.syntax.recovery import Recovery
from modgraph.syntax.tables import literals
from modgraph.syntax.tokens import PlacedToken, tokens

OPENING = frozenset(("LPAR", "LSQB", "LBRACE"))
CLOSING = frozenset(("RPAR", "RSQB", "RBRACE"))


def read(path: str | Path, report: Report, span: Span | None = None, label: str = "") -> Source | None:
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
    return Source(name, content.decode("utf-8-sig").replace("\r\n", "\n"), label)


def parse(source: Source, report: Report) -> ast.File | None:
    """The tree of a text, or None with every syntax mistake reported."""
    if (reason := _unreadable(source.text.encode("utf-8", "surrogatepass"))) is not None:
        report.add(NotText(path=source.name, reason=reason, limit=SOURCE_BYTES))
        return None
    earlier = len(report.errors)
    stream = _bounded(source, report)
    file = Recovery(source, report).run(stream) if stream is not None else None
    if len(report.errors) > earlier or file is None:
        return None
    if not file.definitions:
        report.add(NothingHere(span=Span(source, 0, min(1, len(source.text)))))
        return None
    return file


def words_of(source: Source) -> list[PlacedToken]:
    """The tokens of a text, mistakes in it or not."""
    stream = list(tokens(source, Report()))
    Recovery(source, Report()).run(stream)
    return stream


def _bounded(source: Source, report: Report) -> list[PlacedToken] | None:
    """The tokens of a text, or None where there are too many or brackets are nested too deep, which is told."""
    stream: list[PlacedToken] = []
    depth = 0
    most = len(report.errors) + REPORTED_SYNTAX_ERRORS
    for token in tokens(source, report):
        span, depth = token.span, max(0, depth + (token.type in OPENING) - (token.type in CLOSING))
        problem: Diagnostic | None = None
        if depth > BRACKET_DEPTH:
            problem = TooDeep(span=span, what="brackets are", limit=BRACKET_DEPTH)
        elif len(stream) == TOKENS:
            problem = TooLong(span=span, what="words and signs", limit=TOKENS)
        elif token.type == "NAME" and len(token) > LETTERS:
            problem = TooLong(span=span, what="letters in a name", limit=LETTERS, way_out="choose a shorter one")
        if problem is not None:
            report.add(problem)
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
    """Specs that a misspelt path, or a folder, may have meant."""
    try:
        if path.is_dir():
            names = sorted(str(entry) for entry in path.glob("*.mod"))
            return f"name a spec: {listed(names)}" if names else "name a spec, a file that ends in .mod"
        names = [entry.name for entry in path.parent.iterdir() if entry.suffix == path.suffix and entry != path]
    except (OSError, ValueError):
        return "check the path"
    match = closest(path.name, names)
    return f'did you mean "{path.parent / match}"?' if match else "check the path"


def keywords() -> Iterator[str]:
    """The reserved words of the language."""
    return (text for name, text in literals().items() if text.isalpha() and name == text.upper())
