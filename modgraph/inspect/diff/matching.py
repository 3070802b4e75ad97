"""Which node of one graph is which of another.

1. What a spec declares as moved.
2. Nodes whose contexts are the same, so that one graph is the other there but for names.
3. Equal names of one kind.
4. Nodes of one name in two calls that are one: of definitions that are the same, or most alike.
5. Of what is left: what is made from the same, what the same is made of, what stands between the same.

Colours that several nodes of a graph have say nothing but in 2, where names or the order of nodes settle it. Each step
is one walk over nodes and edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from modgraph.inspect.diff.colours import Coloured, Palette
from modgraph.inspect.diff.definitions import Definitions, pair_calls
from modgraph.inspect.diff.level import Level
from modgraph.inspect.diff.values import Doubt, declaration_of
from modgraph.inspect.natural import natural
from modgraph.ir import OUTSIDE, Call, Node, OpNode, name_in_call

MOST_MOVES = 16  # declarations that follow each other
MOST_ROUNDS = 4
BOTH = ("sources", "users")

Pair = tuple[str, str]


class Matching:
    """The nodes of two levels by each other's names."""

    def __init__(self, before: Level, after: Level, palette: Palette, moves: Mapping[str, str]) -> None:
        self.before = Coloured(before, palette)
        self.after = Coloured(after, palette)
        self.pairs: dict[str, str] = {}
        self.back: dict[str, str] = {}
        if moves:
            self._declared(moves)
        self._in_same_context()
        self._pair_all((name, name) for name in before.sources)
        if len(self.pairs) < len(before.sources):
            self._in_same_calls()
        self._in_same_surroundings()

    def left(self) -> tuple[list[str], list[str]]:
        """The nodes that have no other yet."""
        old = [name for name in self.before.level.sources if name not in self.pairs]
        return old, [name for name in self.after.level.sources if name not in self.back]

    def _pair(self, old: str, new: str) -> None:
        self.pairs[old], self.back[new] = new, old

    def _pair_all(self, pairs: Iterator[tuple[str, str]]) -> None:
        for old, new in pairs:
            if self._may_pair(old, new):
                self._pair(old, new)

    def _may_pair(self, old: str, new: str) -> bool:
        """Whether both are there, are of one kind, and neither has another yet."""
        known, others = self.before.level.graph, self.after.level.graph
        free = old in known and new in others and old not in self.pairs and new not in self.back
        return free and type(known[old]) is type(others[new])

    # ------------------------------------------------------------ by names

    def _declared(self, moves: Mapping[str, str]) -> None:
        """What a name stands for with what one that it has become does, where that is one node each: nodes, then the
        ops that use weights."""
        owners = _by_owner(self.before.level), _by_owner(self.after.level)
        nodes = [{name: [name] for name in side.level.sources} for side in (self.before, self.after)]
        for named, others in (nodes, owners):
            for name, old in named.items():
                for new in (others.get(each, []) for each in moved_names(name, moves)):
                    if len(old) == len(new) == 1:
                        self._pair_all(iter([(old[0], new[0])]))

    def _in_same_calls(self) -> None:
        before, after = Definitions(self.before), Definitions(self.after)
        names = _by_call(self.before.level), _by_call(self.after.level)
        for call, other in pair_calls(before, after):
            new = names[1].get(other, {})
            self._pair_all((name, new[said]) for said, name in names[0].get(call, {}).items() if said in new)

    # ------------------------------------------------------------ by colours

    def _in_same_context(self) -> None:
        """Twins, which have one context, are paired by name where all are called as they were, else in order."""
        groups = _groups(self.before.context, self.after.context, *self.left()).values()
        same = [(old, new) for old, new in groups if len(old) == len(new)]
        named = all({*old} == {*new} for old, new in same if len(old) > 1)
        for old, new in same:
            self._pair_all(zip(*map(sorted, (old, new)), strict=True) if named else zip(old, new, strict=True))

    def _in_same_surroundings(self) -> None:
        """Of what is left, what alone has its content where it stands."""
        for _ in range(MOST_ROUNDS):
            known = len(self.pairs)
            for around in (BOTH, ("sources",), ("users",)):
                self._pair_all(iter(self._between(self.before.content, self.after.content, *around)))
            if len(self.pairs) == known:
                break

    def _between(self, before: Mapping[str, object], after: Mapping[str, object], *around: str) -> list[Pair]:
        """What alone is of its kind between nodes that are known: what it reads, what reads it, or both."""
        old, new = self.left()
        same = {name: name for name in self.back}
        keys = [
            {name: key for name in names if (key := _surroundings(side.level, name, known, around))}
            for side, names, known in ((self.before, old, self.pairs), (self.after, new, same))
        ]
        kinds = ({name: (kind[name], key) for name, key in keys[at].items()} for at, kind in enumerate((before, after)))
        first, second = kinds
        return _unique(first, second, [*first], [*second])

    # ------------------------------------------------------------ doubts

    def doubts(self) -> list[Doubt]:
        """Pairs among what is left that may be meant, each the only one for both: of equal content, or of one kind
        between the same. Only what has weights or a name that others know is worth a doubt."""
        old, new = self.left()
        found = dict(_unique(self.before.content, self.after.content, old, new))
        before, after = ({node.name: _kind(node) for node in side.level.graph} for side in (self.before, self.after))
        likely = [pair for pair in self._between(before, after, *BOTH) if pair[0] not in found]
        found |= {name: other for name, other in likely if other not in found.values()}
        graph = self.before.level.graph
        worth = sorted((name for name in found if _is_worth_moving(graph[name])), key=natural)
        return [Doubt(graph[name].kind, name, found[name]) for name in worth]


def _surroundings(level: Level, name: str, known: Mapping[str, str], around: tuple[str, ...]) -> tuple[object, ...]:
    """The nodes that are known around one, by their names after; nothing where there are none."""
    edges = [(side, edge) for side in around for edge in getattr(level, side)[name]]
    found = sorted((side, edge.relation, edge.slot, known.get(edge.node, ""), edge.index) for side, edge in edges)
    return tuple(found) if any(each[3] for each in found) else ()


def _kind(node: Node) -> object:
    return node.kind, getattr(declaration_of(node), "name", None)


def _is_worth_moving(node: Node) -> bool:
    """Whether a node has weights, or a name that others know."""
    return bool(getattr(declaration_of(node), "weights", ())) or node.kind in ("pool", "input", "target", "output")


def _by_owner(level: Level) -> dict[str, list[str]]:
    """The ops that use weights, by the name of their owner."""
    found: dict[str, list[str]] = {}
    for node in level.graph.of_kind(OpNode):
        found.setdefault(node.owner, []).append(node.name)
    return found


def _by_call(level: Level) -> dict[Call, dict[str, str]]:
    """The nodes in calls, by what their definitions call them."""
    found: dict[Call, dict[str, str]] = {}
    for node in level.graph:
        for call in node.within.chain() if node.within else ():
            if (said := name_in_call(call, node.name)) != OUTSIDE:
                found.setdefault(call, {})[said] = node.name
    return found


def moved_names(name: str, moves: Mapping[str, str]) -> Iterator[str]:
    """What a name may have become: itself or what it lies below may have moved, and that again."""
    for _ in range(MOST_MOVES):
        parts = name.split(".")
        heads = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
        head = next((head for head in heads if head in moves), None)
        if head is None:
            return
        name = moves[head] + name[len(head) :]
        yield name


def _groups(
    before: Mapping[str, object], after: Mapping[str, object], old: list[str], new: list[str]
) -> dict[object, tuple[list[str], list[str]]]:
    """The nodes of a colour, of those colours that both graphs have."""
    found: dict[object, tuple[list[str], list[str]]] = {}
    for name in old:
        found.setdefault(before[name], ([], []))[0].append(name)
    for name in new:
        if after[name] in found:
            found[after[name]][1].append(name)
    return {colour: group for colour, group in found.items() if group[1]}


def _unique(before: Mapping[str, object], after: Mapping[str, object], old: list[str], new: list[str]) -> list[Pair]:
    """The pairs of nodes that have a colour which no other node here has."""
    groups = _groups(before, after, old, new).values()
    return [(some[0], others[0]) for some, others in groups if len(some) == 1 == len(others)]
