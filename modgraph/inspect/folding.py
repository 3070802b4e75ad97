"""Costs as a tree of parts, equal repetitions told once: `blocks.0-7` for eight blocks that cost the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from modgraph.diagnostics import listed
from modgraph.inspect.cost import COUNTS, Cost

Key = tuple[tuple[int, ...], tuple[tuple[str, "Key"], ...]]


@dataclass(frozen=True)
class Part:
    """A named part of a model, or `count` equal ones as one: its cost is that of all of them together."""

    label: str
    cost: Cost
    parts: tuple[Part, ...] = ()
    count: int = 1

    @property
    def key(self) -> Key:
        """What equal repetitions have in common: what they cost and what is in them."""
        return tuple(self.cost.counts.values()), tuple((part.label, part.key) for part in self.parts)

    def times(self, count: int) -> Part:
        """What so many of this cost."""
        cost = Cost(*(count * getattr(self.cost, name) for name in COUNTS))
        return replace(self, cost=cost, parts=tuple(part.times(count) for part in self.parts))


def parts_of(nodes: Mapping[str, Cost], folded: bool = True, closed: frozenset[str] = frozenset()) -> tuple[Part, ...]:
    """The parts that cost anything, each with those below it, if it is not closed.

    `nodes` has every prefix of a name before the name.
    """
    below: dict[str, list[str]] = {}
    for name, cost in nodes.items():
        above = name.rpartition(".")[0]
        if (cost.parameters or cost.macs) and above not in closed:
            below.setdefault(above, []).append(name)
    return _below("", below, nodes, folded)


def _below(name: str, below: Mapping[str, list[str]], nodes: Mapping[str, Cost], folded: bool) -> tuple[Part, ...]:
    found = [
        Part(each.rpartition(".")[2], replace(nodes[each], nodes={}), _below(each, below, nodes, folded))
        for each in below.get(name, [])
    ]
    return tuple(map(_joined, _folded(found) if folded else found))


def _joined(part: Part) -> Part:
    """A part that only holds another, as one: `y` with `linear` alone in it is `y.linear`."""
    if len(part.parts) != 1 or part.parts[0].cost != part.cost or 1 not in (part.count, part.parts[0].count):
        return part
    (only,) = part.parts
    return replace(only, label=f"{part.label}.{only.label}", count=part.count * only.count)


def _folded(parts: Iterable[Part]) -> list[Part]:
    """Equal parts as one, where the first of them stands: numbered ones, and those with names that hold others, such as
    the members of a family."""
    alike: dict[object, list[Part]] = {}
    for part in parts:
        alone = not (part.label.isdigit() or part.parts)
        alike.setdefault(part.label if alone else (part.label.isdigit(), part.key), []).append(part)
    return [_fold(group) if len(group) > 1 else group[0] for group in alike.values()]


def _fold(parts: Sequence[Part]) -> Part:
    labels = [part.label for part in parts]
    label = ranges([*map(int, labels)]) if labels[0].isdigit() else f"{{{listed(labels)}}}"
    return replace(parts[0].times(len(parts)), label=label, count=len(parts))


def ranges(numbers: Sequence[int]) -> str:
    """Rising numbers in few words: `0-7, 9, 11`, and `1, 3 … 11` for every second one."""
    runs: list[list[int]] = []
    for number in numbers:
        run = runs[-1] if runs else []
        if run and (len(run) == 1 or number - run[-1] == run[1] - run[0]):
            run.append(number)
        else:
            runs.append([number])
    return ", ".join(map(_range, runs))


def _range(run: Sequence[int]) -> str:
    steps = {after - before for before, after in pairwise(run)}
    if len(run) > 2 and steps == {1}:
        return f"{run[0]}-{run[-1]}"
    return f"{run[0]}, {run[1]} … {run[-1]}" if len(run) > 3 else ", ".join(map(str, run))
