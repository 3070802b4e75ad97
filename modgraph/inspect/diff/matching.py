"""Which node of one graph is which of another.

1. What a spec declares as moved.
2. Nodes whose contexts are the same, so that one graph is the other there but for names.
3. Equal names of one kind.
4. Nodes of one name in two calls that are one: of definitions that are the same, or most similar.
5. Of what is left: what is made from the same, what the same is made of, what stands between the same.

Colours that several nodes of a graph have say nothing but in 2, where names or the order of nodes settle it. Each step
is one walk over nodes and edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from modgraph.inspect.cost import natural
from modgraph.inspect.diff.changes import Doubt, declaration_of
from modgraph.inspect.diff.definitions import Definitions, groups, pair_calls
from modgraph.inspect.diff.level import Level
from modgraph.ir import Node, OpNode

MOST_MOVES = 16  # declarations that follow each other
MOST_ROUNDS = 4
BOTH = ("sources", "users")

Pair = tuple[str, str]
Kinds = Mapping[str, object]


class Matching:
    """The nodes of two levels by each other's names."""

    def __init__(self, before: Level, after: Level, moves: Mapping[str, str]) -> None:
        self.before, self.after = before, after
        self.pairs: dict[str, str] = {}
        self.back: dict[str, str] = {}
        if moves:
            self._match_declared(moves)
        self._match_contexts()
        self._match((name, name) for name in before.sources)
        if len(self.pairs) < len(before.sources):
            old, new = Definitions(before), Definitions(after)
            for call, other in pair_calls(old, new):
                names = new.names[other]
                self._match((name, names[said]) for said, name in old.names[call].items() if said in names)
        self._match_surroundings()

    def nodes(self) -> Iterator[tuple[Node, Node]]:
        for old, new in self.pairs.items():
            yield self.before.graph[old], self.after.graph[new]

    def left(self) -> tuple[list[str], list[str]]:
        """The nodes that have no other yet."""
        old = [name for name in self.before.sources if name not in self.pairs]
        return old, [name for name in self.after.sources if name not in self.back]

    def _match(self, pairs: Iterable[Pair]) -> None:
        """Match those pairs that are there, are of one kind, and of which neither has another yet."""
        known, others = self.before.graph, self.after.graph
        for old, new in pairs:
            free = old in known and new in others and old not in self.pairs and new not in self.back
            if free and type(known[old]) is type(others[new]):
                self.pairs[old], self.back[new] = new, old

    def _match_declared(self, moves: Mapping[str, str]) -> None:
        """What a name stands for with what one that it has become does, where that is one node each: nodes, then the
        ops that use weights."""
        sides = self.before, self.after
        nodes = [{name: [name] for name in side.sources} for side in sides]
        for named, others in (nodes, [_by_owner(side) for side in sides]):
            for name, old in named.items():
                for new in (others.get(each, []) for each in _moved_names(name, moves)):
                    if len(old) == len(new) == 1:
                        self._match([(old[0], new[0])])

    def _match_contexts(self) -> None:
        """Twins, which have one context, are matched by name where all are called as they were, else in order."""
        old, new = self.left()
        contexts = groups(
            {name: self.before.context[name] for name in old}, {name: self.after.context[name] for name in new}
        )
        same = [(old, new) for old, new in contexts if len(old) == len(new)]
        named = all({*old} == {*new} for old, new in same if len(old) > 1)
        for old, new in same:
            self._match(zip(*map(sorted, (old, new)), strict=True) if named else zip(old, new, strict=True))

    def _match_surroundings(self) -> None:
        """Of what is left, what alone has its content where it stands."""
        for _ in range(MOST_ROUNDS):
            known = len(self.pairs)
            for around in (BOTH, ("sources",), ("users",)):
                self._match(self._between(self.before.content, self.after.content, *around))
            if len(self.pairs) == known:
                break

    def _between(self, before: Kinds, after: Kinds, *around: str) -> list[Pair]:
        """What alone is of its kind between nodes that are known: what it reads, what reads it, or both."""
        old, new = self.left()
        same = {name: name for name in self.back}
        sides = (self.before, before, old, self.pairs), (self.after, after, new, same)
        found = [
            {name: (kinds[name], key) for name in names if (key := _surroundings(level, name, known, around))}
            for level, kinds, names, known in sides
        ]
        return _unique(*found)

    def doubts(self) -> list[Doubt]:
        """Pairs among what is left that may be meant, each the only one for both: of equal content, or of one kind
        between the same. Only what has weights or a name that others know is worth a doubt."""
        levels = self.before, self.after
        left = zip(levels, self.left(), strict=True)
        found = dict(_unique(*({name: level.content[name] for name in names} for level, names in left)))
        old, new = ({node.name: (node.kind, _name(node)) for node in level.graph} for level in levels)
        likely = [pair for pair in self._between(old, new, *BOTH) if pair[0] not in found]
        found |= {name: other for name, other in likely if other not in found.values()}
        graph = self.before.graph
        worth = sorted((name for name in found if _is_worth_moving(graph[name])), key=natural)
        return [Doubt(graph[name].kind, name, found[name]) for name in worth]


def _surroundings(level: Level, name: str, known: Mapping[str, str], around: tuple[str, ...]) -> tuple[object, ...]:
    """The nodes that are known around one, by their names after; nothing where there are none."""
    edges = [(side, edge) for side in around for edge in getattr(level, side)[name]]
    found = sorted((side, edge.relation, edge.slot, known.get(edge.node, ""), edge.result) for side, edge in edges)
    return tuple(found) if any(each[3] for each in found) else ()


def _name(node: Node) -> object:
    return getattr(declaration_of(node), "name", None)


def _is_worth_moving(node: Node) -> bool:
    """Whether a node has weights, or a name that others know."""
    return bool(getattr(declaration_of(node), "weights", ())) or node.kind in ("pool", "input", "target", "output")


def _by_owner(level: Level) -> dict[str, list[str]]:
    """The ops that use weights, by the name of their owner."""
    found: dict[str, list[str]] = {}
    for node in level.graph.of_kind(OpNode):
        found.setdefault(node.owner, []).append(node.name)
    return found


def _moved_names(name: str, moves: Mapping[str, str]) -> Iterator[str]:
    """The names that a name has become: itself or what it lies below may have moved, and that again."""
    for _ in range(MOST_MOVES):
        parts = name.split(".")
        heads = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
        head = next((head for head in heads if head in moves), None)
        if head is None:
            return
        name = moves[head] + name[len(head) :]
        yield name


def _unique(before: Kinds, after: Kinds) -> list[Pair]:
    """The pairs of nodes whose key no other node has."""
    return [(old[0], new[0]) for old, new in groups(before, after) if len(old) == 1 == len(new)]
