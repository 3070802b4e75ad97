"""What a page shows beside graphs: plain data, drawn in the browser in the colours of the page."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

Cell = str | int | float | None


@dataclass(frozen=True)
class Content:
    """A thing that `charts.js` draws: in JSON its kind and its fields, zero for what is no finite number."""

    def as_json(self) -> dict[str, Any]:
        record = {each.name: self.plain(getattr(self, each.name)) for each in fields(self)}
        return {"kind": type(self).__name__.lower(), **record}

    def plain(self, value: Any) -> Any:
        """A value that JSON has."""
        if isinstance(value, list | tuple):
            return [self.plain(each) for each in value]
        return 0.0 if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True)
class Text(Content):
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Table(Content):
    """Rows of as many cells as the header, which may be empty; numbers stand right."""

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""

    def plain(self, value: Any) -> Any:
        return str(value) if isinstance(value, float) and not math.isfinite(value) else super().plain(value)


@dataclass(frozen=True)
class Bars(Content):
    """A bar for each label, the largest value the longest."""

    labels: Sequence[str]
    values: Sequence[float]
    title: str = ""


@dataclass(frozen=True)
class Heatmap(Content):
    """A cell for each row and column, the largest value the strongest: `values[row][column]`, none below zero. Maps
    that are looked at together name the largest value of them all, `most`."""

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float]]
    title: str = ""
    most: float = 0.0


@dataclass(frozen=True)
class Curve:
    """A named series of points (x, y)."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Curves(Content):
    """Curves in one chart; points that are no finite numbers are left out."""

    series: Sequence[Curve]
    title: str = ""
    x_label: str = ""

    def plain(self, value: Any) -> Any:
        if isinstance(value, Curve):
            return {"name": value.name, "points": [point for point in value.points if all(map(math.isfinite, point))]}
        return super().plain(value)


@dataclass(frozen=True)
class Picture(Content):
    """A PNG image."""

    data: bytes
    title: str = ""

    def plain(self, value: Any) -> Any:
        return "data:image/png;base64," + base64.b64encode(value).decode() if isinstance(value, bytes) else value


@dataclass(frozen=True)
class Section:
    """A headed part of the page's second tab. `nodes` are the ids of boxes that it speaks of: its heading leads to the
    first, and each of them, when it is selected, to the section."""

    title: str
    content: Sequence[Content]
    nodes: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        content = [each.as_json() for each in self.content]
        return {"title": self.title, "content": content, "nodes": list(self.nodes)}
