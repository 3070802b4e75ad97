"""A scene with each repetition drawn once, and routes without what decides them: what pictures without folding show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from modgraph.inspect.scene import Box, Edge, Scene


@dataclass(frozen=True)
class Outline:
    """The boxes that are drawn, and the edges between them, each once."""

    scene: Scene
    edges: tuple[Edge, ...]

    @classmethod
    def of(cls, scene: Scene) -> Outline:
        stands_for: dict[str, str] = {}
        repetition: dict[str, tuple[str, ...]] = {}  # where a box stands: repeats, and the repetition of each
        for box in scene.boxes:
            _stand_ins(box, box, (), stands_for, repetition)
        routes = [box for each in scene.boxes for box in each.walk() if box.kind == "route"]
        inside = {inner.id for route in routes for inner in route.walk()} - {route.id for route in routes}
        edges = [edge for edge in scene.edges if not _leads_on(edge, repetition, stands_for)]
        drawn = [
            Edge(stands_for[edge.source], stands_for[edge.target], edge.kind, edge.slot, edge.type, edge.short)
            for edge in edges
        ]
        own = {(new.source, new.target) for old, new in zip(edges, drawn, strict=True) if old.target == new.target}
        shown = [
            new
            for old, new in zip(edges, drawn, strict=True)
            if new.source != new.target and (old.target not in inside or (new.source, new.target) not in own)
        ]
        return cls(scene, tuple(dict.fromkeys(shown)))


def _stand_ins(
    box: Box,
    model: Box,
    place: tuple[str, ...],
    stands_for: dict[str, str],
    repetition: dict[str, tuple[str, ...]],
) -> None:
    stands_for[box.id], repetition[box.id] = model.id, place
    if box.kind == "route":
        for inner in box.walk():
            stands_for[inner.id], repetition[inner.id] = model.id, place
        return
    for at, (child, like) in enumerate(zip(box.children, model.children, strict=True)):
        if box.kind == "repeat":
            _stand_ins(child, model.children[at % box.period], (*place, child.id), stands_for, repetition)
        else:
            _stand_ins(child, like, place, stands_for, repetition)


def _leads_on(edge: Edge, repetition: dict[str, tuple[str, ...]], stands_for: dict[str, str]) -> bool:
    """Whether an edge leads into a repetition that is not drawn from another of the same repeat."""
    source, target = repetition[edge.source], repetition[edge.target]
    if stands_for[edge.target] == edge.target:
        return False
    return any(here != there and _same_repeat(here, there) for here, there in zip(source, target, strict=False))


def _same_repeat(one: str, other: str) -> bool:
    return one.rpartition(".")[0] == other.rpartition(".")[0]


def drawn_children(box: Box) -> Iterator[Box]:
    """The children that are drawn: of a repeat those of its first period, of a route none. A repeat of one box is drawn
    as that box."""
    if box.kind == "repeat" and box.period == 1 and box.children[0].children:
        box = box.children[0]
    yield from (child for child in box.children if not child.alike and box.kind != "route")


def title_of(box: Box) -> str:
    """A box in a line: what it does, and its count."""
    text = box.detail if box.kind in ("op", "tokenizer", "router") and box.detail else box.label
    return f"{text} × {box.count}" if box.count > 1 else text
