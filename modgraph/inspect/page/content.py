"""The content of a page: graphs with notes on their boxes, tables, and charts that Vega draws."""

from __future__ import annotations

import base64
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal

from modgraph.diagnostics import Source
from modgraph.inspect.scene import Scene
from modgraph.inspect.scene.arrange import fold_below

Cell = str | int | float | None


@dataclass(frozen=True)
class Curve:
    """A named series of points (x, y)."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Content:
    """A part of a section. JSON has its kind and its fields, with zero for numbers that are not finite."""

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
                return {"name": name, "points": [_plain_point(*point) for point in points]}
            case bytes():
                return "data:image/png;base64," + base64.b64encode(value).decode()
            case float() if not math.isfinite(value):
                return str(value) if isinstance(self, Table) else 0.0
            case _:
                return value


def _plain_point(x: float, y: float) -> list[float | None]:
    return [x, y] if math.isfinite(x) and math.isfinite(y) else [None, None]


def make_unique(names: Sequence[str]) -> list[str]:
    """Make equal names different without changing their looks: charts tell categories apart by their names."""
    times = Counter[str]()
    found = []
    for name in names:
        found.append(name + "\u200b" * times[name])
        times[name] += 1
    return found


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

    Maps to be compared share the largest value of all, `most`. Cells have their value, shares in percent, or their own
    `words`; none in a very large map or without `numbers`.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float]]
    title: str = ""
    most: float = 0.0
    words: Sequence[Sequence[str | int]] = ()
    numbers: bool = True
    x_label: str = ""
    y_label: str = ""

    def as_json(self) -> dict[str, Any]:
        return {**super().as_json(), "rows": make_unique(self.rows), "columns": make_unique(self.columns)}


@dataclass(frozen=True)
class Curves(Content):
    """Curves in one chart, interrupted at points that are not finite.

    `levels` are dotted lines at a height, `boundaries` upright lines, whose names may be empty, `events` triangles.
    """

    series: Sequence[Curve]
    title: str = ""
    x_label: str = ""
    levels: Sequence[tuple[str, float]] = ()
    boundaries: Sequence[tuple[str, float]] = ()
    events: Sequence[tuple[str, float]] = ()


@dataclass(frozen=True)
class Paths(Content):
    """Routes in the order of computation: `shares[route][module]` of all decisions, and `flows[route][module][module]`,
    the share of decisions for each pair of a module and one of the next route."""

    routes: Sequence[str]
    shares: Sequence[Sequence[float]]
    flows: Sequence[Sequence[Sequence[float]]]
    title: str = ""


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


Direction = Literal["down", "right"]
LEFT_OUT = ("losses", "shapes", "parameters")  # what a drawing can do without


@dataclass(frozen=True)
class DrawingOptions:
    """What a drawing has: boxes to a `depth`, or as many as fit; a `direction` of values; everything but what it is
    `without`; edges from `lengths` of axes."""

    depth: int | None = None
    direction: Direction = "down"
    without: tuple[str, ...] = ()
    lengths: bool = False

    def list_left_out(self) -> list[str]:
        """All that is left out."""
        return [*self.without, *["lengths"] * (not self.lengths)]


FITTING = DrawingOptions()  # what can be read at once


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
    options: DrawingOptions = FITTING

    def sources(self) -> list[Source]:
        """The texts next to the drawing: the pane's own, then those of imported nodes."""
        own = [] if self.source is None else [self.source]
        known = {source.label for source in own}
        return own + [source for source in self.scene.sources if source.label not in known]

    def _scene(self) -> Scene:
        depth = self.options.depth
        return self.scene if depth is None else replace(self.scene, boxes=fold_below(self.scene.boxes, depth))

    def as_json(self) -> dict[str, Any]:
        return {
            "scene": self._scene().as_json() | {"sources": []},
            "sources": [{"name": source.label, "text": source.text} for source in self.sources()],
            "marks": {id: asdict(mark) for id, mark in self.marks.items()},
            "loads": {id: [float(share) for share in shares] for id, shares in self.loads.items()},
            "label": self.label,
            "notes": list(self.notes),
        }
