"""Which call of one graph is which of another: by the definitions that they are calls of.

Definitions are paired by their content, then by the author's name, then by the nodes that they have in common. Calls
are paired in bodies that are, by their names, then in order where their definitions are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from modgraph.inspect.diff.level import Level, calls_around
from modgraph.ir import OUTSIDE, Call, name_in_call

LIKE = 0.5  # of the nodes that two definitions have, as many are the same
MOST_PAIRS = 10_000  # of definitions whose nodes are counted

T = TypeVar("T")
Key = Callable[[int, T], object]  # of what stands on side 0, before, or 1, after; None for what has none
Lines = frozenset[tuple[str, int, tuple[object, ...]]]


class Pairs(Generic[T]):
    """What is before and after, and what of it is the same: `after` by what is before, `before` by what is after."""

    def __init__(self, before: Iterable[T], after: Iterable[T]) -> None:
        self._sides = [*before], [*after]
        self.after: dict[T, T] = {}
        self.before: dict[T, T] = {}

    def left(self) -> tuple[list[T], list[T]]:
        """What has no other yet."""
        before, after = self._sides
        return [each for each in before if each not in self.after], [each for each in after if each not in self.before]

    def add(self, old: T, new: T) -> None:
        """Pair two of which neither has another yet."""
        if old not in self.after and new not in self.before:
            self.after[old], self.before[new] = new, old

    def groups(self, key: Key[T]) -> list[tuple[list[T], list[T]]]:
        """What of the rest has one key before and after, for each key that both sides have."""
        found: dict[object, tuple[list[T], list[T]]] = {}
        for side, left in enumerate(self.left()):
            for each in left:
                if (value := key(side, each)) is not None:
                    found.setdefault(value, ([], []))[side].append(each)
        return [group for group in found.values() if all(group)]

    def unique(self, key: Key[T]) -> list[tuple[T, T]]:
        """Those of the rest whose key no other has."""
        return [(old[0], new[0]) for old, new in self.groups(key) if len(old) == 1 == len(new)]

    def add_in_order(self, key: Key[T]) -> None:
        """Pair what of the rest has one key, the first with the first."""
        for old, new in self.groups(key):
            for pair in zip(old, new, strict=False):
                self.add(*pair)


@dataclass(frozen=True)
class Definition:
    """What calls have in common whose bodies are equal: of each node its name in the definition, its content, and what
    it reads."""

    kind: str
    author: str
    lines: Lines

    @property
    def nodes(self) -> set[tuple[str, int]]:
        return {(name, content) for name, content, _ in self.lines}


class Definitions:
    """The definitions of one level, in the order of the graph; `names` are the nodes of calls by what their definitions
    call them, `inside` the calls in the body of a call."""

    def __init__(self, level: Level) -> None:
        self.names: dict[Call, dict[str, str]] = {}
        lines: dict[Call, list[tuple[str, int, tuple[object, ...]]]] = {}
        for node in level.graph:
            for call in calls_around(node):
                said, edges = name_in_call(call, node.name), level.sources[node.name]
                read = tuple((each.relation, each.slot, name_in_call(call, each.node), each.result) for each in edges)
                lines.setdefault(call, []).append((said, level.content[node.name], read))
                names = self.names.setdefault(call, {})
                if said != OUTSIDE:
                    names[said] = node.name
        self.of = {call: Definition(call.kind, call.definition, frozenset(each)) for call, each in lines.items()}
        self.inside: dict[Call | None, list[Call]] = {}
        for call in self.of:
            self.inside.setdefault(call.outer if call.outer in self.of else None, []).append(call)


def pair_calls(before: Definitions, after: Definitions) -> Iterator[tuple[Call, Call]]:
    """The calls of two graphs, each after the one around it."""
    definitions = _pair_definitions(before, after).after
    pending: list[tuple[Call | None, Call | None]] = [(None, None)]
    while pending:
        outer, other = pending.pop()
        pairs = Pairs(before.inside.get(outer, []), after.inside.get(other, []))
        pairs.add_in_order(lambda side, call: (call.kind, name_in_call(call.outer, call.path)))
        pairs.add_in_order(lambda side, call: after.of[call] if side else definitions.get(before.of[call]))
        yield from pairs.after.items()
        pending += pairs.after.items()


def _pair_definitions(before: Definitions, after: Definitions) -> Pairs[Definition]:
    """Equal definitions by each other, those of one name, then the most similar."""
    pairs = Pairs(dict.fromkeys(before.of.values()), dict.fromkeys(after.of.values()))
    pairs.add_in_order(lambda side, each: each)
    pairs.add_in_order(lambda side, each: (each.kind, each.lines))
    pairs.add_in_order(lambda side, each: (each.kind, each.author))
    left, others = pairs.left()
    if len(left) * len(others) <= MOST_PAIRS:
        likely = [(old, new) for old in left for new in others if old.kind == new.kind]
        scored = [(len(old.nodes & new.nodes) / len(old.nodes | new.nodes), old, new) for old, new in likely]
        for score, old, new in sorted(scored, key=lambda each: -each[0]):
            if score >= LIKE:
                pairs.add(old, new)
    return pairs
