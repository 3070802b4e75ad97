"""Prints a comparison: a line for each difference, counts, costs, and what becomes of weights.

One line stands for everything that differs only in keys, and one for each whole call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from modgraph.inspect.cost import COUNTS
from modgraph.inspect.cost_text import align
from modgraph.inspect.diff.architecture_diff import Comparison, Fate, Weight
from modgraph.inspect.diff.changes import Changed, Moved, Unmatched
from modgraph.inspect.diff.level import Level, Palette
from modgraph.inspect.diff.matching import Definitions
from modgraph.inspect.diff.runs_text import blocks_of, summarize
from modgraph.inspect.diff.words import Key, Keys, Say, describe_node, details, fill, format_place, format_type
from modgraph.ir import Call, Graph

ADDED, REMOVED, CHANGED, MOVED = "+", "−", "~", "→"
COLOURS = {ADDED: "32", REMOVED: "31", CHANGED: "33", MOVED: "36"}
BOLD, DIM = "1", "2"
DOUBTFUL = "removed and added may be the same under another name; if so, say in the model that comes after:"
SAME = "the architectures are the same"
MOST_LISTED = 12  # reshaped weights, doubts, types that follow


@dataclass(frozen=True)
class Line:
    """A line of a diff: its sign, the kind of node, its place, and details below it."""

    sign: str
    kind: str
    place: str
    what: str = ""  # behind the place
    details: tuple[str, ...] = ()
    count: int = 1
    first: str = field(default="", compare=False)  # the first of its places, in full


Item = tuple[str, Callable[[str, Say], Line]]  # a place, and its line, given how the place and names are said


@dataclass(frozen=True)
class Move:
    """Names that moved together: their old prefix, their new prefix, and the number of nodes."""

    before: str
    after: str
    count: int


def lines_of(found: Comparison) -> list[Line]:
    """A line for each difference, moves left out."""
    diff, graphs = found.reported, (found.before.graph, found.after.graph)
    lines = fold((_change(each) for each in diff.changed if not each.follows), found.keys)
    for sign, unmatched, graph, other in ((ADDED, diff.added, *graphs[::-1]), (REMOVED, diff.removed, *graphs)):
        calls, left = _whole_calls(sign, unmatched, graph, other)
        lines += fold([*calls, *(_node(sign, each) for each in left)], found.keys)
    return lines


def _change(each: Changed) -> Item:
    return each.after, lambda at, say: Line(CHANGED, each.kind, at, details=tuple(details(each.attributes, say)))


def _node(sign: str, each: Unmatched) -> Item:
    return each.place, lambda at, say: Line(sign, each.kind, at, describe_node(each, say))


def _call(sign: str, call: Call, place: str, what: str) -> Item:
    return place, lambda at, say: Line(sign, call.kind, at, what)


def _weight(each: Weight) -> Item:
    return each.latest.name, lambda at, say: Line(CHANGED, "weight", at, ", ".join(each.list_reshaped_axes(say)))


def fold(items: Iterable[Item], keys: Keys) -> list[Line]:
    """Fold the lines that differ only in keys, at the place of the first."""
    groups: dict[Line, list[tuple[Item, tuple[Key, ...]]]] = {}
    for place, line in items:
        pattern, own = keys.split(place)
        groups.setdefault(line(pattern, keys.say_from(place)), []).append(((place, line), own))
    lines = []
    for folded, group in groups.items():
        (place, line), _ = group[0]
        filled = replace(folded, place=fill(folded.place, [own for _, own in group]), count=len(group))
        lines.append(replace(filled if len(group) > 1 else line(place, str), first=place))
    return lines


def find_moves_of(moved: Iterable[Moved], keys: Keys) -> list[Move]:
    """Moves by prefix: the common end of old and new names is left out. Keys that shift by one are one move."""
    return [move for move, _ in find_moved_groups(moved, keys)]


def find_moved_groups(moved: Iterable[Moved], keys: Keys) -> list[tuple[Move, Moved]]:
    """The moves by prefix, each with the first name that moved."""
    groups: dict[tuple[str, str, tuple[int, ...]], list[tuple[tuple[Key, ...], tuple[Key, ...]]]] = {}
    firsts: dict[tuple[str, str, tuple[int, ...]], Moved] = {}
    for each in moved:
        first, second = each.before.split("."), each.after.split(".")
        while len(first) > 1 < len(second) and first[-1] == second[-1] and first[:-1] != second[:-1]:
            first, second = first[:-1], second[:-1]
        (before, old), (after, new) = keys.split(".".join(first)), keys.split(".".join(second))
        numbers = [pair for pair in zip(old, new, strict=False) if isinstance(pair[0], int)]
        steps = tuple(int(key) - int(other) for other, key in numbers if isinstance(key, int))
        groups.setdefault((before, after, steps), []).append((old, new))
        firsts.setdefault((before, after, steps), each)
    return [
        (Move(fill(before, [old for old, _ in group]), fill(after, [new for _, new in group]), len(group)), first)
        for ((before, after, _), group), first in zip(groups.items(), firsts.values(), strict=True)
    ]


def _whole_calls(
    sign: str, unmatched: Sequence[Unmatched], graph: Graph, other: Graph
) -> tuple[list[Item], list[Unmatched]]:
    """Find the calls whose nodes and definition only one graph has: a line for each, and the other nodes."""
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
        missing = {call for node in level.graph if level.place + node.name not in places for call in node.calls}
        whole = definitions.keys() - missing
        outermost = (next(filter(whole.__contains__, reversed(node.calls)), None) for node in level.graph)
        for call, count in Counter(outermost).items():
            like = known.get((definitions[call].kind, definitions[call].lines)) if call else None
            if call and like and count > 1:
                items.append(_call(sign, call, level.place + call.path, f"as {like} ({count} nodes)"))
                said |= {level.place + node.name for node in level.graph if call in node.calls}
    return items, [each for each in unmatched if each.place not in said]


# ------------------------------------------------------------ the whole


def text_of(found: Comparison, coloured: bool = False) -> str:
    """Write the whole text, without a trailing newline."""

    def paint(text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if coloured else text

    names = [f"{side.path} ({side.kind})" for side in (found.before, found.after)]
    heading = [paint(f"{names[0]} → {names[1]}", BOLD), *(f"note: {note}" for note in found.notes)]
    heading += [*(paint(f"  {each}", DIM) for each in details(found.diff.model)), summary(found)]
    changes = []
    for line in lines_of(found):
        place = f"{line.sign} {line.kind} {format_place(line.place)}{_times(line.count)}"
        changes.append(paint(place, COLOURS[line.sign]) + paint(f"  {line.what}" if line.what else "", DIM))
        changes += [f"    {each}" for each in line.details]
    for move in find_moves_of(found.reported.moved, found.keys):
        many = f" ({_count(move.count, 'node')})" if move.count > 1 else ""
        changes.append(paint(f"{MOVED} {format_place(move.before)} → {format_place(move.after)}{many}", COLOURS[MOVED]))
    doubts = [*_truncate(f"  {each.declaration}" for each in found.reported.doubts)]
    if doubts:
        doubts.insert(0, DOUBTFUL)
    follow, star = [each.attributes[0] for each in found.reported.changed if each.follows], found.keys.star
    said = [[format_type(one, star) if one else "none" for one in (each.before, each.after)] for each in follow]
    types = Counter(map(" → ".join, said))
    following = [f"  {change}{_times(count)}" for change, count in types.most_common()]
    if following:
        title = paint(f"types that follow from these ({types.total():,}):", DIM)
        following = [title, *_truncate(following)]
    blocks = [heading, *_blocks_of_runs(found), changes, following, doubts, align(_costs(found)), [*_weights(found)]]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _blocks_of_runs(found: Comparison) -> Iterator[list[str]]:
    """Yield what differs between two runs beyond their architectures, parameters of the model left out: the heading
    lists them."""
    if found.runs is None:
        return
    parameters = [each.name.removeprefix("parameters.") for each in found.diff.model]
    for header, rows in blocks_of(found.runs, parameters):
        title, *lines = align([header, *rows])
        yield [title, *_truncate(lines)]


def _costs(found: Comparison) -> list[tuple[str, ...]]:
    """Return the rows of costs: counts where architectures differ, and the seconds of two runs."""
    runs, rows = found.runs, list[tuple[str, ...]]()
    for name in COUNTS if found.diff else ():
        old, new = (getattr(cost, name) for cost in found.costs)
        change = "=" if old == new else f"{new - old:+,}" + (f" ({(new - old) / old:+.1%})" if old else "")
        rows.append((name.replace("_", " "), f"{old:,}", f"{new:,}", change))
    if runs is not None and runs.seconds is not None:
        before, after = runs.seconds
        share = f" ({after / before - 1:+.1%})" if before else ""
        rows.append(("seconds of training", f"{before:,.1f}", f"{after:,.1f}", f"{after - before:+,.1f}{share}"))
    return [("", "before", "after", ""), *rows] if rows else []


def summary(found: Comparison) -> str:
    """Count the differences, in words."""
    diff = found.reported
    counts = {"added": diff.added, "removed": diff.removed, "changed": diff.changed, "moved": diff.moved}
    words = ", ".join(f"{len(each):,} {what}" for what, each in counts.items() if each)
    if found.runs is None:
        return words or SAME
    return f"{summarize(found.runs)}; {f'architectures: {words}' if words else SAME}"


def _truncate(lines: Iterable[str]) -> Iterator[str]:
    found = [*lines]
    yield from found[:MOST_LISTED]
    if len(found) > MOST_LISTED:
        yield f"  … and {len(found) - MOST_LISTED} more (--json has all)"


def _weights(found: Comparison) -> Iterator[str]:
    """Describe the fate of the weights, and whether their trained values are equal."""
    values, reshaped = found.values, [each for each in found.weights if each.fate is Fate.RESHAPED]
    if found.diff:
        fates = [f"{len(each):,} {fate} ({_count(count, 'value')})" for fate, each, count in found.fates() if each]
        yield f"trained weights: {', '.join(fates) or 'there are none'}"
        lines = fold(map(_weight, reshaped), found.keys)
        yield from _truncate(f"  {line.place}{_times(line.count)}: {line.what}" for line in lines)
    if values.trained == "unknown":
        yield from [f"values of weights: {values.reason}"] * bool(values.reason)
        return
    some = f" ({values.equal} equal, {len(values.different)} different)" if values.equal or values.different else ""
    which = f", {values.reason}" if values.reason else ""
    yield f"values of weights: {values.trained}{some}{which}"
    if reshaped:
        yield f"  of {len(reshaped):,} reshaped, {len(values.longer):,} have every old value at its old place"


def _times(count: int) -> str:
    return f" (× {count})" if count > 1 else ""


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
