"""Hierarchical names make nested boxes: `blocks.1.mlp.fc1` stands in `mlp` in `1` in `blocks`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from modgraph.inspect.cost import Cost
from modgraph.inspect.scene.counts import total
from modgraph.inspect.scene.values import Box, Lines


@dataclass(frozen=True)
class Leaf:
    """A box, and the hierarchical name that says which groups it stands in."""

    box: Box
    name: str


@dataclass
class _Group:
    """A group while it is filled: by the next part of a name, a box or a group below it."""

    below: dict[str, Box | _Group] = field(default_factory=dict)


def nested(leaves: Sequence[Leaf], prefix: str = "") -> tuple[Box, ...]:
    """Boxes in groups by the parts of their names, ids with a prefix.

    A name that is a box's makes no group: what is called below it stands beside it. A group of one is none.
    """
    leaves = list(_holding(leaves, prefix))
    names = {leaf.name for leaf in leaves}
    top = _Group()
    for leaf in leaves:
        parts = leaf.name.split(".")
        depth = _depth(parts, names)
        group = top
        for part in parts[:depth]:
            inner = group.below.setdefault(part, _Group())
            assert isinstance(inner, _Group), leaf.name
            group = inner
        label = ".".join(parts[depth:])
        group.below[label] = replace(leaf.box, label=label)
    return _boxes(top, prefix)


def _holding(leaves: Sequence[Leaf], prefix: str) -> Iterator[Leaf]:
    """The leaves, what is called below a route put into its box: the body of the router that decides it."""
    routes = [leaf.name for leaf in leaves if leaf.box.kind == "route"]
    inside: dict[str, list[Leaf]] = {}
    for leaf in leaves:
        outermost = next((name for name in routes if leaf.name.startswith(f"{name}.")), None)
        if outermost is not None:
            inside.setdefault(outermost, []).append(replace(leaf, name=leaf.name.removeprefix(f"{outermost}.")))
    held = {f"{route}.{leaf.name}" for route, below in inside.items() for leaf in below}
    for leaf in leaves:
        if leaf.name in inside and leaf.name not in held:
            children = nested(inside[leaf.name], f"{prefix}{leaf.name}.")
            cost = leaf.box.cost + total(child.cost for child in children)
            leaf = replace(leaf, box=replace(leaf.box, children=children, cost=cost))
        if leaf.name not in held:
            yield leaf


def _depth(parts: list[str], names: set[str]) -> int:
    """How many parts of a name are groups: those before the last, up to one that is itself a box."""
    for depth in range(1, len(parts)):
        if ".".join(parts[:depth]) in names:
            return depth - 1
    return len(parts) - 1


def _boxes(group: _Group, prefix: str) -> tuple[Box, ...]:
    entries = group.below.items()
    if all(part.isdecimal() for part in group.below):
        entries = sorted(entries, key=lambda entry: int(entry[0]))  # type: ignore[assignment]
    return tuple(_box(part, inner, prefix) for part, inner in entries)


def _box(part: str, inner: Box | _Group, prefix: str) -> Box:
    if isinstance(inner, Box):
        return inner
    children = _boxes(inner, f"{prefix}{part}.")
    if len(children) == 1:
        return replace(children[0], label=f"{part}.{children[0].label}")
    return group_of(f"{prefix}{part}", part, children)


def group_of(id: str, label: str, children: tuple[Box, ...], kind: str = "block") -> Box:
    """A box of others: their costs summed, on the lines of all of them."""
    cost = total(child.cost for child in children) if children else Cost()
    return Box(id=id, kind=kind, label=label, cost=cost, children=children, lines=_lines(children))


def _lines(children: Sequence[Box]) -> Lines | None:
    """From the first line of some boxes to the last, where they stand in one source."""
    found = [child.lines for child in children if child.lines is not None]
    if not found or any(lines.source != found[0].source for lines in found):
        return None
    start, end = min(each.start for each in found), max(each.end for each in found)
    return Lines(found[0].source, start, end, min(each.first for each in found), max(each.last for each in found))
