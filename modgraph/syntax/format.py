"""The one layout of a spec.

A statement a line, two spaces for each brace, long lines filled to 110 columns; keywords of neighbouring declarations
are aligned. Comments stay where they stand, and one blank line between statements is kept. Only white space changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from modgraph.diagnostics import Report, Source
from modgraph.syntax.parse import parse, words_of
from modgraph.syntax.tokens import PlacedToken

WIDTH = 110
INDENT = 2
CONTINUATION = 4
WIDEST_HANG = 40  # a bracket further right than this does not set the column of the lines below it

OPENING = {"LPAR": "RPAR", "LSQB": "RSQB"}
TIGHT = frozenset(("DOT", "DOTDOT", "POWER"))
BREAK_BEFORE = frozenset(("ARROW", "PLUS", "AND", "OR"))
BEFORE_DIFFERENCE = frozenset("NAME INTEGER DECIMAL STRING TRUE FALSE RPAR RSQB".split())  # elsewhere - is a sign
ALIGNED = (("input", "target"), ("tokenizer", "module", "pool", "router"))


def format_source(source: Source, report: Report) -> str | None:
    """The text in the one layout, or None with its syntax mistakes reported."""
    file = parse(source, report)
    if file is None:
        return None
    starts = {each.span.start for each in (*file.imports, *file.definitions)}
    starts |= {each.span.start for definition in file.definitions for each in definition.body.every_statement()}
    stream = words_of(source)
    ends = [0, *(token.span.end for token in stream)]
    begins = [*(token.span.start for token in stream), len(source.text)]
    gaps = [_Gap(source.text[end:begin]) for end, begin in zip(ends, begins, strict=True)]
    logical = list(_logical_lines(stream, gaps, starts))
    _align(logical)
    written: list[str] = []
    for line in logical:
        closing = line.tokens[0].type == "RBRACE"
        _write_gap(written, line.gaps[0], (line.depth + closing) * INDENT)
        if closing and not written[-1]:
            written.pop()
        written += _physical(line)
    _write_gap(written, gaps[-1], 0)
    return "\n".join(written if written[-1] else written[:-1]) + "\n"


class _Gap:
    """What stands between two tokens: a comment behind the first, then lines of comments or nothing."""

    def __init__(self, text: str) -> None:
        self.trailing, *lines = (line.strip() for line in text.split("\n"))
        self.lines = lines if lines and lines[-1] else lines[:-1]
        self.comments = bool(self.trailing) or any(self.lines)


@dataclass
class _Line:
    """One logical line: a statement or its head, or a closing brace. A gap stands before each token."""

    depth: int
    tokens: list[PlacedToken] = field(default_factory=list)
    gaps: list[_Gap] = field(default_factory=list)
    keyword_width: int = 0

    @property
    def family(self) -> tuple[str, ...] | None:
        """The keywords that its own is aligned with."""
        return next((family for family in ALIGNED if self.tokens[0] in family), None)


def _logical_lines(stream: list[PlacedToken], gaps: list[_Gap], starts: set[int]) -> Iterator[_Line]:
    """Cuts the tokens at statements and braces."""
    depth, line, before = 0, _Line(0), ""
    for token, gap in zip(stream, gaps, strict=False):
        closing = token.type == "RBRACE"
        empty = closing and before == "LBRACE" and not gap.comments
        depth -= closing
        if line.tokens and not empty and (closing or (token.span.start in starts and before != "ELSE")):
            yield line
            line = _Line(depth)
        line.tokens.append(token)
        line.gaps.append(gap)
        depth += token.type == "LBRACE"
        before = token.type
    if line.tokens:
        yield line


def _align(lines: list[_Line]) -> None:
    """Pad the keywords of neighbouring declarations to one width."""
    runs: list[list[_Line]] = []
    for line in lines:
        last = runs[-1][-1] if runs else None
        if last is None or line.family != last.family or line.depth != last.depth or line.gaps[0].lines:
            runs.append([])
        runs[-1].append(line)
    for run in runs:
        width = max(len(each.tokens[0]) for each in run) if run[0].family is not None else 0
        for each in run:
            each.keyword_width = width


def _write_gap(written: list[str], gap: _Gap, indent: int) -> None:
    """Comments and at most one blank line, never behind an opening brace."""
    if gap.trailing and written:
        written[-1] += f"  {gap.trailing}"
    elif gap.trailing:
        written.append(gap.trailing)
    for line in gap.lines:
        if line:
            written.append(" " * indent + line)
        elif written and written[-1] and not written[-1].endswith("{"):
            written.append("")


@dataclass(frozen=True)
class _Word:
    """A token inside a line: the space before it, the bracket depth it stands at, whether a line may break there."""

    token: PlacedToken
    space: str
    depth: int
    breakable: bool
    gap: _Gap


def _words(line: _Line) -> Iterator[_Word]:
    depth = int(line.tokens[0].type in OPENING)
    for at, token in enumerate(line.tokens[1:], start=1):
        space = " " if _spaced(line.tokens, at, depth) else ""
        depth -= token.type in OPENING.values()
        breakable = line.tokens[at - 1].type == "COMMA" or token.type in BREAK_BEFORE
        yield _Word(token, space, depth, breakable, line.gaps[at])
        depth += token.type in OPENING


def _physical(line: _Line) -> list[str]:
    """One logical line as lines of text, filled to the width; it breaks outside brackets rather than inside."""
    words, base = list(_words(line)), line.depth * INDENT
    lines = [" " * base + str(line.tokens[0]).ljust(line.keyword_width)]
    hangs: list[int] = []  # the columns right of the brackets that are open

    def begin_line() -> None:
        hang = hangs[-1] if hangs else 0
        lines.append(" " * (hang if 0 < hang <= WIDEST_HANG else base + CONTINUATION))

    for at, word in enumerate(words):
        if word.gap.comments:  # comments in the middle of a statement end its line
            lines[-1] += f"  {word.gap.trailing}" if word.gap.trailing else ""
            for comment in filter(None, word.gap.lines):
                begin_line()
                lines[-1] += comment
            begin_line()
        elif word.breakable:  # where all up to the next place to break, at this depth or further out, does not fit
            width = len(lines[-1])
            for each in words[at:]:
                if each is not word and each.breakable and each.depth <= word.depth:
                    break
                width += len(each.space) + len(each.token)
            if width > WIDTH:
                begin_line()
        lines[-1] += word.space + word.token if lines[-1].strip() else word.token
        if word.token.type in OPENING:
            hangs.append(len(lines[-1]))
        elif word.token.type in OPENING.values():
            hangs.pop()
    return lines


def _spaced(line: list[PlacedToken], at: int, depth: int) -> bool:
    """Whether a space stands between a token and the one before it."""
    before, token = line[at - 1], line[at]
    if token.type in TIGHT or before.type in TIGHT or before.type in OPENING:
        return False
    if token.type in ("COMMA", "COLON", *OPENING.values()):
        return False
    if "EQUAL" in (token.type, before.type) and depth:
        return False
    if before.type == "MINUS" and (at == 1 or line[at - 2].type not in BEFORE_DIFFERENCE):
        return False
    return token.type not in OPENING or before.type not in ("NAME", "RPAR", "RSQB")
