"""What a page shows beside graphs: plain data, drawn in the browser in the colours of the page."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Cell = str | int | float | None


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str

    def as_json(self) -> dict[str, Any]:
        return {"kind": "text", "text": self.text}


@dataclass(frozen=True)
class Table:
    """Rows of as many cells as the header, which may be empty; numbers stand right."""

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""

    def as_json(self) -> dict[str, Any]:
        rows = [[_finite(cell) for cell in row] for row in self.rows]
        return {"kind": "table", "title": self.title, "header": list(self.header), "rows": rows}


@dataclass(frozen=True)
class Bars:
    """A bar for each label, the largest value the longest."""

    labels: Sequence[str]
    values: Sequence[float]
    title: str = ""

    def as_json(self) -> dict[str, Any]:
        values = [_number(value) for value in self.values]
        return {"kind": "bars", "title": self.title, "labels": list(self.labels), "values": values}


@dataclass(frozen=True)
class Heatmap:
    """A cell for each row and column, the largest value the strongest: `values[row][column]`, none below zero. Maps
    that are looked at together name the largest value of them all, `most`."""

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float]]
    title: str = ""
    most: float = 0.0

    def as_json(self) -> dict[str, Any]:
        values = [[_number(value) for value in row] for row in self.values]
        return {
            "kind": "heatmap",
            "title": self.title,
            "rows": list(self.rows),
            "columns": list(self.columns),
            "values": values,
            "most": _number(self.most),
        }


@dataclass(frozen=True)
class Curve:
    """A named series of points (x, y)."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Curves:
    """Curves in one chart; points that are no finite numbers are left out."""

    series: Sequence[Curve]
    title: str = ""
    x_label: str = ""

    def as_json(self) -> dict[str, Any]:
        series = [
            {"name": each.name, "points": [point for point in each.points if all(map(math.isfinite, point))]}
            for each in self.series
        ]
        return {"kind": "curves", "title": self.title, "series": series, "x_label": self.x_label}


@dataclass(frozen=True)
class Picture:
    """A PNG image."""

    png: bytes
    title: str = ""

    def as_json(self) -> dict[str, Any]:
        data = "data:image/png;base64," + base64.b64encode(self.png).decode()
        return {"kind": "picture", "title": self.title, "data": data}


Content = Text | Table | Bars | Heatmap | Curves | Picture


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


def _finite(cell: Cell) -> Cell:
    return str(cell) if isinstance(cell, float) and not math.isfinite(cell) else cell


def _number(value: float) -> float:
    """A value that JSON has: what is no finite number counts as zero."""
    return value if math.isfinite(value) else 0.0
