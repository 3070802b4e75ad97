"""The one layout of a spec.

A statement a line, two spaces for each brace, long lines filled to 110 columns; keywords of neighbouring declarations
are aligned. Comments stay where they stand, and one blank line between statements is kept. Only white space changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from modgraph.diagnostics import Report, Source
from modgraph.syntax import ast
from modgraph.syntax.parse import parse, words_of
from modgraph.syntax.tokens import PlacedToken

WIDTH = 110
INDENT = 2
CONTINUATION = 4
WIDEST_HANG = 40  # a bracket further right than this does not set the column of the lines below it

OPENING = {"LPAR": "RPAR", "LSQB": "RSQB"}
BINARY = frozenset(
    "ARROW PLUS MINUS STAR SLASH FLOOR PERCENT EQUALS UNEQUAL LESS AT_MOST GREATER AT_LEAST EQUAL".split()
)
TIGHT = frozenset(("DOT", "DOTDOT", "POWER"))
BREAK_BEFORE = frozenset(("ARROW", "PLUS", "AND", "OR"))
ALIGNED = (("input", "target"), ("tokenizer", "module", "pool", "router"))


def format_source(source: Source, report: Report) -> str | None:
    """The text in the one layout, or None with its syntax mistakes reported."""
    file = parse(source, report)
    if file is None:
        return None
    return "\n".join(_Layout(source.text, words_of(source), _starts(file)).lines()) + "\n"


def _starts(file: ast.File) -> set[int]:
    """Where definitions and statements begin."""
    starts = {each.span.start for each in (*file.imports, *file.definitions)}
    pending: list[ast.Tree] = [definition.body for definition in file.definitions]
    while pending:
        tree = pending.pop()
        if isinstance(tree, ast.Body):
            starts |= {statement.span.start for statement in tree.statements}
            pending += tree.statements
        else:
            children = (getattr(tree, name, None) for name in ("body", "then", "otherwise"))
            pending += [child for child in children if isinstance(child, ast.Body)]
    return starts


@dataclass
class _Gap:
    """What stands between two tokens: a comment behind the first, then lines of comments or nothing."""

    trailing: str | None = None
    lines: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, text: str) -> _Gap:
        first, *rest = (line.strip() for line in text.split("\n"))
        return cls(first or None, rest[:-1] + ([rest[-1]] if rest and rest[-1] else []))

    @property
    def comments(self) -> bool:
        return self.trailing is not None or any(self.lines)


@dataclass
class _Line:
    """One logical line: a statement or its head, or a closing brace. `gap` stands before its first token."""

    depth: int
    gap: _Gap
    tokens: list[PlacedToken] = field(default_factory=list)
    gaps: list[_Gap] = field(default_factory=list)  # before each further token
    keyword_width: int = 0


class _Layout:
    def __init__(self, text: str, stream: list[PlacedToken], starts: set[int]) -> None:
        self.stream = stream
        self.starts = starts
        ends = [0, *(token.span.end for token in stream)]
        begins = [*(token.span.start for token in stream), len(text)]
        self.gaps = [_Gap.of(text[end:begin]) for end, begin in zip(ends, begins, strict=True)]

    def lines(self) -> list[str]:
        logical = list(self._logical())
        _align(logical)
        written: list[str] = []
        for line in logical:
            closing = line.tokens[0].type == "RBRACE"
            _write_gap(written, line.gap, (line.depth + closing) * INDENT)
            if closing and not written[-1]:
                written.pop()
            written += _physical(line)
        _write_gap(written, self.gaps[-1], 0)
        return written if written[-1] else written[:-1]

    def _logical(self) -> Iterator[_Line]:
        """Cuts the tokens at statements and braces."""
        depth = 0
        line = _Line(0, self.gaps[0])
        for at, token in enumerate(self.stream):
            before = self.stream[at - 1] if at else None
            gap = self.gaps[at]
            closing = token.type == "RBRACE"
            empty = closing and before is not None and before.type == "LBRACE" and not gap.comments
            depth -= closing
            if line.tokens and not empty and (closing or self._begins(token, before)):
                yield line
                line = _Line(depth, gap)
            elif line.tokens:
                line.gaps.append(gap)
            line.tokens.append(token)
            depth += token.type == "LBRACE"
        if line.tokens:
            yield line

    def _begins(self, token: PlacedToken, before: PlacedToken | None) -> bool:
        if before is not None and before.type == "ELSE":
            return False
        return token.span.start in self.starts


def _align(lines: list[_Line]) -> None:
    """Pad the keywords of neighbouring declarations to one width."""
    run: list[_Line] = []
    for line in [*lines, None]:
        if run and (line is None or not _continues(run[-1], line)):
            width = max(len(each.tokens[0]) for each in run)
            for each in run:
                each.keyword_width = width
            run = []
        if line is not None and _family(line) is not None:
            run.append(line)


def _continues(last: _Line, line: _Line) -> bool:
    apart = "" in line.gap.lines or any(line.gap.lines)
    return _family(line) == _family(last) and line.depth == last.depth and not apart


def _family(line: _Line) -> tuple[str, ...] | None:
    return next((family for family in ALIGNED if line.tokens[0] in family), None)


def _write_gap(written: list[str], gap: _Gap, indent: int) -> None:
    """Comments and at most one blank line, never behind an opening brace."""
    if gap.trailing is not None:
        if written:
            written[-1] += f"  {gap.trailing}"
        else:
            written.append(gap.trailing)
    for line in gap.lines:
        if line:
            written.append(" " * indent + line)
        elif written and written[-1] and not written[-1].endswith("{"):
            written.append("")


def _physical(line: _Line) -> list[str]:
    """One logical line as lines of text, filled to the width; it breaks outside brackets rather than inside."""
    words = list(_words(line))
    filled = _Filled(line.depth * INDENT, [str(line.tokens[0]).ljust(line.keyword_width)], words)
    for at, word in enumerate(words):
        if word.gap.comments:
            filled.comment(word.gap)
        elif word.breakable and not filled.has_room(at):
            filled.new_line()
        filled.put(word)
    return filled.lines


@dataclass(frozen=True)
class _Word:
    """A token inside a line: the space before it, the bracket depth it stands at, whether a line may break there."""

    text: str
    kind: str
    space: str
    depth: int
    breakable: bool
    gap: _Gap


def _words(line: _Line) -> Iterator[_Word]:
    depth = int(line.tokens[0].type in OPENING)
    for at, token in enumerate(line.tokens[1:], start=1):
        closing = token.type in OPENING.values()
        space = " " if _spaced(line.tokens, at, depth) else ""
        depth -= closing
        yield _Word(str(token), token.type, space, depth, _may_break(line.tokens, at), line.gaps[at - 1])
        depth += token.type in OPENING


class _Filled:
    """Lines of text being filled with words. `hangs` are the columns right of the brackets that are open."""

    def __init__(self, base: int, start: list[str], words: list[_Word]) -> None:
        self.base = base
        self.words = words
        self.lines = [" " * base + start[0]]
        self.hangs: list[int] = []

    def put(self, word: _Word) -> None:
        fresh = not self.lines[-1].strip()
        self.lines[-1] += word.text if fresh else word.space + word.text
        if word.kind in OPENING:
            self.hangs.append(len(self.lines[-1]))
        elif word.kind in OPENING.values():
            self.hangs.pop()

    def has_room(self, at: int) -> bool:
        """Whether all up to the next place to break, at this depth or further out, fits on the line."""
        length = len(self.lines[-1])
        for word in self.words[at:]:
            if word is not self.words[at] and word.breakable and word.depth <= self.words[at].depth:
                break
            length += len(word.space) + len(word.text)
        return length <= WIDTH

    def new_line(self) -> None:
        hang = self.hangs[-1] if self.hangs else 0
        self.lines.append(" " * (hang if 0 < hang <= WIDEST_HANG else self.base + CONTINUATION))

    def comment(self, gap: _Gap) -> None:
        """Comments in the middle of a statement end its line."""
        if gap.trailing:
            self.lines[-1] += f"  {gap.trailing}"
        for comment in filter(None, gap.lines):
            self.new_line()
            self.lines[-1] += comment
        self.new_line()


def _may_break(line: list[PlacedToken], at: int) -> bool:
    return line[at - 1].type == "COMMA" or line[at].type in BREAK_BEFORE


def _spaced(line: list[PlacedToken], at: int, depth: int) -> bool:
    """Whether a space stands between a token and the one before it."""
    before, token = line[at - 1], line[at]
    if token.type in TIGHT or before.type in TIGHT or before.type in OPENING:
        return False
    if token.type in ("COMMA", "COLON", *OPENING.values()):
        return False
    if "EQUAL" in (token.type, before.type) and depth:
        return False
    if before.type == "MINUS" and _is_sign(line, at - 1):
        return False
    if token.type in OPENING:
        return before.type not in ("NAME", "RPAR", "RSQB")
    return True


def _is_sign(line: list[PlacedToken], at: int) -> bool:
    """Whether a minus is a sign and not a difference."""
    if at == 0:
        return True
    return line[at - 1].type not in ("NAME", "INTEGER", "DECIMAL", "STRING", "TRUE", "FALSE", "RPAR", "RSQB")
