"""A scene with each repetition drawn once, and routes without what decides them: what pictures without folding show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from modgraph.inspect.scene import Box, Edge, Scene

Place = tuple[tuple[str, int], ...]  # the repeats that a box stands in, and in which child of each


def drawn_edges(scene: Scene) -> tuple[Edge, ...]:
    """The edges between the boxes that are drawn, each once, without those that lead into a repetition that is not
    drawn from another of the same repeat."""
    places = {id: place for box in scene.boxes for id, place in _places(box, box, ())}
    routes = {box.id: box for box in scene.walk() if box.kind == "route"}
    inside = {inner.id for route in routes.values() for inner in route.walk()} - routes.keys()
    pairs = []
    for edge in scene.edges:
        (first, source), (second, target) = places[edge.source], places[edge.target]
        apart = any(here[0] == there[0] and here[1] != there[1] for here, there in zip(source, target, strict=False))
        if not apart or second == edge.target:
            pairs.append((edge, replace(edge, source=first, target=second)))
    own = {(new.source, new.target) for old, new in pairs if old.target == new.target}
    kept = (new for old, new in pairs if old.target not in inside or (new.source, new.target) not in own)
    return tuple(dict.fromkeys(edge for edge in kept if edge.source != edge.target))


def _places(box: Box, model: Box, place: Place) -> Iterator[tuple[str, tuple[str, Place]]]:
    """For a box and all in it the id of what is drawn for it, and its place."""
    if box.kind == "route":
        yield from ((inner.id, (model.id, place)) for inner in box.walk())
        return
    yield box.id, (model.id, place)
    for at, child in enumerate(box.children):
        if box.kind == "repeat":
            yield from _places(child, model.children[at % box.period], (*place, (box.id, at)))
        else:
            yield from _places(child, model.children[at], place)


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
