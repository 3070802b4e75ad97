"""Formats a spec; only white space changes.

Each statement gets a line, each brace two spaces, and long lines break at 110 columns. Keywords of neighbouring
declarations are aligned. Comments keep their place, and one blank line between statements stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from modgraph.diagnostics import Report, Source
from modgraph.syntax.parse import parse, read_tokens
from modgraph.syntax.tokens import PlacedToken

WIDTH = 110
INDENT = 2
CONTINUATION = 4
WIDEST_HANG = 40  # a bracket further right than this does not set the column of the lines below it

OPENING = {"LPAR": "RPAR", "LSQB": "RSQB"}
TIGHT = frozenset(("DOT", "DOTDOT", "POWER"))
BREAK_BEFORE = frozenset(("ARROW", "PLUS", "AND", "OR"))
BEFORE_DIFFERENCE = frozenset(
    "NAME INTEGER DECIMAL STRING TRUE FALSE RPAR RSQB".split()
)  # after other tokens, - is a sign
ALIGNED = (("input", "target"), ("tokenizer", "module", "pool", "router"))


def format_source(source: Source, report: Report) -> str | None:
    """Format a text; None, with every syntax mistake reported."""
    file = parse(source, report)
    if file is None:
        return None
    statement_offsets = {each.span.start for each in (*file.imports, *file.definitions)}
    statement_offsets |= {
        each.span.start for definition in file.definitions for each in definition.body.every_statement()
    }
    stream = read_tokens(source)
    ends = [0, *(token.span.end for token in stream)]
    begins = [*(token.span.start for token in stream), len(source.text)]
    gaps = [_Gap(source.text[end:begin]) for end, begin in zip(ends, begins, strict=True)]
    logical = list(_split_lines(stream, gaps, statement_offsets))
    _align(logical)
    written: list[str] = []
    for line in logical:
        closing = line.tokens[0].type == "RBRACE"
        _write_gap(written, line.gaps[0], (line.depth + closing) * INDENT)
        if closing and not written[-1]:
            written.pop()
        written += _break_line(line)
    _write_gap(written, gaps[-1], 0)
    return "\n".join(written if written[-1] else written[:-1]) + "\n"


class _Gap:
    """The text between two tokens: a trailing comment, then lines that are comments or blank."""

    def __init__(self, text: str) -> None:
        self.trailing, *lines = (line.strip() for line in text.split("\n"))
        self.lines = lines if lines and lines[-1] else lines[:-1]
        self.comments = bool(self.trailing) or any(self.lines)


@dataclass
class _Line:
    """One logical line: a statement, its head, or a closing brace. Each token has a gap before it."""

    depth: int
    tokens: list[PlacedToken] = field(default_factory=list)
    gaps: list[_Gap] = field(default_factory=list)
    keyword_width: int = 0

    @property
    def family(self) -> tuple[str, ...] | None:
        """The keywords that align with the first token."""
        return next((family for family in ALIGNED if self.tokens[0] in family), None)


def _split_lines(stream: list[PlacedToken], gaps: list[_Gap], statement_offsets: set[int]) -> Iterator[_Line]:
    """Split the tokens at statements and braces."""
    depth, line, before = 0, _Line(0), ""
    for token, gap in zip(stream, gaps, strict=False):
        closing = token.type == "RBRACE"
        empty = closing and before == "LBRACE" and not gap.comments
        depth -= closing
        if line.tokens and not empty and (closing or (token.span.start in statement_offsets and before != "ELSE")):
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
    """Write the comments of a gap and at most one blank line, but none after an opening brace."""
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
    """A token inside a line: the space before it, its bracket depth, whether the line may break before it."""

    token: PlacedToken
    space: str
    depth: int
    breakable: bool
    gap: _Gap


def _space_tokens(line: _Line) -> Iterator[_Word]:
    depth = int(line.tokens[0].type in OPENING)
    for at, token in enumerate(line.tokens[1:], start=1):
        space = " " if _needs_space(line.tokens, at, depth) else ""
        depth -= token.type in OPENING.values()
        breakable = line.tokens[at - 1].type == "COMMA" or token.type in BREAK_BEFORE
        yield _Word(token, space, depth, breakable, line.gaps[at])
        depth += token.type in OPENING


def _break_line(line: _Line) -> list[str]:
    """Break a logical line into lines of text, outside brackets before inside them."""
    words, base = list(_space_tokens(line)), line.depth * INDENT
    lines = [" " * base + str(line.tokens[0]).ljust(line.keyword_width)]
    hangs: list[int] = []  # the columns right of the open brackets

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
        elif word.breakable:  # break where the text up to the next break at this depth or further out does not fit
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


def _needs_space(line: list[PlacedToken], at: int, depth: int) -> bool:
    """Whether a space separates a token from the one before it."""
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
