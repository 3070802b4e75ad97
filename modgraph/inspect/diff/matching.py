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
from modgraph.inspect.diff.definitions import Definitions, Key, Pairs, pair_calls
from modgraph.inspect.diff.level import Level
from modgraph.ir import Node, OpNode

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
        self._match_contexts()
        self._match((name, name) for name in before.sources)
        if len(self.after) < len(before.sources):
            old, new = Definitions(before), Definitions(after)
            for call, other in pair_calls(old, new):
                names = new.names[other]
                self._match((name, names[said]) for said, name in old.names[call].items() if said in names)
        self._match_surroundings()

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
                for new in (others.get(each, []) for each in _moved_names(name, moves)):
                    if len(old) == len(new) == 1:
                        self._match([(old[0], new[0])])

    def _match_contexts(self) -> None:
        """Twins, which have one context, are matched by name where all are called as they were, else in order."""
        contexts = self.groups(lambda side, name: self.levels[side].context[name])
        same = [(old, new) for old, new in contexts if len(old) == len(new)]
        named = all({*old} == {*new} for old, new in same if len(old) > 1)
        for old, new in same:
            self._match(zip(*map(sorted, (old, new)), strict=True) if named else zip(old, new, strict=True))

    def _match_surroundings(self) -> None:
        """Of what is left, what alone has its content where it stands."""
        for _ in range(MOST_ROUNDS):
            known = len(self.after)
            for around in (BOTH, ("sources",), ("users",)):
                self._match(self.unique(self._between(self._content, around)))
            if len(self.after) == known:
                break

    def _content(self, side: int, name: str) -> object:
        return self.levels[side].content[name]

    def _between(self, kind: Key[str], around: tuple[str, ...]) -> Key[str]:
        """What is of a kind between nodes that are known: what it reads, what reads it, or both."""

        def known(side: int, name: str) -> str:
            return (name if name in self.before else "") if side else self.after.get(name, "")

        def key(side: int, name: str) -> object:
            edges = [(relation, edge) for relation in around for edge in getattr(self.levels[side], relation)[name]]
            found = sorted((at, edge.relation, edge.slot, known(side, edge.node), edge.result) for at, edge in edges)
            return (kind(side, name), *found) if any(each[3] for each in found) else None

        return key

    def doubts(self) -> list[Doubt]:
        """Pairs among what is left that may be meant, each the only one for both: of equal content, or of one kind
        between the same. Only what has weights or a name that others know is worth a doubt."""

        def kind(side: int, name: str) -> object:
            node = self.levels[side].graph[name]
            return node.kind, getattr(declaration_of(node), "name", None)

        found = dict(self.unique(self._content))
        likely = [pair for pair in self.unique(self._between(kind, BOTH)) if pair[0] not in found]
        found |= {name: other for name, other in likely if other not in found.values()}
        doubts = []
        for node in (self.levels[0].graph[name] for name in sorted(found, key=natural)):
            has_weights = bool(getattr(declaration_of(node), "weights", ()))
            if has_weights or node.kind in ("pool", "input", "target", "output"):
                doubts.append(Doubt(node.kind, node.name, found[node.name]))
        return doubts


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
