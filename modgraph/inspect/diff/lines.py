"""What differs line by line: one line for all that is the same but for keys, and one for a call that is as another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from modgraph.inspect.diff.changes import Moved, Unmatched
from modgraph.inspect.diff.comparison import Comparison
from modgraph.inspect.diff.keys import Key, Keys, Say, fill
from modgraph.inspect.diff.level import Level, Palette, calls_around
from modgraph.inspect.diff.matching import Definitions
from modgraph.inspect.diff.words import details, shown_node
from modgraph.ir import Graph

ADDED, REMOVED, CHANGED, MOVED = "+", "−", "~", "→"


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
    """What a line says of one place: what stands behind it, and the details, given how names are said."""

    sign: str
    kind: str
    place: str
    what: Callable[[Say], str] | str = ""
    details: Callable[[Say], Iterable[str]] = lambda say: ()

    def line(self, place: str, say: Say) -> Line:
        what = self.what if isinstance(self.what, str) else self.what(say)
        return Line(self.sign, self.kind, place, what, tuple(self.details(say)))


@dataclass(frozen=True)
class Move:
    """Names that moved together: what they lay below, what they lie below now, and how many nodes do."""

    before: str
    after: str
    count: int


def lines_of(found: Comparison) -> list[Line]:
    """A line for each thing that differs but for moves."""
    diff, graphs = found.reported, (found.before.graph, found.after.graph)
    changed = [each for each in diff.changed if not each.follows]
    items = [Item(CHANGED, each.kind, each.after, details=partial(details, each.attributes)) for each in changed]
    lines = fold(items, found.keys)
    for sign, unmatched, graph, other in ((ADDED, diff.added, *graphs[::-1]), (REMOVED, diff.removed, *graphs)):
        calls, left = _whole_calls(sign, unmatched, graph, other)
        nodes = [Item(sign, each.kind, each.place, partial(shown_node, each)) for each in left]
        lines += fold([*calls, *nodes], found.keys)
    return lines


def fold(items: Iterable[Item], keys: Keys) -> list[Line]:
    """Lines of which one stands for all that is the same but for keys, where the first of these stands."""
    groups: dict[Line, list[tuple[Item, tuple[Key, ...]]]] = {}
    for item in items:
        pattern, own = keys.split(item.place)
        groups.setdefault(item.line(pattern, keys.seen_from(item.place)), []).append((item, own))
    lines = []
    for line, group in groups.items():
        first = group[0][0]
        filled = replace(line, place=fill(line.place, [own for _, own in group]), count=len(group))
        lines.append(filled if len(group) > 1 else first.line(first.place, str))
    return lines


def moves_of(moved: Iterable[Moved], keys: Keys) -> list[Move]:
    """Moves by what the names lie below: the longest end that the old and the new names have in common is left out;
    keys that move by one step are one move."""
    groups: dict[tuple[str, str, tuple[int, ...]], list[tuple[tuple[Key, ...], tuple[Key, ...]]]] = {}
    for each in moved:
        first, second = each.before.split("."), each.after.split(".")
        while len(first) > 1 < len(second) and first[-1] == second[-1] and first[:-1] != second[:-1]:
            first, second = first[:-1], second[:-1]
        (before, old), (after, new) = keys.split(".".join(first)), keys.split(".".join(second))
        numbers = [pair for pair in zip(old, new, strict=False) if isinstance(pair[0], int)]
        steps = tuple(int(key) - int(other) for other, key in numbers if isinstance(key, int))
        groups.setdefault((before, after, steps), []).append((old, new))
    return [
        Move(fill(before, [old for old, _ in group]), fill(after, [new for _, new in group]), len(group))
        for (before, after, _), group in groups.items()
    ]


def _whole_calls(
    sign: str, unmatched: Sequence[Unmatched], graph: Graph, other: Graph
) -> tuple[list[Item], list[Unmatched]]:
    """The calls of a graph whose nodes are all among those that it alone has, and whose definition the other graph has:
    a line for each, and the nodes that are in none."""
    places = {each.place for each in unmatched}
    if not places:
        return [], []
    palette: Palette = {}
    known: dict[object, str] = {}
    for level in Level(other, palette=palette).walk():
        for first, each in Definitions(level).of.items():
            known.setdefault((each.kind, each.lines), level.place + first.path)
    items, said = list[Item](), set[str]()
    for level in Level(graph, palette=palette).walk():
        if not any(level.place + node.name in places for node in level.graph):
            continue
        definitions = Definitions(level).of
        missing = {call for node in level.graph if level.place + node.name not in places for call in calls_around(node)}
        whole = definitions.keys() - missing
        outermost = (next(filter(whole.__contains__, reversed(calls_around(node))), None) for node in level.graph)
        for call, count in Counter(outermost).items():
            like = known.get((definitions[call].kind, definitions[call].lines)) if call else None
            if call and like and count > 1:
                items.append(Item(sign, call.kind, level.place + call.path, f"as {like} ({count} nodes)"))
                said |= {level.place + node.name for node in level.graph if call in calls_around(node)}
    return items, [each for each in unmatched if each.place not in said]
