"""A scene in graphviz' language: groups are clusters."""

from __future__ import annotations

from collections.abc import Iterator

from modgraph.inspect.drawing.outline import drawn_children, drawn_edges, title_of
from modgraph.inspect.quote import quote_dot
from modgraph.inspect.scene import Box, Edge, Scene
from modgraph.version import VERSION

SHAPES = {"input": "oval", "target": "oval", "output": "oval", "router": "hexagon", "loss": "octagon"}
STYLES = {"data": "solid", "length": "dotted", "uses": "dashed", "carry": "dashed"}


def dot_of(scene: Scene) -> str:
    """The text of a `.dot` file."""
    anchors = {box.id: _anchor(box) for box in scene.walk()}
    lines = [f"// modgraph {VERSION}", f"digraph {quote_dot(scene.name)} {{"]
    lines += [
        "  compound=true; rankdir=TB; fontname=monospace;",
        "  node [shape=box, fontname=monospace, fontsize=10];",
    ]
    lines += ["  edge [fontname=monospace, fontsize=8];"]
    for box in scene.boxes:
        lines += [f"  {line}" for line in _box(box)]
    lines += [f"  {_edge(edge, anchors)}" for edge in drawn_edges(scene)]
    return "\n".join([*lines, "}"]) + "\n"


def _box(box: Box) -> Iterator[str]:
    if not any(drawn_children(box)):
        shape = SHAPES.get(box.kind, "box")
        yield f"{quote_dot(box.id)} [label={quote_dot(_label(box))}, shape={shape}, class={box.kind}];"
        return
    yield f"subgraph {quote_dot('cluster_' + box.id)} {{"
    style = "dashed" if box.kind == "repeat" else "rounded"
    yield f"  label={quote_dot(title_of(box))}; class={box.kind}; style={style};"
    for child in drawn_children(box):
        yield from (f"  {line}" for line in _box(child))
    yield "}"


def _label(box: Box) -> str:
    name = "" if box.kind == "op" and box.label in title_of(box) else box.label
    return "\n".join(dict.fromkeys(filter(None, [title_of(box), name, box.short])))


def _anchor(box: Box) -> str:
    """The node that an edge to a box is drawn to: the box, or the first leaf in it."""
    while children := [*drawn_children(box)]:
        box = children[0]
    return box.id


def _edge(edge: Edge, anchors: dict[str, str]) -> str:
    facts = [f"style={STYLES[edge.kind]}"]
    if edge.short:
        facts.append(f"label={quote_dot(edge.short)}")
    for end, key in ((edge.source, "ltail"), (edge.target, "lhead")):
        if anchors[end] != end:
            facts.append(f"{key}={quote_dot('cluster_' + end)}")
    return f"{quote_dot(anchors[edge.source])} -> {quote_dot(anchors[edge.target])} [{', '.join(facts)}];"
