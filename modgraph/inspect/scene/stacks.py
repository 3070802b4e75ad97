"""Folds calls of one definition that follow each other, and marks groups that make tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from modgraph.inspect.cost import Cost
from modgraph.inspect.scene.values import Box, Edge, Lines
from modgraph.ir import Call

LONGEST_PERIOD = 8


class Entry(NamedTuple):
    """The box of a node, or of a call with its definition."""

    box: Box
    call: Call | None = None
    definition: Hashable = None


def fold_repeats(entries: Sequence[Entry], unique: Callable[[str], str]) -> Iterator[Box]:
    """The boxes of a body in order; equal calls that follow each other become a repeat with an id of its own.

    At each place the period that covers most calls wins.
    """
    rounds = Counter(each.call.definition for each in entries if each.call is not None and each.call.kind == "round")
    at = 0
    while at < len(entries):
        runs = [(period, _count(entries, at, period)) for period in range(1, LONGEST_PERIOD + 1)]
        period, count = max(runs, key=lambda run: (run[0] * run[1] if run[1] > 1 else 1, -run[0]))
        box = entries[at].box
        if count > 1:
            box = _repeat(entries[at : at + period * count], period, rounds)
            box = replace(box, id=unique(box.id))
        yield box
        at += period * count


def _count(entries: Sequence[Entry], start: int, period: int) -> int:
    """Count how often the first `period` calls from `start` on repeat."""
    end = start + period
    while end < len(entries) and entries[end].call and entries[end].definition == entries[end - period].definition:
        end += 1
    return max(1, (end - start) // period)


def _repeat(entries: Sequence[Entry], period: int, rounds: Mapping[str, int]) -> Box:
    boxes = [each.box for each in entries[:period]]
    boxes += [replace(each.box, same_as=boxes[at % period].id) for at, each in enumerate(entries[period:])]
    calls = [each.call for each in entries if each.call is not None]
    (first, last), id = (calls[0], calls[-1]), boxes[0].id.removesuffix(f".{calls[0].key}")
    if first.kind != "round" or last.kind != "round":
        id, label = f"{boxes[0].id}-{boxes[-1].id}", " → ".join(call.definition for call in calls[:period])
    elif len(calls) == rounds[first.definition]:
        label = first.definition
    else:
        id, label = (f"{name}.{first.key}-{last.key}" for name in (id, first.definition))
    return replace(make_group(id, label, boxes, "repeat"), count=len(calls) // period, period=period)


def make_group(id: str, label: str, children: Sequence[Box], kind: str = "block", detail: str = "") -> Box:
    """Make a box of other boxes, with the sum of their costs, and with their lines if these have one source."""
    lines, found = None, [child.lines for child in children if child.lines is not None]
    if len({each.source for each in found}) == 1:
        start, end = min(each.start for each in found), max(each.end for each in found)
        first, last = min(each.first for each in found), max(each.last for each in found)
        lines = Lines(found[0].source, start, end, first, last)
    cost = sum((child.cost for child in children), Cost())
    return Box(id=id, kind=kind, label=label, detail=detail, cost=cost, children=tuple(children), lines=lines)


def mark_tokenizers(boxes: Iterable[Box], edges: Iterable[Edge]) -> tuple[Box, ...]:
    """Turn groups into tokenizers that read only inputs and whose ops all tokenize or feed an op that does."""
    boxes = [*boxes]
    inputs = {box.id for outer in boxes for box in outer.walk() if box.kind == "input"}
    sources: dict[str, list[str]] = {}
    for edge in edges:
        if edge.kind == "data":
            sources.setdefault(edge.target, []).append(edge.source)

    def is_tokenizer(box: Box) -> bool:
        leaves = {each.id: each.kind for each in box.walk() if each.kind != "block"}
        read = {source for name in leaves for source in sources.get(name, ())}
        last = {leaves[name] for name in leaves.keys() - read}
        return {*leaves.values()} <= {"op", "tokenizer"} and read <= leaves.keys() | inputs and last == {"tokenizer"}

    def mark(box: Box) -> Box:
        if box.kind != "block":
            return box
        if is_tokenizer(box):
            return replace(box, kind="tokenizer")
        return replace(box, children=tuple(map(mark, box.children)))

    return tuple(map(mark, boxes))
