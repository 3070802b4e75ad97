"""Names with keys: those of rounds, and of the modules of pools, so that what is the same of many is told once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from modgraph.inspect.diff.level import Level
from modgraph.inspect.diff.values import Moved
from modgraph.ir import Call, Graph, PoolNode

STAR = "*"
BEFORE = "[-1]"  # for the key of the round before

Key = int | str
Say = Callable[[str], str]  # how a text says a name


class Keys:
    """The paths of a graph that end in a key, each with its loop, its pool or its definition: of a round, of a pool's
    module, and of a block or module that is used several times in one body, whose key is all of its path there."""

    def __init__(self, *graphs: Graph) -> None:
        self._known: dict[str, tuple[str, Key]] = {}
        levels = [level for graph in graphs for level in Level(graph).walk()]
        uses: dict[str, dict[str, str]] = {}
        for call in dict.fromkeys(node.within for level in levels for node in level.graph if node.within):
            for each in call.chain():
                if each.kind == "round" and each.key is not None:
                    self._known |= dict.fromkeys(_paths(each, call), (each.path.rpartition(".")[0], each.key))
                if each.kind in ("block", "module"):
                    outer = f"{each.outer.path}." if each.outer else ""
                    uses.setdefault(f"{outer}{each.definition}()", {})[each.path] = each.path.removeprefix(outer)
        for definition, paths in uses.items():
            if len(paths) > 1:
                self._known |= {path: (definition, key) for path, key in paths.items()}
        for pool in (pool for level in levels for pool in level.graph.of_kind(PoolNode)):
            self._known |= {f"{pool.name}.{at}": (pool.name, at) for at in range(pool.size)}

    def split(self, place: str) -> tuple[str, tuple[Key, ...]]:
        """A name or a place with numbered stars for its keys, one number for each loop, and the keys."""
        found: dict[str, Key] = {}

        def say(loop: str, key: Key) -> str:
            found.setdefault(loop, key)
            return f"{STAR}{[*found].index(loop)}"

        return self._map(place, say), tuple(found.values())

    def star(self, name: str) -> str:
        """A name with a star for each key."""
        return self._map(name, lambda loop, key: STAR)

    def seen_from(self, place: str) -> Say:
        """How names are said in the round that a place stands in: with a star for its own key."""
        own: dict[str, Key] = {}
        self._map(place, lambda loop, key: str(own.setdefault(loop, key)))

        def say(loop: str, key: Key) -> str:
            here = own.get(loop)
            is_before = isinstance(key, int) and isinstance(here, int) and key == here - 1
            return STAR if key == here else BEFORE if is_before else str(key)

        return lambda name: self._map(name, say)

    def _map(self, place: str, say: Callable[[str, Key], str]) -> str:
        return "/".join(self._map_name(name, say) for name in place.split("/"))

    def _map_name(self, name: str, say: Callable[[str, Key], str]) -> str:
        path, said = "", list[str]()
        for part in name.split("."):
            path = f"{path}.{part}" if path else part
            said.append(part)
            if path in self._known:
                loop, key = self._known[path]
                said[-len(str(key).split(".")) :] = [say(loop, key)]
        return ".".join(said).replace(f".{BEFORE}", BEFORE)


def _paths(round_: Call, inside: Call) -> Iterator[str]:
    """The paths that end in the key of a round, in a call inside of it: its own, and those of the loop's members."""
    yield from (round_.path, round_.weights)
    bases = ("", *(f"{path}." for call in inside.chain() for path in (call.path, call.weights)))
    yield from (f"{base}{member}.{round_.key}" for base in bases for member in round_.members)


def fill(pattern: str, keys: Iterable[tuple[Key, ...]]) -> str:
    """A pattern with its stars filled: `blocks.{0, 2}.gate` for two keys."""
    rows = [*dict.fromkeys(keys)]
    columns = [[*dict.fromkeys(column)] for column in zip(*rows, strict=True)]
    if math.prod(map(len, columns)) > len(rows):
        at = next(at for at, column in enumerate(columns) if len(column) > 1)
        return ", ".join(fill(pattern, [row for row in rows if row[at] == key]) for key in columns[at])
    for at, column in enumerate(columns):
        first, *more = pattern.split(f"{STAR}{at}")
        said = _spell(column)
        pattern = first + said + (said if len(column) == 1 else STAR).join(more)
    return pattern


def _spell(keys: Sequence[Key]) -> str:
    runs: list[list[Key]] = []
    for key in keys:
        last = runs[-1][-1] if runs else None
        if isinstance(key, int) and isinstance(last, int) and key == last + 1:
            runs[-1].append(key)
        else:
            runs.append([key])
    texts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return texts[0] if len(texts) == 1 and ", " not in texts[0] else f"{{{', '.join(texts)}}}"


@dataclass(frozen=True)
class Line:
    """A line of a diff: its sign, what the node is, where it stands, and details below it."""

    sign: str
    kind: str
    place: str
    what: str = ""  # behind the place
    details: tuple[str, ...] = ()
    count: int = 1


@dataclass(frozen=True)
class Item:
    """What a line tells of one place; `words` gives what stands behind it and the details, given how names are said."""

    sign: str
    kind: str
    place: str
    words: Callable[[Say], tuple[str, tuple[str, ...]]]


def fold(items: Iterable[Item], keys: Keys) -> list[Line]:
    """Lines of which one tells all that is the same but for keys, where the first of these stands."""
    groups: dict[Line, list[tuple[Item, tuple[Key, ...]]]] = {}
    for item in items:
        pattern, own = keys.split(item.place)
        line = Line(item.sign, item.kind, pattern, *item.words(keys.seen_from(item.place)))
        groups.setdefault(line, []).append((item, own))
    return [_line(pattern, group) for pattern, group in groups.items()]


def _line(pattern: Line, group: list[tuple[Item, tuple[Key, ...]]]) -> Line:
    first = group[0][0]
    if len(group) == 1:
        return Line(first.sign, first.kind, first.place, *first.words(str))
    return replace(pattern, place=fill(pattern.place, [own for _, own in group]), count=len(group))


@dataclass(frozen=True)
class Move:
    """Names that moved together: what they lay below, what they lie below now, and how many nodes do."""

    before: str
    after: str
    count: int


def moves_of(moved: Iterable[Moved], keys: Keys) -> list[Move]:
    """Moves by what the names lie below: the longest end that the old and the new names have in common is left out;
    keys that move by one step are told as one."""
    groups: dict[tuple[str, str, tuple[int, ...]], list[tuple[tuple[Key, ...], tuple[Key, ...]]]] = {}
    for each in moved:
        (before, old), (after, new) = (keys.split(head) for head in _heads(each.before, each.after))
        numbers = [pair for pair in zip(old, new, strict=False) if isinstance(pair[0], int)]
        steps = tuple(int(key) - int(other) for other, key in numbers if isinstance(key, int))
        groups.setdefault((before, after, steps), []).append((old, new))
    return [
        Move(fill(before, [old for old, _ in group]), fill(after, [new for _, new in group]), len(group))
        for (before, after, _), group in groups.items()
    ]


def _heads(before: str, after: str) -> tuple[str, str]:
    old, new = before.split("."), after.split(".")
    while len(old) > 1 < len(new) and old[-1] == new[-1] and old[:-1] != new[:-1]:
        old, new = old[:-1], new[:-1]
    return ".".join(old), ".".join(new)
