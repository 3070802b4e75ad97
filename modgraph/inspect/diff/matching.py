"""Which node of one graph is which of another.

1. What a spec declares as moved.
2. Nodes whose contexts are the same, so that one graph is the other there but for names.
3. Equal names of one kind.
4. Nodes of one name in two calls that are one: of definitions that are the same, or most similar.
5. Of what is left: what is made from the same, what the same is made of, what stands between the same.

Colours that several nodes of a graph have say nothing but in 2, where names or the order of nodes settle it. Each step
is one walk over nodes and edges. Definitions are paired by their content, then by the author's name, then by the nodes
that they have in common; calls in bodies that are, by their names, then in order where their definitions are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

from modgraph.inspect.cost import natural
from modgraph.inspect.diff.changes import Doubt, declaration_of
from modgraph.inspect.diff.level import Level
from modgraph.ir import OUTSIDE, Call, Node, OpNode, name_in_call

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

    def rest(self) -> tuple[list[T], list[T]]:
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
        for side, left in enumerate(self.rest()):
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


class Definition(NamedTuple):
    """What calls have in common whose bodies are equal: of each node its name in the definition, its content, and what
    it reads."""

    kind: str
    author: str
    lines: Lines


class Definitions:
    """The definitions of one level, in the order of the graph; `names` are the nodes of calls by what their definitions
    call them, `inside` the calls in the body of a call."""

    def __init__(self, level: Level) -> None:
        self.names: dict[Call, dict[str, str]] = {}
        lines: dict[Call, list[tuple[str, int, tuple[object, ...]]]] = {}
        for node in level.graph:
            for call in node.calls:
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
    definitions = Pairs(dict.fromkeys(before.of.values()), dict.fromkeys(after.of.values()))
    definitions.add_in_order(lambda side, each: each)
    definitions.add_in_order(lambda side, each: (each.kind, each.lines))
    definitions.add_in_order(lambda side, each: (each.kind, each.author))
    left, others = definitions.rest()
    if len(left) * len(others) <= MOST_PAIRS:  # then the most similar
        likely = [(old, new) for old in left for new in others if old.kind == new.kind]
        nodes = {each: {line[:2] for line in each.lines} for each in (*left, *others)}
        scored = [(len(nodes[old] & nodes[new]) / len(nodes[old] | nodes[new]), old, new) for old, new in likely]
        for score, old, new in sorted(scored, key=lambda each: -each[0]):
            if score >= LIKE:
                definitions.add(old, new)
    pending: list[tuple[Call | None, Call | None]] = [(None, None)]
    while pending:
        outer, other = pending.pop()
        pairs = Pairs(before.inside.get(outer, []), after.inside.get(other, []))
        pairs.add_in_order(lambda side, call: (call.kind, name_in_call(call.outer, call.path)))
        pairs.add_in_order(lambda side, call: after.of[call] if side else definitions.after.get(before.of[call]))
        yield from pairs.after.items()
        pending += pairs.after.items()


MOST_MOVES = 16  # declarations that follow each other
MOST_ROUNDS = 4
BOTH = ("sources", "users")


class Matching(Pairs[str]):
    """The nodes of two levels by each other's names."""

    def __init__(self, before: Level, after: Level, moves: Mapping[str, str]) -> None:
        super().__init__(before.sources, after.sources)
        self.levels = before, after
        if moves:
            self._match_declared(moves)
        # twins, which have one context, are matched by name where all are called as they were, else in order
        contexts = self.groups(lambda side, name: self.levels[side].context[name])
        same = [(old, new) for old, new in contexts if len(old) == len(new)]
        named = all({*old} == {*new} for old, new in same if len(old) > 1)
        for old, new in same:
            self._match(zip(*map(sorted, (old, new)), strict=True) if named else zip(old, new, strict=True))
        self._match((name, name) for name in before.sources)
        if len(self.after) < len(before.sources):
            first, second = Definitions(before), Definitions(after)
            for call, other in pair_calls(first, second):
                names = second.names[other]
                self._match((name, names[said]) for said, name in first.names[call].items() if said in names)
        for _ in range(MOST_ROUNDS):  # of what is left, what alone has its content where it stands
            common_name = len(self.after)
            for around in (BOTH, ("sources",), ("users",)):
                self._match(self.unique(self._neighbour_key(self._content, around)))
            if len(self.after) == common_name:
                break

    def nodes(self) -> Iterator[tuple[Node, Node]]:
        before, after = self.levels
        yield from ((before.graph[old], after.graph[new]) for old, new in self.after.items())

    def _match(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Match those pairs that are there and are of one kind."""
        before, after = (level.graph for level in self.levels)
        for old, new in pairs:
            if old in before and new in after and type(before[old]) is type(after[new]):
                self.add(old, new)

    def _match_declared(self, moves: Mapping[str, str]) -> None:
        """What a name stands for with what one that it has become does, where that is one node each: nodes, then the
        ops that use weights."""
        nodes = [{name: [name] for name in level.sources} for level in self.levels]
        owners: list[dict[str, list[str]]] = [{}, {}]
        for level, found in zip(self.levels, owners, strict=True):
            for node in level.graph.of_kind(OpNode):
                found.setdefault(node.owner, []).append(node.name)
        for named, others in (nodes, owners):
            for name, old in named.items():
                for new in (others.get(each, []) for each in _follow_moves(name, moves)):
                    if len(old) == len(new) == 1:
                        self._match([(old[0], new[0])])

    def _content(self, side: int, name: str) -> object:
        return self.levels[side].content[name]

    def _neighbour_key(self, kind: Key[str], around: tuple[str, ...]) -> Key[str]:
        """What is of a kind between nodes that are known: what it reads, what reads it, or both."""

        def common_name(side: int, name: str) -> str:
            return (name if name in self.before else "") if side else self.after.get(name, "")

        def key(side: int, name: str) -> object:
            edges = [(relation, edge) for relation in around for edge in getattr(self.levels[side], relation)[name]]
            found = sorted(
                (at, edge.relation, edge.slot, common_name(side, edge.node), edge.result) for at, edge in edges
            )
            return (kind(side, name), *found) if any(each[3] for each in found) else None

        return key

    def doubts(self) -> list[Doubt]:
        """Pairs among what is left that may be meant, each the only one for both: of equal content, or of one kind
        between the same. Only what has weights or a name that others know is worth a doubt."""

        def kind(side: int, name: str) -> object:
            node = self.levels[side].graph[name]
            return node.kind, getattr(declaration_of(node), "name", None)

        found = dict(self.unique(self._content))
        likely = [pair for pair in self.unique(self._neighbour_key(kind, BOTH)) if pair[0] not in found]
        found |= {name: other for name, other in likely if other not in found.values()}
        doubts = []
        for node in (self.levels[0].graph[name] for name in sorted(found, key=natural)):
            has_weights = bool(getattr(declaration_of(node), "weights", ()))
            if has_weights or node.kind in ("pool", "input", "target", "output"):
                doubts.append(Doubt(node.kind, node.name, found[node.name]))
        return doubts


def _follow_moves(name: str, moves: Mapping[str, str]) -> Iterator[str]:
    """The names that a name has become: itself or what it lies below may have moved, and that again."""
    for _ in range(MOST_MOVES):
        parts = name.split(".")
        heads = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
        head = next((head for head in heads if head in moves), None)
        if head is None:
            return
        name = moves[head] + name[len(head) :]
        yield name
