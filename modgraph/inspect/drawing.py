"""Draws a scene as SVG, for Graphviz (groups are clusters) and for Mermaid (groups are subgraphs).

Graphviz and Mermaid cannot unfold: their pictures have each repetition once, routes without their routers' text, and
built-in blocks as one box.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from modgraph.inspect.page.content import Pane
from modgraph.inspect.page.document import FIRST_BOXES, render, text_of
from modgraph.inspect.quote import quote_dot, quote_mermaid
from modgraph.inspect.scene import Box, Edge, Scene
from modgraph.version import VERSION

Place = tuple[tuple[str, int], ...]  # the repeats that a box stands in, and in which child of each


def list_visible_edges(scene: Scene) -> tuple[Edge, ...]:
    """The edges between visible boxes, each once.

    An edge from one repetition into the next is left out.
    """
    places = {id: place for box in scene.boxes for id, place in _places(box, box, ())}
    routes = {box.id: box for box in scene.walk() if _is_closed(box)}
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
    """For a box and all in it: its id, the id of the box that is drawn for it, and its place."""
    if _is_closed(box):
        yield from ((inner.id, (model.id, place)) for inner in box.walk())
        return
    yield box.id, (model.id, place)
    for at, child in enumerate(box.children):
        if box.kind == "repeat":
            yield from _places(child, model.children[at % box.period], (*place, (box.id, at)))
        else:
            yield from _places(child, model.children[at], place)


def list_visible_children(box: Box) -> Iterator[Box]:
    """The children to draw: the first period of a repeat, none of a route or a built-in block.

    A repeat of one box is drawn as that box.
    """
    if box.kind == "repeat" and box.period == 1 and box.children[0].children:
        box = box.children[0]
    yield from (child for child in box.children if not child.same_as and not _is_closed(box))


def _is_closed(box: Box) -> bool:
    return box.kind == "route" or box.built_in


def title_of(box: Box) -> str:
    """A box in a line: its op or label, and its count."""
    does = box.built_in or box.kind in ("op", "tokenizer", "router")
    text = box.detail if does and box.detail else box.label
    return f"{text} × {box.count}" if box.count > 1 else text


DOT_SHAPES = {"input": "oval", "target": "oval", "output": "oval", "router": "hexagon", "loss": "octagon"}
DOT_STYLES = {"data": "solid", "length": "dotted", "uses": "dashed", "carry": "dashed"}
MERMAID_SHAPES = dict.fromkeys(("input", "target", "output"), ("([", "])"))
MERMAID_SHAPES |= {"router": ("{{", "}}"), "route": ("(", ")")}
FILLS = {"tokenizer": "#e2f4f1", "pool": "#fdf1dc", "router": "#f0e9fb", "route": "#f0e9fb", "loss": "#fdeaea"}

Say = Callable[[Box], str]  # the line of a box that nothing is drawn in, or those around others


def write_dot(scene: Scene) -> str:
    """The text of a `.dot` file."""

    def anchor(box: Box) -> str:
        """The node at which an edge to a box ends: the box, or its first leaf."""
        while children := [*list_visible_children(box)]:
            box = children[0]
        return box.id

    def leaf(box: Box) -> str:
        name = "" if box.kind == "op" and box.label in title_of(box) else box.label
        label = quote_dot("\n".join(dict.fromkeys(filter(None, [title_of(box), name, box.short]))))
        return f"{quote_dot(box.id)} [label={label}, shape={DOT_SHAPES.get(box.kind, 'box')}, class={box.kind}];"

    def group(box: Box) -> str:
        style = "dashed" if box.kind == "repeat" else "rounded"
        heading = f"label={quote_dot(title_of(box))}; class={box.kind}; style={style};"
        return f"subgraph {quote_dot('cluster_' + box.id)} {{\n  {heading}"

    def line_of(edge: Edge) -> str:
        facts = [f"style={DOT_STYLES[edge.kind]}"] + [f"label={quote_dot(edge.short)}"] * bool(edge.short)
        for end, key in ((edge.source, "ltail"), (edge.target, "lhead")):
            facts += [f"{key}={quote_dot('cluster_' + end)}"] * (anchors[end] != end)
        return f"{quote_dot(anchors[edge.source])} -> {quote_dot(anchors[edge.target])} [{', '.join(facts)}];"

    anchors = {box.id: anchor(box) for box in scene.walk()}
    lines = [f"// modgraph {VERSION}", f"digraph {quote_dot(scene.name)} {{"]
    lines += ["  compound=true; rankdir=TB; fontname=monospace;"]
    lines += ["  node [shape=box, fontname=monospace, fontsize=10];", "  edge [fontname=monospace, fontsize=8];"]
    lines += [f"  {line}" for box in scene.boxes for line in _nest(box, leaf, group, "}")]
    lines += [f"  {line_of(edge)}" for edge in list_visible_edges(scene)]
    return "\n".join([*lines, "}"]) + "\n"


def write_mermaid(scene: Scene) -> str:
    """The text of a `.mmd` file."""
    ids = {box.id: f"n{at}" for at, box in enumerate(scene.walk())}
    by_kind: dict[str, list[str]] = {}

    def title(box: Box) -> str:
        by_kind.setdefault(box.kind, []).append(ids[box.id])
        return quote_mermaid(title_of(box))

    def leaf(box: Box) -> str:
        begin, end = MERMAID_SHAPES.get(box.kind, ("[", "]"))
        return f"{ids[box.id]}{begin}{title(box)}{end}"

    def group(box: Box) -> str:
        return f"subgraph {ids[box.id]} [{title(box)}]"

    lines = [f"%% modgraph {VERSION}", "flowchart TB"]
    lines += [f"  {line}" for box in scene.boxes for line in _nest(box, leaf, group, "end")]
    for edge in list_visible_edges(scene):
        label = f"|{quote_mermaid(edge.short)}|" if edge.short else ""
        lines.append(f"  {ids[edge.source]} {'-->' if edge.kind == 'data' else '-.->'}{label} {ids[edge.target]}")
    for kind, fill in FILLS.items():
        if kind in by_kind:
            lines += [f"  classDef {kind} fill:{fill},color:#1c2430", f"  class {','.join(by_kind[kind])} {kind}"]
    return "\n".join(lines) + "\n"


def _nest(box: Box, leaf: Say, group: Say, end: str) -> Iterator[str]:
    children = [*list_visible_children(box)]
    if not children:
        yield leaf(box)
        return
    yield from group(box).split("\n")
    for child in children:
        yield from (f"  {line}" for line in _nest(child, leaf, group, end))
    yield end


MARGIN = 4


def write_svg(scene: Scene, boxes: int = FIRST_BOXES) -> str:
    """The text of an `.svg` file in which about so many boxes are unfolded."""
    picture = render(Pane(scene).as_json(), boxes)
    width, height = (round(picture["laid"][side] + 2 * MARGIN) for side in ("width", "height"))
    style = text_of("drawing.css")
    # few viewers know colours by their names
    colours: dict[str, str] = dict(re.findall(r"(--[\w-]+): ([^;]+);", style))
    rules = re.sub(r"var\((--[\w-]+)\)", lambda name: colours[name[1]], style[style.index("}") + 1 :])
    place = {"left": -MARGIN, "top": -MARGIN, "width": width, "height": height}
    return text_of("picture.svg").format(version=VERSION, style=rules, drawing=picture["svg"], **place)
