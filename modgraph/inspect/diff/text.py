"""A comparison as text: a line for each thing that differs, counts, costs before and after, what becomes of weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from modgraph.inspect.cost import COUNTS
from modgraph.inspect.cost_text import aligned
from modgraph.inspect.diff.comparison import Comparison, Trained
from modgraph.inspect.diff.keys import Item, Line, Move, Say, fold, moves_of
from modgraph.inspect.diff.told import whole_calls
from modgraph.inspect.diff.values import Alone, Changed
from modgraph.inspect.diff.weights import Fate, Weight
from modgraph.inspect.diff.words import details, shown_node, shown_place, shown_type

ADDED, REMOVED, CHANGED, MOVED = "+", "−", "~", "→"
COLOURS = {ADDED: "32", REMOVED: "31", CHANGED: "33", MOVED: "36"}
BOLD, DIM = "1", "2"
MOST_LISTED = 12  # reshaped weights, doubts, types that follow

Paint = Callable[[str, str], str]  # a text and a colour


def plain(text: str, colour: str) -> str:
    return text


def coloured(text: str, colour: str) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m"


def text_of(found: Comparison, paint: Paint = plain) -> str:
    """The whole, without a trailing newline."""
    blocks = [_heading(found, paint), _changes(found, paint), _following(found, paint), _doubts(found, paint)]
    blocks += [_costs(found), _weights(found)]
    return "\n\n".join("\n".join(block) for block in map(list, blocks) if block)


def _heading(found: Comparison, paint: Paint) -> Iterator[str]:
    names = [f"{side.path} ({side.kind})" for side in (found.before, found.after)]
    yield paint(f"{names[0]} → {names[1]}", BOLD)
    yield from (f"note: {note}" for note in found.notes)
    yield from (paint(f"  {each}", DIM) for each in details(found.diff.model))
    yield summary(found)


def summary(found: Comparison) -> str:
    """How many things differ, in words."""
    diff = found.told
    counts = {"added": len(diff.added), "removed": len(diff.removed), "changed": len(diff.changed)}
    told = [f"{count:,} {what}" for what, count in (counts | {"moved": len(diff.moved)}).items() if count]
    return ", ".join(told) or "the architectures are the same"


# ------------------------------------------------------------ what differs


def lines_of(found: Comparison) -> list[Line]:
    """A line for each thing that differs but for moves, one for all that is the same but for keys."""
    diff, graphs = found.told, (found.before.graph, found.after.graph)
    new_calls, added = whole_calls(ADDED, diff.added, *reversed(graphs))
    old_calls, removed = whole_calls(REMOVED, diff.removed, *graphs)
    groups = (
        [_changed(each) for each in diff.changed if not each.follows],
        [*new_calls, *(_alone(ADDED, each) for each in added)],
        [*old_calls, *(_alone(REMOVED, each) for each in removed)],
    )
    return [line for items in groups for line in fold(items, found.keys)]


def _changed(change: Changed) -> Item:
    return Item(CHANGED, change.kind, change.after, lambda say: ("", tuple(details(change.attributes, say))))


def _alone(sign: str, each: Alone) -> Item:
    return Item(sign, each.kind, each.place, lambda say: (shown_node(each, say), ()))


def moves_in(found: Comparison) -> list[Move]:
    """What has moved, by what it lies below."""
    return moves_of(found.told.moved, found.keys)


def _changes(found: Comparison, paint: Paint) -> Iterator[str]:
    for line in lines_of(found):
        what = f"  {line.what}" if line.what else ""
        place = f"{line.sign} {line.kind} {shown_place(line.place)}{_times(line.count)}"
        yield paint(place, COLOURS[line.sign]) + paint(what, DIM)
        yield from (f"    {each}" for each in line.details)
    for move in moves_in(found):
        many = f" ({_counted(move.count, 'node')})" if move.count > 1 else ""
        yield paint(f"{MOVED} {shown_place(move.before)} → {shown_place(move.after)}{many}", COLOURS[MOVED])


def _following(found: Comparison, paint: Paint) -> Iterator[str]:
    """Types that are others since what flows in is, told once where they are the same but for keys."""
    changes = Counter(_first_type(each, found.keys.star) for each in found.told.changed if each.follows)
    if changes:
        yield paint(f"types that follow from these ({sum(changes.values()):,}):", DIM)
        yield from _listed(f"  {change}{_times(count)}" for change, count in changes.most_common())


def _first_type(change: Changed, say: Say) -> str:
    first = change.attributes[0]
    return " → ".join(shown_type(each, say) if each is not None else "none" for each in (first.before, first.after))


def _doubts(found: Comparison, paint: Paint) -> Iterator[str]:
    if doubts := found.told.doubts:
        yield "removed and added may be the same under another name; if so, say in the model that comes after:"
        yield from _listed(f"  {each.declaration}" for each in doubts)


def _listed(lines: Iterable[str]) -> Iterator[str]:
    """The first of many lines."""
    found = [*lines]
    yield from found[:MOST_LISTED]
    if len(found) > MOST_LISTED:
        yield f"  … and {len(found) - MOST_LISTED} more (--json has all)"


# ------------------------------------------------------------ what it means


def _costs(found: Comparison) -> Iterator[str]:
    """A table of the counts, where any is another."""
    before, after = found.costs.before, found.costs.after
    rows = [("", "before", "after", "")]
    for name in COUNTS:
        old, new = getattr(before, name), getattr(after, name)
        rows.append((name.replace("_", " "), f"{old:,}", f"{new:,}", _difference(old, new)))
    if found.diff:
        yield from aligned(rows)


def _difference(old: int, new: int) -> str:
    if old == new:
        return "="
    share = f" ({(new - old) / old:+.1%})" if old else ""
    return f"{new - old:+,}{share}"


def _weights(found: Comparison) -> Iterator[str]:
    fates = found.fates()
    told = [_fate(fate, weights) for fate, weights in fates.items() if weights]
    if found.diff:
        yield f"trained weights: {', '.join(told) or 'there are none'}"
        lines = fold(map(_line_of, fates[Fate.RESHAPED]), found.keys)
        yield from _listed(f"  {line.place}{_times(line.count)}: {line.what}" for line in lines)
    yield from _values(found)


def _fate(fate: Fate, weights: list[Weight]) -> str:
    return f"{len(weights):,} {fate} ({_counted(sum(each.count for each in weights), 'value')})"


def _line_of(weight: Weight) -> Item:
    return Item(CHANGED, "weight", weight.name, lambda say: (", ".join(reshaped_axes(weight, say)), ()))


def _times(count: int) -> str:
    return f" (× {count})" if count > 1 else ""


def reshaped_axes(weight: Weight, say: Say = str) -> Iterator[str]:
    """The axes that have another length: `expert 6→8`; one without a name by its place, from 0."""
    assert weight.before is not None and weight.after is not None
    for at, (old, new) in enumerate(zip(weight.before.axes, weight.after.axes, strict=True)):
        if old.size != new.size:
            yield f"{say(new.name) or f'axis {at}'} {old.size}→{new.size}"


def _values(found: Comparison) -> Iterator[str]:
    """Whether what was learnt is the same."""
    values = found.values
    if values.trained is Trained.UNKNOWN:
        yield from [f"values of weights: {values.reason}"] * bool(values.reason)
        return
    counts = f" ({values.equal} equal, {len(values.different)} different)" if values.equal or values.different else ""
    yield f"values of weights: {values.trained}{counts}"
    if resized := len(found.fates()[Fate.RESHAPED]):
        yield f"  of {resized:,} reshaped, {len(values.longer):,} have every old value at its old place"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
