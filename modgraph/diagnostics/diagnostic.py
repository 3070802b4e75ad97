"""Sources, spans and diagnostics: the class holds the words of a message, its fields the facts.

A mistake of the user is a value, which a `Report` collects. Each class has one code. Its docstring is the page that
`modgraph explain` prints, and its `example` is a spec that triggers it.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from string import Formatter
from typing import Any, ClassVar, Self


@dataclass(frozen=True)
class Source:
    """A text and its name, a path or `<string>`.

    `label` is the name in pages, which leave the machine, so it holds no folder above that of the spec. It defaults to
    the name of the file. Messages too use a label such as `<modgraph>/agreement.mod`, of a text that modgraph contains.
    """

    name: str
    text: str = field(repr=False)
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or PurePath(self.name).name)

    @cached_property
    def _line_offsets(self) -> list[int]:
        return [0] + [at + 1 for at, char in enumerate(self.text) if char == "\n"]

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and column of a character, both from 1."""
        line = bisect.bisect_right(self._line_offsets, offset)
        return line, offset - self._line_offsets[line - 1] + 1

    def line(self, number: int) -> str:
        start = self._line_offsets[number - 1]
        end = self.text.find("\n", start)
        return self.text[start : len(self.text) if end < 0 else end].rstrip("\r")


@dataclass(frozen=True)
class Span:
    """The characters `start` to `end` (half-open) of a source."""

    source: Source
    start: int
    end: int

    def to(self, other: Span) -> Span:
        """Extend the span to the end of `other`."""
        return Span(self.source, self.start, other.end if other.end > self.end else self.end)

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    def holds(self, other: Span) -> bool:
        """Whether the span contains another."""
        return self.source is other.source and self.start <= other.start and other.end <= self.end

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        source = self.source
        return f"{source.label if source.label.startswith('<') else source.name}:{line}:{column}"


@dataclass(frozen=True, kw_only=True)
class Note:
    """A second place that a message refers to."""

    text: str
    span: Span | None = None


class Diagnostic:
    """Base of all diagnostics. The class statement sets the `code`; `message` and `help` are format strings.

    The names in braces are facts. The constructor takes those for which the class has no attribute.
    """

    catalogue: ClassVar[dict[str, type[Diagnostic]]] = {}

    code: ClassVar[str]
    severity: ClassVar[str] = "error"
    message: ClassVar[str]
    help: ClassVar[str] = "{way_out}"
    example: ClassVar[str] = ""
    ours: ClassVar[bool] = False  # whether it is a fault of modgraph

    def __init__(self, *, span: Span | None = None, notes: tuple[Note, ...] = (), **facts: Any) -> None:
        wrong = {name for name in self.facts() if not hasattr(type(self), name)} - {*facts} or {*facts} - self.facts()
        if wrong:
            raise TypeError(f"{type(self).__name__} is given {[*facts]}, and these lack or are too many: {[*wrong]}")
        self.span, self.notes = span, notes
        vars(self).update(facts)

    @classmethod
    def facts(cls) -> set[str]:
        """Return the names in the format strings."""
        return {name for text in (cls.message, cls.help) for _, name, _, _ in Formatter().parse(text) if name}

    def replace(self, **facts: Any) -> Self:
        """Return a copy with other facts, span or notes."""
        return type(self)(**{**vars(self), **facts})

    def __init_subclass__(cls, code: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if code:
            cls.code = code
            assert cls.code not in Diagnostic.catalogue, f"{cls.code} is declared twice"
            assert cls.__doc__, f"{cls.code} needs a docstring: it is what `explain` prints"
            Diagnostic.catalogue[cls.code] = cls

    def __repr__(self) -> str:
        return f"<{self.code}: {self.text()}>"

    def text(self) -> str:
        return self._fill(self.message)

    def advice(self) -> str:
        return self._fill(self.help)

    def _fill(self, text: str) -> str:
        """Fill a format string with the facts: fields and properties."""
        return text.format_map({name: getattr(self, name) for name in self.facts()})

    def as_json(self) -> dict[str, Any]:
        """Return the diagnostic for tools: code, severity, texts, and place (line and column from 1)."""
        place: dict[str, Any] = {}
        if self.span is not None:
            (line, column), (end_line, end_column) = map(self.span.source.position, (self.span.start, self.span.end))
            place = {"file": self.span.source.name, "line": line, "column": column}
            place |= {"end_line": end_line, "end_column": end_column}
        said = {"code": self.code, "severity": self.severity, "message": self.text(), "help": self.advice()}
        return {**said, **place, "notes": [note.text for note in self.notes]}


class Caution(Diagnostic):
    """Base of warnings, which do not stop the command."""

    severity = "warning"


class Report:
    """Collects diagnostics; it keeps one of each code, place and text."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._seen: set[tuple[str, int, str]] = set()

    def list_diagnostics(self) -> list[Diagnostic]:
        """List the diagnostics in the order of the text."""
        return sorted(self.diagnostics, key=lambda each: each.span.start if each.span else -1)

    def add(self, diagnostic: Diagnostic) -> None:
        offset = diagnostic.span.start if diagnostic.span else -1
        key = (diagnostic.code, offset, diagnostic.text())
        if key not in self._seen:
            self._seen.add(key)
            self.diagnostics.append(diagnostic)

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        for diagnostic in diagnostics:
            self.add(diagnostic)

    @property
    def errors(self) -> list[Diagnostic]:
        return [each for each in self.diagnostics if each.severity == "error"]

    @property
    def warnings(self) -> list[Diagnostic]:
        return [each for each in self.diagnostics if each.severity == "warning"]
