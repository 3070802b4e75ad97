"""Matches the nodes of two graphs.

1. By what a spec declares as moved.
2. By equal contexts: there, the graphs differ only in names.
3. By equal names of one kind.
4. By names inside two calls that match: of equal definitions, or of the most similar.
5. By neighbours: what reads the same, what the same nodes read, or both.

A colour that several nodes of a graph have counts only in step 2, where names or the order of nodes decide. Each step
is one walk over nodes and edges. Definitions are paired by content, then by the author's name, then by the number of
common nodes. Calls in paired bodies are paired by name, then in order if their definitions are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

from modgraph.inspect.cost import natural
from modgraph.inspect.diff.changes import Doubt, declaration_of
from modgraph.inspect.diff.level import Level
from modgraph.ir import OUTSIDE, Call, Node, OpNode, name_in_call

LIKE = 0.5  # the smallest share of common nodes of two paired definitions
MOST_PAIRS = 10_000  # definitions whose nodes are counted

T = TypeVar("T")
Key = Callable[[int, T], object]  # returns a fact of an item on side 0, before, or 1, after; None without one
Lines = frozenset[tuple[str, int, tuple[object, ...]]]


class Pairs(Generic[T]):
    """The items before and after, and their pairs: `after` by the item before, `before` by the item after."""

    def __init__(self, before: Iterable[T], after: Iterable[T]) -> None:
        self._sides = [*before], [*after]
        self.after: dict[T, T] = {}
        self.before: dict[T, T] = {}

    def rest(self) -> tuple[list[T], list[T]]:
        """The items without a partner."""
        before, after = self._sides
        return [each for each in before if each not in self.after], [each for each in after if each not in self.before]

    def add(self, old: T, new: T) -> None:
        """Pair two items if neither has a partner."""
        if old not in self.after and new not in self.before:
            self.after[old], self.before[new] = new, old

    def groups(self, key: Key[T]) -> list[tuple[list[T], list[T]]]:
        """The items without a partner by key, for each key that both sides have."""
        found: dict[object, tuple[list[T], list[T]]] = {}
        for side, left in enumerate(self.rest()):
            for each in left:
                if (value := key(side, each)) is not None:
                    found.setdefault(value, ([], []))[side].append(each)
        return [group for group in found.values() if all(group)]

    def unique(self, key: Key[T]) -> list[tuple[T, T]]:
        """The pairs of items without a partner whose key is unique on both sides."""
        return [(old[0], new[0]) for old, new in self.groups(key) if len(old) == 1 == len(new)]

    def add_in_order(self, key: Key[T]) -> None:
        """Pair the items that share a key in their order."""
        for old, new in self.groups(key):
            for pair in zip(old, new, strict=False):
                self.add(*pair)


class Definition(NamedTuple):
    """What calls with equal bodies share: of each node its name in the definition, its content, and what it reads."""

    kind: str
    author: str
    lines: Lines


class Definitions:
    """The definitions of one level in the order of the graph.

    `names` are the nodes of calls by their names in the definition, `inside` the calls in the body of a call.
    """

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
    """The paired calls of two graphs, outer calls first."""
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
    """The nodes of two levels by the names of their partners."""

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
        """Match those pairs that exist and are of one kind."""
        before, after = (level.graph for level in self.levels)
        for old, new in pairs:
            if old in before and new in after and type(before[old]) is type(after[new]):
                self.add(old, new)

    def _match_declared(self, moves: Mapping[str, str]) -> None:
        """Match what a declared move names before and after, if each is one node: nodes, then ops by their weights."""
        nodes = [{name: [name] for name in level.sources} for level in self.levels]
        owners: list[dict[str, list[str]]] = [{}, {}]
        for level, found in zip(self.levels, owners, strict=True):
            for node in level.graph.nodes_of(OpNode):
                found.setdefault(node.owner, []).append(node.name)
        for named, others in (nodes, owners):
            for name, old in named.items():
                for new in (others.get(each, []) for each in _follow_moves(name, moves)):
                    if len(old) == len(new) == 1:
                        self._match([(old[0], new[0])])

    def _content(self, side: int, name: str) -> object:
        return self.levels[side].content[name]

    def _neighbour_key(self, kind: Key[str], around: tuple[str, ...]) -> Key[str]:
        """A key of a kind and of the matched neighbours: what a node reads, what reads it, or both."""

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
        """Likely pairs without a match, each unique: of equal content, or of one kind between the same nodes.

        Only nodes with weights, or with names that users know, are worth a doubt.
        """

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
    """The names that a name became: the name or a prefix of it may have moved, several times."""
    for _ in range(MOST_MOVES):
        parts = name.split(".")
        heads = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
        head = next((head for head in heads if head in moves), None)
        if head is None:
            return
        name = moves[head] + name[len(head) :]
        yield name
