"""Where a message points: a text and a stretch of it."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath


@dataclass(frozen=True)
class Source:
    """A text and its name, a path or `<string>`.

    `label` is the name in pages, which leave the machine: it holds no folder above the spec's. It is the file's name
    unless given.
    """

    name: str
    text: str = field(repr=False)
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or PurePath(self.name).name)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0] + [at + 1 for at, char in enumerate(self.text) if char == "\n"]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both counted from 1."""
        line = bisect.bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        start = self._line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start : len(self.text) if end < 0 else end].rstrip("\r")


@dataclass(frozen=True)
class Span:
    """The characters `start` to `end` (half-open) of a source."""

    source: Source
    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The stretch from here to the end of `other`."""
        return Span(self.source, self.start, other.end if other.end > self.end else self.end)

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    def holds(self, other: Span) -> bool:
        """Whether another stretch lies in this one."""
        return self.source is other.source and self.start <= other.start and other.end <= self.end

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"
