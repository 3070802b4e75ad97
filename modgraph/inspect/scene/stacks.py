"""Calls of one definition that follow each other, drawn once with their count."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from modgraph.inspect.scene.counts import total
from modgraph.inspect.scene.values import Box, Lines
from modgraph.ir import Call

LONGEST_PERIOD = 8


@dataclass(frozen=True)
class CallBox:
    """The box of a call, and the key of its definition."""

    box: Box
    call: Call
    definition: Hashable


def stacked(entries: Sequence[Box | CallBox], unique: Callable[[str], str]) -> tuple[Box, ...]:
    """The boxes of a body in order, equal calls that follow each other in repeats, whose ids are made unique."""
    return tuple(_stacked(entries, unique))


def _stacked(entries: Sequence[Box | CallBox], unique: Callable[[str], str]) -> Iterator[Box]:
    at = 0
    while at < len(entries):
        calls = _calls_from(entries, at)
        period, count = _run(calls)
        if count > 1:
            box = _repeat(calls[: period * count], period, _rounds_with(entries, calls[0].call))
            yield replace(box, id=unique(box.id))
        else:
            entry = entries[at]
            yield entry.box if isinstance(entry, CallBox) else entry
        at += period * count


def _calls_from(entries: Sequence[Box | CallBox], at: int) -> list[CallBox]:
    """The calls from a place on, before what is none."""
    found = []
    for entry in entries[at:]:
        if not isinstance(entry, CallBox):
            break
        found.append(entry)
    return found


def _run(calls: Sequence[CallBox]) -> tuple[int, int]:
    """How many of the first calls are repeated at once, and how often: the run that reaches farthest."""
    runs = [(period, _count(calls, period)) for period in range(1, LONGEST_PERIOD + 1)]
    return max(runs, key=lambda run: (run[0] * run[1] if run[1] > 1 else 1, -run[0]))


def _count(calls: Sequence[CallBox], period: int) -> int:
    at = period
    while at < len(calls) and calls[at].definition == calls[at - period].definition:
        at += 1
    return max(1, at // period)


def _rounds_with(entries: Sequence[Box | CallBox], call: Call) -> int:
    """How many rounds the loop of a round has in the body."""
    calls = [entry.call for entry in entries if isinstance(entry, CallBox)]
    return sum((each.kind, each.definition) == ("round", call.definition) for each in calls)


def _repeat(calls: Sequence[CallBox], period: int, rounds: int) -> Box:
    first, last = calls[0], calls[-1]
    boxes = [calls[at].box for at in range(period)]
    boxes += [replace(each.box, alike=boxes[at % period].id) for at, each in enumerate(calls[period:])]
    if first.call.kind != "round" or last.call.kind != "round":
        id, label = f"{first.box.id}-{last.box.id}", " → ".join(each.call.definition for each in calls[:period])
    elif len(calls) == rounds:
        id, label = first.box.id.removesuffix(f".{first.call.key}"), first.call.definition
    else:
        label = f"{first.call.definition}.{first.call.key}-{last.call.key}"
        id = first.box.id.removesuffix(f".{first.call.key}") + f".{first.call.key}-{last.call.key}"
    return replace(group_of(id, label, boxes, "repeat"), count=len(calls) // period, period=period)


def group_of(id: str, label: str, children: Sequence[Box], kind: str = "block", detail: str = "") -> Box:
    """A box of others: their costs summed, on the lines of all of them."""
    cost = total(child.cost for child in children)
    return Box(
        id=id, kind=kind, label=label, detail=detail, cost=cost, children=tuple(children), lines=_lines(children)
    )


def _lines(children: Sequence[Box]) -> Lines | None:
    """From the first line of some boxes to the last, where they stand in one source."""
    found = [child.lines for child in children if child.lines is not None]
    if not found or any(lines.source != found[0].source for lines in found):
        return None
    start, end = min(each.start for each in found), max(each.end for each in found)
    return Lines(found[0].source, start, end, min(each.first for each in found), max(each.last for each in found))
