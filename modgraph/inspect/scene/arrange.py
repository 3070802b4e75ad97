"""Arranges boxes for drawings: routes with their pools and routers, what serves losses or lengths alone, and depth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from modgraph.inspect.cost import Cost
from modgraph.inspect.scene.values import Box, Edge

SCOPES = ("block", "tokenizer", "repeat")  # groups whose boxes are computed where they stand


def gather_routes(boxes: Iterable[Box], edges: Sequence[Edge]) -> tuple[Box, ...]:
    """Put the router and the pool into each route that alone uses them, and the router's text into the router."""
    targets: dict[str, set[str]] = {}
    sources: dict[str, set[str]] = {}
    for edge in edges:
        if edge.kind == "uses":
            targets.setdefault(edge.source, set()).add(edge.target)
            sources.setdefault(edge.target, set()).add(edge.source)
    routes = {box.id for outer in boxes for box in outer.walk() if box.kind == "route"}

    def gather(level: tuple[Box, ...]) -> tuple[Box, ...]:
        level = tuple(replace(box, children=gather(box.children)) for box in level)
        found, taken = dict[str, Box](), set[str]()
        for route in (box for box in level if box.kind == "route"):
            inside = {box.id for box in route.walk()}
            own = [
                box
                for box in level
                if box.id in sources.get(route.id, set()) - taken and targets[box.id] & routes <= inside
            ]
            if sorted(box.kind for box in own) == ["pool", "router"]:
                found[route.id] = _fill_route(route, own)
                taken |= {box.id for box in own}
        return tuple(found.get(box.id, box) for box in level if box.id not in taken)

    return gather(tuple(boxes))


def _fill_route(route: Box, parts: Sequence[Box]) -> Box:
    pool, router = sorted(parts, key=lambda part: part.kind)
    router = replace(router, children=route.children, cost=router.cost + route.cost)
    return replace(route, children=(router, pool), cost=sum((part.cost for part in (router, pool)), Cost()))


def is_filled(box: Box) -> bool:
    """Whether a route has its router and its pool inside."""
    return box.kind == "route" and any(child.kind == "pool" for child in box.children)


def scatter_routes(boxes: Iterable[Box]) -> Iterator[Box]:
    """Undo `gather_routes`, for drawings in which a route is a box beside its router and its pool."""
    for box in boxes:
        if is_filled(box) and not box.folded:
            router, pool = box.children
            yield replace(router, children=())
            yield from scatter_routes([pool])
            yield replace(box, children=tuple(scatter_routes(router.children)))
        else:
            yield replace(box, children=tuple(scatter_routes(box.children)))


def mark_servants(boxes: Iterable[Box], edges: Sequence[Edge]) -> tuple[Box, ...]:
    """Mark boxes whose values lead to losses and to no output, and inputs that only give lengths."""
    boxes = tuple(boxes)
    kinds = {box.id: box.kind for outer in boxes for box in outer.walk()}
    backward: dict[str, list[str]] = {}
    given: dict[str, set[str]] = {}
    for edge in edges:
        given.setdefault(edge.source, set()).add(edge.kind)
        if edge.kind != "length":
            backward.setdefault(edge.target, []).append(edge.source)

    def reach(kind: str) -> set[str]:
        found, pending = set[str](), [id for id, each in kinds.items() if each == kind]
        while pending:
            if (id := pending.pop()) not in found:
                found.add(id)
                pending += backward.get(id, ())
        return found

    for_losses = reach("loss") - reach("output")

    def mark(box: Box) -> Box:
        if box.kind not in SCOPES or not box.children:
            lengths = box.kind == "input" and given.get(box.id) == {"length"}
            return replace(box, serves="losses" if box.id in for_losses else "lengths" if lengths else "")
        children = tuple(map(mark, box.children))
        served = {child.serves for child in children}
        return replace(box, children=children, serves=served.pop() if len(served) == 1 else "")

    return tuple(map(mark, boxes))


def fold_below(boxes: Iterable[Box], depth: int) -> tuple[Box, ...]:
    """Fold what is deeper than some levels. A repeat of one box is one level with it."""
    if depth <= 0:
        return tuple(replace(box, folded=bool(box.children)) for box in boxes)
    return tuple(replace(box, children=fold_below(box.children, depth - (not is_one_frame(box)))) for box in boxes)


def is_one_frame(box: Box) -> bool:
    """Whether a repeat is drawn as the one box that it repeats."""
    return box.kind == "repeat" and box.period == 1 and bool(box.children[0].children)
