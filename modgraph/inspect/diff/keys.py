"""Names with keys: those of rounds, and of the modules of pools, so that what is the same of many is said once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from modgraph.inspect.diff.level import Level
from modgraph.ir import Graph, PoolNode

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
            bases = ("", *(f"{path}." for each in call.chain() for path in (each.path, each.weights)))
            for each in call.chain():
                if each.kind == "round" and each.key is not None:
                    members = (f"{base}{member}.{each.key}" for base in bases for member in each.members)
                    for path in (each.path, each.weights, *members):
                        self._known[path] = each.path.rpartition(".")[0], each.key
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
        names = []
        for name in place.split("/"):
            path, said = "", list[str]()
            for part in name.split("."):
                path = f"{path}.{part}" if path else part
                said.append(part)
                if path in self._known:
                    loop, key = self._known[path]
                    said[-len(str(key).split(".")) :] = [say(loop, key)]
            names.append(".".join(said).replace(f".{BEFORE}", BEFORE))
        return "/".join(names)


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
