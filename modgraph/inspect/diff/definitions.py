"""Which call of one graph is which of another: by the definitions that they are calls of.

Definitions are paired by their content, then by the author's name, then by the nodes that they have in common. Calls
are paired in bodies that are, by their names, then in order where their definitions are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from modgraph.inspect.diff.level import Level, calls_around
from modgraph.ir import OUTSIDE, Call, name_in_call

LIKE = 0.5  # of the nodes that two definitions have, as many are the same
MOST_PAIRS = 10_000  # of definitions whose nodes are counted

T = TypeVar("T")


@dataclass(frozen=True)
class Definition:
    """What calls have in common whose bodies are equal: of each node its name in the definition, its content, and what
    it reads."""

    kind: str
    author: str
    lines: frozenset[tuple[str, int, tuple[object, ...]]]

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
    definitions = _pair_definitions([*dict.fromkeys(before.of.values())], [*dict.fromkeys(after.of.values())])
    pending: list[tuple[Call | None, Call | None]] = [(None, None)]
    while pending:
        outer, other = pending.pop()
        old, new = before.inside.get(outer, []), after.inside.get(other, [])
        pairs = _in_order(old, new, lambda call: (call.kind, name_in_call(call.outer, call.path)))
        old, new = [call for call in old if call not in pairs], [call for call in new if call not in pairs.values()]
        pairs |= _in_order(
            old, new, lambda call: definitions.get(before.of[call]) if call in before.of else after.of[call]
        )
        yield from pairs.items()
        pending += pairs.items()


def _pair_definitions(before: list[Definition], after: list[Definition]) -> dict[Definition, Definition]:
    """Equal definitions by each other, those of one name, then the most similar."""
    pairs: dict[Definition, Definition] = {}
    keys: list[Callable[[Definition], object]] = [
        lambda each: each,
        lambda each: (each.kind, each.lines),
        lambda each: (each.kind, each.author),
    ]
    for key in keys:
        taken = {*pairs.values()}
        left = [each for each in before if each not in pairs], [each for each in after if each not in taken]
        pairs |= _in_order(*left, key)
    before, after = (
        [each for each in before if each not in pairs],
        [each for each in after if each not in pairs.values()],
    )
    if len(before) * len(after) <= MOST_PAIRS:
        likely = [(old, new) for old in before for new in after if old.kind == new.kind]
        scored = [(len(old.nodes & new.nodes) / len(old.nodes | new.nodes), old, new) for old, new in likely]
        for score, old, new in sorted(scored, key=lambda each: -each[0]):
            if score >= LIKE and old not in pairs and new not in pairs.values():
                pairs[old] = new
    return pairs


def groups(before: Mapping[T, object], after: Mapping[T, object]) -> list[tuple[list[T], list[T]]]:
    """What has one key before and after, for each key that both sides have."""
    found: dict[object, tuple[list[T], list[T]]] = {}
    for each, key in before.items():
        found.setdefault(key, ([], []))[0].append(each)
    for each, key in after.items():
        if key in found:
            found[key][1].append(each)
    return [group for group in found.values() if group[1]]


def _in_order(before: list[T], after: list[T], key: Callable[[T], object]) -> dict[T, T]:
    """What has one key, the first with the first."""
    found = groups({each: key(each) for each in before}, {each: key(each) for each in after})
    pairs = {each: other for old, new in found for each, other in zip(old, new, strict=False)}
    return {each: pairs[each] for each in before if each in pairs}
