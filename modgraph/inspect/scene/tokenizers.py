"""Which groups make tokens of what the user gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from modgraph.inspect.scene.values import Box, Edge

OF_TOKENIZERS = ("op", "tokenizer")


def tokenizers_told(boxes: Sequence[Box], edges: Iterable[Edge]) -> tuple[Box, ...]:
    """Groups become tokenizers that read inputs alone, and whose every op tokenizes or feeds one that does."""
    inputs = {box.id for outer in boxes for box in outer.walk() if box.kind == "input"}
    readers: dict[str, list[str]] = {}
    sources: dict[str, list[str]] = {}
    for edge in edges:
        if edge.kind == "data":
            readers.setdefault(edge.source, []).append(edge.target)
            sources.setdefault(edge.target, []).append(edge.source)
    return tuple(_told(box, inputs, readers, sources) for box in boxes)


def _told(box: Box, inputs: set[str], readers: dict[str, list[str]], sources: dict[str, list[str]]) -> Box:
    if box.kind != "block":
        return box
    if _tokenizes(box, inputs, readers, sources):
        return replace(box, kind="tokenizer")
    children = tuple(_told(child, inputs, readers, sources) for child in box.children)
    return replace(box, children=children)


def _tokenizes(box: Box, inputs: set[str], readers: dict[str, list[str]], sources: dict[str, list[str]]) -> bool:
    leaves = {each.id: each.kind for each in box.walk() if each.kind != "block"}
    if not all(kind in OF_TOKENIZERS for kind in leaves.values()) or "tokenizer" not in leaves.values():
        return False
    if any(source not in leaves and source not in inputs for name in leaves for source in sources.get(name, ())):
        return False
    return _all_feed(leaves, sources)


def _all_feed(leaves: dict[str, str], sources: dict[str, list[str]]) -> bool:
    """Whether every leaf tokenizes, or something that does depends on it."""
    reached = {name for name, kind in leaves.items() if kind == "tokenizer"}
    pending = list(reached)
    while pending:
        new = {source for source in sources.get(pending.pop(), ()) if source in leaves} - reached
        reached |= new
        pending += new
    return reached == set(leaves)
