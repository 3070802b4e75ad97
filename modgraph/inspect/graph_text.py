"""Writes a scene for Graphviz (groups are clusters) and for Mermaid (groups are subgraphs).

Graphviz and Mermaid cannot unfold: their pictures have each repetition once, routes without their routers' text, and
built-in blocks as one box.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from modgraph.inspect.page.content import FITTING, DrawingOptions
from modgraph.inspect.page.document import read_colours
from modgraph.inspect.quote import quote_dot, quote_mermaid
from modgraph.inspect.scene import Box, Edge, Scene
from modgraph.inspect.scene.arrange import fold_below, is_one_frame, scatter_routes
from modgraph.version import VERSION

Place = tuple[tuple[str, int], ...]  # the repeats that a box stands in, and in which child of each


def select(scene: Scene, options: DrawingOptions) -> Scene:
    """The boxes and edges that a drawing with some options has, routes beside their routers and pools."""
    left_out = options.list_left_out()

    def keep(boxes: tuple[Box, ...]) -> Iterator[Box]:
        for box in boxes:
            if box.serves not in left_out:
                short = "" if "shapes" in left_out else box.short
                yield replace(box, short=short, children=tuple(keep(box.children)))

    boxes = scene.boxes if options.depth is None else fold_below(scene.boxes, options.depth)
    boxes = tuple(keep(tuple(scatter_routes(boxes))))
    known = {box.id for outer in boxes for box in outer.walk()}
    edges = [edge for edge in scene.edges if known >= {edge.source, edge.target}]
    edges = [edge for edge in edges if edge.kind != "length" or options.lengths]
    short = [replace(edge, short="", type="") for edge in edges] if "shapes" in left_out else edges
    return replace(scene, boxes=boxes, edges=tuple(short))


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
    if _is_closed(box):
        return
    if is_one_frame(box):
        box = box.children[0]
    yield from (child for child in box.children if not child.same_as and not _is_closed(box))


def _is_closed(box: Box) -> bool:
    return box.kind == "route" or box.built_in or box.folded


def title_of(box: Box) -> str:
    """A box in a line: its op or label, and its count."""
    does = box.built_in or box.kind in ("op", "tokenizer", "router")
    text = box.detail if does and box.detail else box.label
    return f"{text} × {box.count}" if box.count > 1 else text


DOT_SHAPES = {"input": "oval", "target": "oval", "output": "oval", "router": "hexagon", "loss": "octagon"}
DOT_STYLES = {"data": "solid", "length": "dotted", "uses": "dashed", "carry": "dashed"}
MERMAID_SHAPES = dict.fromkeys(("input", "target", "output"), ("([", "])"))
MERMAID_SHAPES |= {"router": ("{{", "}}"), "route": ("(", ")")}
# A kind has its colours in the read_colours of pages, under this name; on any ground, lines are grey.
COLOURS = {"target": "input", "route": "router", "op": "box", "growth": "box", "block": "group", "repeat": "group"}


def colours_of(kind: str) -> tuple[str, str]:
    """The fill and the line of a kind of box."""
    known, name = read_colours(), COLOURS.get(kind, kind)
    return known[name], known[f"{name}-line"]


Say = Callable[[Box], str]  # the line of a box that nothing is drawn in, or those around others


def write_dot(scene: Scene, options: DrawingOptions = FITTING) -> str:
    """The text of a `.dot` file."""
    scene, ink = select(scene, options), read_colours()["ink"]

    def anchor(box: Box) -> str:
        """The node at which an edge to a box ends: the box, or its first leaf."""
        while children := [*list_visible_children(box)]:
            box = children[0]
        return box.id

    def leaf(box: Box) -> str:
        name = "" if box.kind == "op" and box.label in title_of(box) else box.label
        label = quote_dot("\n".join(dict.fromkeys(filter(None, [title_of(box), name, box.short]))))
        fill, line = colours_of(box.kind)
        colours = f'shape={DOT_SHAPES.get(box.kind, "box")}, class={box.kind}, fillcolor="{fill}", color="{line}"'
        return f"{quote_dot(box.id)} [label={label}, {colours}];"

    def group(box: Box) -> str:
        fill, line = colours_of(box.kind)
        colours = f'style="filled,rounded"; fillcolor="{fill}"; color="{line}";'
        heading = f"label={quote_dot(title_of(box))}; class={box.kind}; {colours}"
        return f"subgraph {quote_dot('cluster_' + box.id)} {{\n  {heading}"

    def line_of(edge: Edge) -> str:
        facts = [f"style={DOT_STYLES[edge.kind]}"] + [f"label={quote_dot(edge.short)}"] * bool(edge.short)
        for end, key in ((edge.source, "ltail"), (edge.target, "lhead")):
            facts += [f"{key}={quote_dot('cluster_' + end)}"] * (anchors[end] != end)
        return f"{quote_dot(anchors[edge.source])} -> {quote_dot(anchors[edge.target])} [{', '.join(facts)}];"

    anchors = {box.id: anchor(box) for box in scene.walk()}
    lines = [f"// modgraph {VERSION}", f"digraph {quote_dot(scene.name)} {{"]
    grey, rank = read_colours()["line"], "LR" if options.direction == "right" else "TB"
    lines += [f'  compound=true; rankdir={rank}; bgcolor=transparent; fontname=monospace; fontcolor="{ink}";']
    lines += [f'  node [shape=box, style="filled,rounded", fontname=monospace, fontsize=10, fontcolor="{ink}"];']
    lines += [f'  edge [fontname=monospace, fontsize=8, color="{grey}", fontcolor="{grey}"];']
    lines += [f"  {line}" for box in scene.boxes for line in _nest(box, leaf, group, "}")]
    lines += [f"  {line_of(edge)}" for edge in list_visible_edges(scene)]
    return "\n".join([*lines, "}"]) + "\n"


def write_mermaid(scene: Scene, options: DrawingOptions = FITTING) -> str:
    """The text of a `.mmd` file."""
    scene, ink = select(scene, options), read_colours()["ink"]
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

    lines = [f"%% modgraph {VERSION}", f"flowchart {'LR' if options.direction == 'right' else 'TB'}"]
    lines += [f"  {line}" for box in scene.boxes for line in _nest(box, leaf, group, "end")]
    for edge in list_visible_edges(scene):
        label = f"|{quote_mermaid(edge.short)}|" if edge.short else ""
        lines.append(f"  {ids[edge.source]} {'-->' if edge.kind == 'data' else '-.->'}{label} {ids[edge.target]}")
    for kind, members in by_kind.items():
        fill, line = colours_of(kind)
        lines += [f"  classDef {kind} fill:{fill},stroke:{line},color:{ink}", f"  class {','.join(members)} {kind}"]
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
