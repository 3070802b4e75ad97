"""Calls by the definition that they are of: what draws or counts equal calls once asks here, and compares no names."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from modgraph.ir import Call, Graph, body_of
from modgraph.ir.program.drafts import CallLine, Draft, Line, Lines
from modgraph.ir.program.outline import Drafts, Outline
from modgraph.ir.program.relative import Level

Definitions = Mapping[Call, Hashable]


def definitions_of(graph: Graph) -> Definitions:
    """A key for each call of a graph, in regions too: the same for calls of one definition whose nodes are frozen,
    start and have grown alike."""
    drafts = _Keys(graph)
    Outline(graph, None, Level(), drafts).body(body_of(graph))
    return drafts.keys


@dataclass
class _Keys(Drafts):
    keys: dict[Call, Hashable] = field(default_factory=dict)

    def intern(self, draft: Draft) -> Draft:
        known = super().intern(draft)
        self.keys[draft.call] = id(known), self._marks(draft.body)
        return known

    def _marks(self, body: Lines) -> tuple[Hashable, ...]:
        """What differs between calls of one definition, in the calls in them too."""
        return tuple(self._mark(line) for line in body.lines)

    def _mark(self, line: Line | CallLine) -> Hashable:
        if isinstance(line, CallLine):
            return self.keys[line.call]
        marks = tuple((name, repr(value)) for name, value in line.marks.items() if name != "label")
        return marks, *map(self._marks, line.regions)


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
