"""A comparison as text: a line for each thing that differs, counts, costs before and after, what becomes of weights."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain

from modgraph.inspect.cost import COUNTS
from modgraph.inspect.cost_text import aligned
from modgraph.inspect.diff.comparison import Comparison, Trained
from modgraph.inspect.diff.folds import Line, folded, moves_of, starred_keys
from modgraph.inspect.diff.values import Changed, Diff
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
    blocks = [
        _heading(found, paint),
        _changes(found.told, found.keys, paint),
        _following(found.told, found.keys, paint),
        _doubts(found.told, paint),
        _costs(found),
        _weights(found),
    ]
    return "\n\n".join("\n".join(block) for block in map(list, blocks) if block)


def _heading(found: Comparison, paint: Paint) -> Iterator[str]:
    names = [f"{side.path} ({side.kind})" for side in (found.before, found.after)]
    yield paint(f"{names[0]} → {names[1]}", BOLD)
    yield from (f"note: {note}" for note in found.notes)
    for each in _model_lines(found.diff):
        yield paint(each, DIM)
    yield summary(found.told)


def summary(diff: Diff) -> str:
    """How many things differ, in words."""
    if not diff:
        return "the architectures are the same"
    moves = sum(each.count for each in moves_of(diff.moved))
    counts = {"added": len(diff.added), "removed": len(diff.removed), "changed": len(diff.changed), "moved": moves}
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)


def _model_lines(diff: Diff) -> Iterator[str]:
    """What is no part of the architecture: the name and the parameters of the model."""
    changes = Changed("model", "", "", diff.model)
    yield from (f"  {each}" for each in details(changes))


# ------------------------------------------------------------ what differs


def lines_of(diff: Diff, keys: Collection[str] = ()) -> list[Line]:
    """A line for each thing that differs but for moves, equal ones folded; `keys` are those of families."""
    changed = [
        Line(CHANGED, each.kind, shown_place(each.after), tuple(details(each)))
        for each in diff.changed
        if not each.follows
    ]
    added = [Line(ADDED, each.kind, shown_place(each.place), what=shown_node(each.entry)) for each in diff.added]
    removed = [Line(REMOVED, each.kind, shown_place(each.place), what=shown_node(each.entry)) for each in diff.removed]
    return [*chain.from_iterable(folded(lines, keys) for lines in (changed, added, removed))]


def _changes(diff: Diff, keys: Collection[str], paint: Paint) -> Iterator[str]:
    for line in lines_of(diff, keys):
        yield from _told(line, paint)
    for move in moves_of(diff.moved):
        many = f" ({_counted(move.count, 'node')})" if move.count > 1 else ""
        yield paint(f"{MOVED} {shown_place(move.before)} → {shown_place(move.after)}{many}", COLOURS[MOVED])


def _told(line: Line, paint: Paint) -> Iterator[str]:
    what = f"  {line.what}" if line.what else ""
    yield paint(f"{line.sign} {line.kind} {line.place}{_times(line.count)}", COLOURS[line.sign]) + paint(what, DIM)
    yield from (f"    {each}" for each in line.details)


def _following(diff: Diff, keys: Collection[str], paint: Paint) -> Iterator[str]:
    """Types that are others since what flows in is, alike but for numbers of repeats and keys told once."""
    changes = Counter(starred_keys(_first_type(each), keys) for each in diff.changed if each.follows)
    if changes:
        yield paint(f"types that follow from these ({sum(changes.values()):,}):", DIM)
        yield from _listed(f"  {change}{_times(count)}" for change, count in changes.most_common())


def _first_type(change: Changed) -> str:
    first = change.attributes[0]
    types = [shown_type(type_) if type_ is not None else "none" for type_ in (first.before, first.after)]
    return re.sub(r"(?<=\w)\.\d+(?=\.)", ".*", " → ".join(types))


def _doubts(diff: Diff, paint: Paint) -> Iterator[str]:
    if diff.doubts:
        yield "removed and added may be the same under another name; if so, say in the model that comes after:"
        yield from _listed(f"  {each.declaration}" for each in diff.doubts)


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
        yield from _listed(map(_reshaped, folded(map(_line_of, fates[Fate.RESHAPED]), found.keys)))
    yield from _values(found)


def _fate(fate: Fate, weights: list[Weight]) -> str:
    return f"{len(weights):,} {fate} ({_counted(sum(each.count for each in weights), 'value')})"


def _line_of(weight: Weight) -> Line:
    return Line(CHANGED, "weight", weight.name, (", ".join(reshaped_axes(weight)),))


def _reshaped(line: Line) -> str:
    return f"  {line.place}{_times(line.count)}: {', '.join(line.details)}"


def _times(count: int) -> str:
    return f" (× {count})" if count > 1 else ""


def reshaped_axes(weight: Weight) -> Iterator[str]:
    """The axes that have another length: `expert 6→8`; one without a name by its place, from 0."""
    assert weight.before is not None and weight.after is not None
    for at, (old, new) in enumerate(zip(weight.before.axes, weight.after.axes, strict=True)):
        if old.size != new.size:
            yield f"{new.name or f'axis {at}'} {old.size}→{new.size}"


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
