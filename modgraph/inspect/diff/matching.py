"""Which node of one graph is which of another: by what the spec declares, by context, by name, then by likeness.

1. What a spec declares as moved.
2. Nodes whose contexts are the same, so that one graph is the other there but for names.
3. Equal names of one kind; the only routes by one router through one pool, and equal names below them.
4. Of what is left: what is made from the same, what the same is made of, what stands between the same.

Colours that several nodes of a graph have say nothing but in 2, where equal names settle it, then what is beside them.
Each step is one walk over nodes and edges.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping

from modgraph.inspect.diff.colours import Coloured, Colours, Palette
from modgraph.inspect.diff.level import Edge, Level
from modgraph.inspect.diff.values import Doubt
from modgraph.inspect.natural import natural

MOST_MOVES = 16  # declarations that follow each other
MOST_ROUNDS = 4
REACHES = (2, 1)  # edges
ROUTES = ("route", "decision")


def matched(before: Level, after: Level, palette: Palette, moves: Mapping[str, str]) -> Matching:
    """The nodes of two levels by each other's names."""
    found = Matching(Coloured(before, palette), Coloured(after, palette))
    found.declared(moves)
    found.in_same_context()
    found.of_equal_names()
    found.of_routes()
    found.alike()
    return found


class Matching:
    """Pairs of nodes while they are found."""

    def __init__(self, before: Coloured, after: Coloured) -> None:
        self.before = before
        self.after = after
        self.pairs: dict[str, str] = {}
        self.back: dict[str, str] = {}

    def pair(self, old: str, new: str) -> None:
        self.pairs[old], self.back[new] = new, old

    def may_pair(self, old: str, new: str) -> bool:
        """Whether both are there, are of one kind, and neither has another yet."""
        known, entries = self.before.level.entries, self.after.level.entries
        free = old in known and new in entries and old not in self.pairs and new not in self.back
        return free and known[old]["kind"] == entries[new]["kind"]

    def left(self) -> tuple[list[str], list[str]]:
        """The nodes that have no other yet."""
        old = [name for name in self.before.level.entries if name not in self.pairs]
        return old, [name for name in self.after.level.entries if name not in self.back]

    # ------------------------------------------------------------ the steps

    def declared(self, moves: Mapping[str, str]) -> None:
        if moves:
            self._pair_moved({name: [name] for name in self.before.level.entries}, moves, lambda name: [name])
            users = self.after.level.users_of_owners
            self._pair_moved(self.before.level.users_of_owners, moves, lambda owner: users.get(owner, []))

    def _pair_moved(
        self, named: Mapping[str, list[str]], moves: Mapping[str, str], after: Callable[[str], list[str]]
    ) -> None:
        """Pair what a name stands for with what one that it has become does, where that is one node each."""
        for name, old in named.items():
            found = (after(new) for new in moved_names(name, moves))
            for new in found:
                if len(old) == len(new) == 1 and self.may_pair(old[0], new[0]):
                    self.pair(old[0], new[0])

    def of_equal_names(self) -> None:
        for name in self.before.level.entries:
            if self.may_pair(name, name):
                self.pair(name, name)

    def of_routes(self) -> None:
        """The only routes by one router through one pool, and what is called alike below one of another name."""
        old, new = self._routes(self.before.level, self.pairs), self._routes(self.after.level, {})
        for used, names in old.items():
            if len(names) == len(new.get(used, ())) == 1 and self.may_pair(names[0], new[used][0]):
                self.pair(names[0], new[used][0])
        entries = self.before.level.entries
        moved = {name: new for name, new in self.pairs.items() if entries[name]["kind"] in ROUTES and name != new}
        for name in entries:
            head = next((name[:at] for at, sign in enumerate(name) if sign == "." and name[:at] in moved), None)
            if head is not None and self.may_pair(name, moved[head] + name[len(head) :]):
                self.pair(name, moved[head] + name[len(head) :])

    def _routes(self, level: Level, names: Mapping[str, str]) -> dict[tuple[str, str], list[str]]:
        """The routes by their pool and router, which have other names."""
        found: dict[tuple[str, str], list[str]] = {}
        for name, entry in level.entries.items():
            if entry["kind"] in ROUTES and (uses := entry.get("uses", {})).keys() == {"pool", "router"}:
                found.setdefault(tuple(names.get(uses[role], uses[role]) for role in ("pool", "router")), []).append(
                    name
                )
        return found

    def in_same_context(self) -> None:
        """What one context alone has is found at once; twins by what has been found beside them, then by equal names,
        then one by one."""
        before, after = self.before.context, self.after.context
        for one, other in _unique(before, after, *self.left()):
            self.pair(one, other)
        self._spread([*self.pairs], before, after)
        twins = []
        for old, new in _groups(before, after, *self.left()).values():
            for name in sorted({*old} & {*new}):
                self.pair(name, name)
            old, new = self._free(old, new)
            if len(old) == len(new) == 1:
                self.pair(old[0], new[0])
            elif old and len(old) == len(new):
                twins.append((sorted(old, key=natural), sorted(new, key=natural)))
        self._spread([*self.pairs], before, after)
        for old, new in sorted(twins, key=lambda group: natural(min(group[0][0], group[1][0]))):
            self._settle_twins(old, new, before, after)

    def _settle_twins(self, old: list[str], new: list[str], before: Colours, after: Colours) -> None:
        left = deque(new)
        for name in old:
            while left and left[0] in self.back:
                left.popleft()
            if name not in self.pairs and left:
                self.pair(name, left[0])
                self._spread([name], before, after)

    def alike(self) -> None:
        """Of what is left, what has a colour that nothing else has, first the most telling."""
        for _ in range(MOST_ROUNDS):
            known = len(self.pairs)
            self._unique(lambda side: side.up, lambda side, name: bool(side.level.sources[name]))
            self._unique(lambda side: side.down, lambda side, name: bool(side.level.users[name]))
            for reach in REACHES:
                self._between(reach)
            if len(self.pairs) == known:
                break

    def _between(self, reach: int) -> None:
        """What stands between nodes that are known, or between such as are alike."""
        old, new = self.left()
        if old and new:
            before, after = self._near(reach, old, new, self.before.content, self.after.content)
            beside = [name for name in old if self.before.level.sources[name] or self.before.level.users[name]]
            for one, other in _unique(before, after, beside, new):
                self.pair(one, other)

    def _near(self, reach: int, old: list[str], new: list[str], *own: Colours) -> tuple[Colours, Colours]:
        """Colours refined by what is around, where a node that is known is told by its name after."""
        number = self.before.palette.number
        known = {name: number(("known", other)) for name, other in self.pairs.items()}
        back = {name: number(("known", name)) for name in self.back}
        before = self.before.near(old, {**own[0], **known}, reach)
        return before, self.after.near(new, {**own[1], **back}, reach)

    def _unique(self, colours: Callable[[Coloured], Colours], tells: Callable[[Coloured, str], bool]) -> None:
        old, new = self.left()
        if old and new:
            old = [name for name in old if tells(self.before, name)]
            for one, other in _unique(colours(self.before), colours(self.after), old, new):
                self.pair(one, other)

    # ------------------------------------------------------------ spreading

    def _spread(self, start: list[str], before: Colours, after: Colours) -> None:
        """From pairs of equal colour to those beside them that no other could be."""
        pending = deque(name for name in start if before[name] == after[self.pairs[name]])
        while pending:
            old = pending.popleft()
            for one, other in [*self._beside(old, self.pairs[old], before, after)]:
                if self.may_pair(one, other):
                    self.pair(one, other)
                    pending.append(one)

    def _beside(self, old: str, new: str, before: Colours, after: Colours) -> Iterator[tuple[str, str]]:
        levels = (self.before.level, self.after.level)
        for edges, others in (
            (levels[0].sources[old], levels[1].sources[new]),
            (levels[0].users[old], levels[1].users[new]),
        ):
            mine = _by_key(edges, before, self.pairs)
            theirs = _by_key(others, after, self.back)
            yield from (
                (names[0], theirs[key][0]) for key, names in mine.items() if len(names) == 1 == len(theirs.get(key, ()))
            )

    # ------------------------------------------------------------ doubts

    def doubts(self, worth: Callable[[Level, str], bool]) -> list[Doubt]:
        """Pairs among what is left that may be meant, each the only one for both: of equal content, or of one kind
        between the same. `worth` says of a node that something hangs on it."""
        old, new = self.left()
        found = dict(_unique(self.before.content, self.after.content, old, new))
        old, new = [name for name in old if name not in found], [name for name in new if name not in found.values()]
        kinds = [self._kinds(side, names) for side, names in ((self.before, old), (self.after, new))]
        found |= dict(_unique(*self._near(max(REACHES), old, new, *kinds), old, new))
        entries = self.before.level.entries
        told = [name for name in found if worth(self.before.level, name)]
        return [Doubt(str(entries[name]["kind"]), name, found[name]) for name in sorted(told, key=natural)]

    def _kinds(self, side: Coloured, names: list[str]) -> Colours:
        kinds = {name: (side.level.entries[name]["kind"], side.level.entries[name].get("is")) for name in names}
        return {**side.content, **{name: side.palette.number(("kind", kind)) for name, kind in kinds.items()}}

    def _free(self, old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
        return [name for name in old if name not in self.pairs], [name for name in new if name not in self.back]


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


def _groups(before: Colours, after: Colours, old: list[str], new: list[str]) -> dict[int, tuple[list[str], list[str]]]:
    """The nodes of a colour, of those colours that both graphs have."""
    found: dict[int, tuple[list[str], list[str]]] = {}
    for name in old:
        found.setdefault(before[name], ([], []))[0].append(name)
    for name in new:
        if after[name] in found:
            found[after[name]][1].append(name)
    return {colour: group for colour, group in found.items() if group[1]}


def _unique(before: Colours, after: Colours, old: list[str], new: list[str]) -> list[tuple[str, str]]:
    """The pairs of nodes that have a colour which no other node here has."""
    groups = _groups(before, after, old, new).values()
    return [(some[0], others[0]) for some, others in groups if len(some) == 1 == len(others)]


def _by_key(
    edges: list[Edge], colours: Colours, known: Mapping[str, str]
) -> dict[tuple[str, str, int, int], list[str]]:
    """Nodes beside one that have no other yet, by how they stand beside it and their colour."""
    found: dict[tuple[str, str, int, int], list[str]] = {}
    for edge in edges:
        if edge.node not in known:
            found.setdefault((edge.relation, edge.slot, edge.index, colours[edge.node]), []).append(edge.node)
    return found
