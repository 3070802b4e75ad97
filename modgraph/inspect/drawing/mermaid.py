"""A scene in Mermaid's language: groups are subgraphs."""

from __future__ import annotations

from collections.abc import Iterator

from modgraph.inspect.drawing.outline import drawn_children, drawn_edges, title_of
from modgraph.inspect.quote import quote_mermaid
from modgraph.inspect.scene import Box, Edge, Scene
from modgraph.version import VERSION

SHAPES = {
    "input": ("([", "])"),
    "target": ("([", "])"),
    "output": ("([", "])"),
    "router": ("{{", "}}"),
    "route": ("(", ")"),
}
ARROWS = {"data": "-->", "length": "-.->", "uses": "-.->", "carry": "-.->"}
FILLS = {"tokenizer": "#e2f4f1", "pool": "#fdf1dc", "router": "#f0e9fb", "route": "#f0e9fb", "loss": "#fdeaea"}


def mermaid_of(scene: Scene) -> str:
    """The text of a `.mmd` file."""
    ids = {box.id: f"n{at}" for at, box in enumerate(scene.walk())}
    lines = [f"%% modgraph {VERSION}", "flowchart TB"]
    for box in scene.boxes:
        lines += [f"  {line}" for line in _box(box, ids)]
    lines += [f"  {_edge(edge, ids)}" for edge in drawn_edges(scene)]
    for kind, fill in FILLS.items():
        names = [ids[box.id] for box in _drawn(scene.boxes) if box.kind == kind]
        if names:
            lines += [f"  classDef {kind} fill:{fill},color:#1c2430", f"  class {','.join(names)} {kind}"]
    return "\n".join(lines) + "\n"


def _drawn(boxes: tuple[Box, ...]) -> Iterator[Box]:
    for box in boxes:
        yield box
        yield from _drawn(tuple(drawn_children(box)))


def _box(box: Box, ids: dict[str, str]) -> Iterator[str]:
    if not any(drawn_children(box)):
        begin, end = SHAPES.get(box.kind, ("[", "]"))
        yield f"{ids[box.id]}{begin}{quote_mermaid(title_of(box))}{end}"
        return
    yield f"subgraph {ids[box.id]} [{quote_mermaid(title_of(box))}]"
    for child in drawn_children(box):
        yield from (f"  {line}" for line in _box(child, ids))
    yield "end"


def _edge(edge: Edge, ids: dict[str, str]) -> str:
    label = f"|{quote_mermaid(edge.short)}|" if edge.short else ""
    return f"{ids[edge.source]} {ARROWS[edge.kind]}{label} {ids[edge.target]}"
