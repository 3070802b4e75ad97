"""One graph of a page: its scene, its source, and what is known of its boxes beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from modgraph.diagnostics import Source
from modgraph.inspect.scene import Scene


class MarkKind(StrEnum):
    """What became of a box between two graphs."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    MOVED = "moved"


@dataclass(frozen=True)
class Mark:
    """What became of a box: a coloured frame, and `lines` of text in the panel.

    `counterpart` is the id of the box in the other pane that it is selected and unfolded with; without one, that of the
    same id.
    """

    kind: MarkKind
    lines: tuple[str, ...] = ()
    counterpart: str = ""


@dataclass(frozen=True)
class Pane:
    """A scene beside its source; without a source the drawing alone.

    `marks` are those of boxes by id. `loads` are the shares of a pool's modules, which sum to one, by the id of the
    pool or of a route through it. `label` says which graph it is where there are several; `notes` are shown with it.
    """

    scene: Scene
    source: Source | None = None
    marks: Mapping[str, Mark] = field(default_factory=dict)
    loads: Mapping[str, Sequence[float]] = field(default_factory=dict)
    label: str = ""
    notes: Sequence[str] = ()

    def sources(self) -> list[Source]:
        """The texts beside the drawing: the pane's own, then what its nodes come from else."""
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
