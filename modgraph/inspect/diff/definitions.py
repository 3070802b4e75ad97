"""Which call of one graph is which of another: by the definitions that they are calls of.

Definitions are paired by their content, then by the author's name, then by the nodes that they have in common. Calls
are paired in bodies that are, by their names, then in order where their definitions are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from modgraph.inspect.diff.colours import Coloured
from modgraph.ir import Call, name_in_call

LIKE = 0.5  # of the nodes that two definitions have, as many are the same
MOST_PAIRS = 10_000  # of definitions whose nodes are counted

T = TypeVar("T")
Line = tuple[str, int, tuple[object, ...]]  # a node's name in the definition, its content, and what it reads


@dataclass(eq=False)
class Definition:
    """The calls of one graph that have equal bodies."""

    kind: str
    author: str
    lines: frozenset[Line]
    calls: list[Call] = field(default_factory=list, repr=False)

    @property
    def nodes(self) -> set[tuple[str, int]]:
        return {(name, content) for name, content, _ in self.lines}


class Definitions:
    """The definitions of one level, in the order of the graph."""

    def __init__(self, colours: Coloured) -> None:
        self.of: dict[Call, Definition] = {}
        known: dict[object, Definition] = {}
        for call, lines in _bodies(colours).items():
            facts = call.kind, call.definition, frozenset(lines)
            self.of[call] = known.setdefault(facts, Definition(*facts))
            self.of[call].calls.append(call)
        self.all = [*known.values()]
        self.inside: dict[Call | None, list[Call]] = {}  # the calls in the body of a call
        for call in self.of:
            self.inside.setdefault(call.outer if call.outer in self.of else None, []).append(call)


def _bodies(colours: Coloured) -> dict[Call, list[Line]]:
    found: dict[Call, list[Line]] = {}
    for node in colours.level.graph:
        for call in node.within.chain() if node.within else ():
            edges = colours.level.sources[node.name]
            read = tuple((each.relation, each.slot, name_in_call(call, each.node), each.index) for each in edges)
            line = name_in_call(call, node.name), colours.content[node.name], read
            found.setdefault(call, []).append(line)
    return found


def pair_definitions(before: Definitions, after: Definitions) -> dict[Definition, Definition]:
    """The definitions of two graphs by each other: equal ones, those of one name, then the most similar."""
    pairs: dict[Definition, Definition] = {}

    def left() -> tuple[list[Definition], list[Definition]]:
        taken = {*pairs.values()}
        return [each for each in before.all if each not in pairs], [each for each in after.all if each not in taken]

    pairs |= _zip(*left(), lambda each: (each.kind, each.author, each.lines))
    pairs |= _zip(*left(), lambda each: (each.kind, each.lines))
    pairs |= _zip(*left(), lambda each: (each.kind, each.author))
    for old, new in _similar(*left()):
        if old not in pairs and new not in pairs.values():
            pairs[old] = new
    return pairs


def pair_calls(before: Definitions, after: Definitions) -> Iterator[tuple[Call, Call]]:
    """The calls of two graphs, each after the one around it."""
    definitions = pair_definitions(before, after)
    pending: list[tuple[Call | None, Call | None]] = [(None, None)]
    while pending:
        outer, other = pending.pop()
        old, new = before.inside.get(outer, []), after.inside.get(other, [])
        pairs = _zip(old, new, lambda call: (call.kind, name_in_call(call.outer, call.path)))
        old, new = [call for call in old if call not in pairs], [call for call in new if call not in pairs.values()]
        pairs |= _zip(old, new, lambda call: definitions.get(before.of[call]) if call in before.of else after.of[call])
        yield from pairs.items()
        pending += pairs.items()


def _zip(before: Iterable[T], after: Iterable[T], key: Callable[[T], object]) -> dict[T, T]:
    """What has one key, the first with the first."""
    others: dict[object, list[T]] = {}
    for each in after:
        others.setdefault(key(each), []).append(each)
    left = {found: iter(each) for found, each in others.items()}
    pairs = ((each, next(left.get(key(each), iter(())), None)) for each in before)
    return {each: other for each, other in pairs if other is not None}


def _similar(before: list[Definition], after: list[Definition]) -> list[tuple[Definition, Definition]]:
    """Definitions that have much in common, those first that have most."""
    if len(before) * len(after) > MOST_PAIRS:
        return []
    pairs = [(old, new) for old in before for new in after if old.kind == new.kind]
    scores = [len(old.nodes & new.nodes) / len(old.nodes | new.nodes) for old, new in pairs]
    likely = sorted(zip(scores, range(len(pairs)), strict=True), key=lambda each: (-each[0], each[1]))
    return [pairs[at] for score, at in likely if score >= LIKE]
