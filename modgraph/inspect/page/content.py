"""The content of a page: graphs with notes on their boxes, and data that the browser draws."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from modgraph.diagnostics import Source
from modgraph.inspect.scene import Scene

Cell = str | int | float | None


@dataclass(frozen=True)
class Curve:
    """A named series of points (x, y)."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Content:
    """Something that `charts.js` draws. JSON has its kind and its fields, with zero for numbers that are not finite."""

    def as_json(self) -> dict[str, Any]:
        record = {each.name: self._plain(getattr(self, each.name)) for each in fields(self)}
        return {"kind": type(self).__name__.lower(), **record}

    def _plain(self, value: Any) -> Any:
        match value:
            case list() | tuple():
                return [self._plain(each) for each in value]
            case Content():
                return value.as_json()
            case Curve(name, points):
                return {"name": name, "points": [point for point in points if all(map(math.isfinite, point))]}
            case bytes():
                return "data:image/png;base64," + base64.b64encode(value).decode()
            case float() if not math.isfinite(value):
                return str(value) if isinstance(self, Table) else 0.0
            case _:
                return value


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


@dataclass(frozen=True)
class Bars(Content):
    """A bar for each label, the largest value the longest."""

    labels: Sequence[str]
    values: Sequence[float]
    title: str = ""


@dataclass(frozen=True)
class Heatmap(Content):
    """A cell for each row and column: `values[row][column]`, none negative. The largest value has the strongest colour.

    Maps to be compared share the largest value of all, `most`.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float]]
    title: str = ""
    most: float = 0.0


@dataclass(frozen=True)
class Curves(Content):
    """Curves in one chart, without points that are not finite."""

    series: Sequence[Curve]
    title: str = ""
    x_label: str = ""


@dataclass(frozen=True)
class Picture(Content):
    """A PNG image."""

    data: bytes
    title: str = ""


@dataclass(frozen=True)
class Fold(Content):
    """Other content under a summary, folded at first."""

    summary: str
    content: Sequence[Content]


@dataclass(frozen=True)
class Section:
    """A section of the page's second tab. Its heading links to the first of the boxes `nodes`, and each of them to
    it."""

    title: str
    content: Sequence[Content]
    nodes: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        content = [each.as_json() for each in self.content]
        return {"title": self.title, "content": content, "nodes": list(self.nodes)}


Kind = Literal["added", "removed", "changed", "moved"]


@dataclass(frozen=True)
class Mark:
    """The change of a box between two graphs: a coloured frame, and `lines` of text in the panel.

    `counterpart` is the id of the box in the other pane that follows its selection and folding; by default the same id.
    """

    kind: Kind
    lines: tuple[str, ...] = ()
    counterpart: str = ""


@dataclass(frozen=True)
class Change:
    """A change between two panes: what changed, and the first of its boxes in each pane, "" where there is none."""

    kind: Kind
    text: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Plan:
    """What changed, in a line, and the changes in order. The page leads from one to the next, and unfolds only them,
    unless it has loads of modules to display."""

    text: str
    changes: Sequence[Change]

    def as_json(self) -> dict[str, Any]:
        return {"text": self.text, "changes": [asdict(each) for each in self.changes]}


@dataclass(frozen=True)
class Pane:
    """A scene with its source, or the drawing by itself.

    `marks` are by id of boxes. `loads` are the shares of a pool's modules, which sum to one, by the id of the pool or
    of a route through it. `label` names the graph where there are several; `notes` are displayed with it.
    """

    scene: Scene
    source: Source | None = None
    marks: Mapping[str, Mark] = field(default_factory=dict)
    loads: Mapping[str, Sequence[float]] = field(default_factory=dict)
    label: str = ""
    notes: Sequence[str] = ()

    def sources(self) -> list[Source]:
        """The texts next to the drawing: the pane's own, then those of imported nodes."""
        own = [] if self.source is None else [self.source]
        known = {source.label for source in own}
        return own + [source for source in self.scene.sources if source.label not in known]

    def as_json(self) -> dict[str, Any]:
        return {
            "scene": self.scene.as_json() | {"sources": []},
            "sources": [{"name": source.label, "text": source.text} for source in self.sources()],
            "marks": {id: asdict(mark) for id, mark in self.marks.items()},
            "loads": {id: [float(share) for share in shares] for id, shares in self.loads.items()},
            "label": self.label,
            "notes": list(self.notes),
        }
