"""Calls by the definition that they are of: what draws or counts equal calls once asks here, and compares no names."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from modgraph.ir import Call, Graph, body_of
from modgraph.ir.program.drafts import CallLine, Draft, Lines
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
        found: list[Hashable] = []
        for line in body.lines:
            if isinstance(line, CallLine):
                found.append(self.keys[line.call])
            else:
                marks = tuple((name, repr(value)) for name, value in line.marks.items() if name != "label")
                found.append((marks, *map(self._marks, line.regions)))
        return tuple(found)


def ranges(numbers: Sequence[int]) -> str:
    """Rising numbers in few words: `0-7, 9, 11`, and `1, 3 … 11` for every second one."""
    runs: list[list[int]] = []
    for number in numbers:
        run = runs[-1] if runs else []
        if run and (len(run) == 1 or number - run[-1] == run[1] - run[0]):
            run.append(number)
        else:
            runs.append([number])
    texts = []
    for run in runs:
        if len(run) > 2 and run[1] == run[0] + 1:
            texts.append(f"{run[0]}-{run[-1]}")
        else:
            texts += [f"{run[0]}, {run[1]} … {run[-1]}"] if len(run) > 3 else map(str, run)
    return ", ".join(texts)
