"""A comparison as text: a line for each thing that differs, counts, costs before and after, what becomes of weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from modgraph.inspect.cost import COUNTS
from modgraph.inspect.cost_text import aligned
from modgraph.inspect.diff.comparison import Comparison, Fate, Weight
from modgraph.inspect.diff.lines import ADDED, CHANGED, MOVED, REMOVED, Item, fold, lines_of, moves_of
from modgraph.inspect.diff.words import details, shown_place, shown_type

COLOURS = {ADDED: "32", REMOVED: "31", CHANGED: "33", MOVED: "36"}
BOLD, DIM = "1", "2"
DOUBTFUL = "removed and added may be the same under another name; if so, say in the model that comes after:"
MOST_LISTED = 12  # reshaped weights, doubts, types that follow


def text_of(found: Comparison, coloured: bool = False) -> str:
    """The whole, without a trailing newline."""

    def paint(text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if coloured else text

    names = [f"{side.path} ({side.kind})" for side in (found.before, found.after)]
    heading = [paint(f"{names[0]} → {names[1]}", BOLD), *(f"note: {note}" for note in found.notes)]
    heading += [*(paint(f"  {each}", DIM) for each in details(found.diff.model)), summary(found)]
    changes = []
    for line in lines_of(found):
        place = f"{line.sign} {line.kind} {shown_place(line.place)}{_times(line.count)}"
        changes.append(paint(place, COLOURS[line.sign]) + paint(f"  {line.what}" if line.what else "", DIM))
        changes += [f"    {each}" for each in line.details]
    for move in moves_of(found.reported.moved, found.keys):
        many = f" ({_counted(move.count, 'node')})" if move.count > 1 else ""
        changes.append(paint(f"{MOVED} {shown_place(move.before)} → {shown_place(move.after)}{many}", COLOURS[MOVED]))
    doubts = [*_listed(f"  {each.declaration}" for each in found.reported.doubts)]
    if doubts:
        doubts.insert(0, DOUBTFUL)
    costs = [("", "before", "after", "")]
    for name in COUNTS:
        old, new = (getattr(cost, name) for cost in found.costs)
        change = "=" if old == new else f"{new - old:+,}" + (f" ({(new - old) / old:+.1%})" if old else "")
        costs.append((name.replace("_", " "), f"{old:,}", f"{new:,}", change))
    follow, star = [each.attributes[0] for each in found.reported.changed if each.follows], found.keys.star
    said = [[shown_type(one, star) if one else "none" for one in (each.before, each.after)] for each in follow]
    types = Counter(map(" → ".join, said))
    following = [f"  {change}{_times(count)}" for change, count in types.most_common()]
    if following:
        title = paint(f"types that follow from these ({types.total():,}):", DIM)
        following = [title, *_listed(following)]
    blocks = [heading, changes, following, doubts, aligned(costs) if found.diff else [], [*_weights(found)]]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def summary(found: Comparison) -> str:
    """How many things differ, in words."""
    diff = found.reported
    counts = {"added": diff.added, "removed": diff.removed, "changed": diff.changed, "moved": diff.moved}
    words = [f"{len(each):,} {what}" for what, each in counts.items() if each]
    return ", ".join(words) or "the architectures are the same"


def _listed(lines: Iterable[str]) -> Iterator[str]:
    found = [*lines]
    yield from found[:MOST_LISTED]
    if len(found) > MOST_LISTED:
        yield f"  … and {len(found) - MOST_LISTED} more (--json has all)"


def _weights(found: Comparison) -> Iterator[str]:
    """What becomes of the weights, and whether what was learnt is the same."""
    values, reshaped = found.values, [each for each in found.weights if each.fate is Fate.RESHAPED]
    if found.diff:
        fates = [f"{len(each):,} {fate} ({_counted(count, 'value')})" for fate, each, count in found.fates() if each]
        yield f"trained weights: {', '.join(fates) or 'there are none'}"
        lines = fold(map(_item, reshaped), found.keys)
        yield from _listed(f"  {line.place}{_times(line.count)}: {line.what}" for line in lines)
    if values.trained == "unknown":
        yield from [f"values of weights: {values.reason}"] * bool(values.reason)
        return
    some = f" ({values.equal} equal, {len(values.different)} different)" if values.equal or values.different else ""
    yield f"values of weights: {values.trained}{some}"
    if reshaped:
        yield f"  of {len(reshaped):,} reshaped, {len(values.longer):,} have every old value at its old place"


def _item(weight: Weight) -> Item:
    return Item(CHANGED, "weight", weight.latest.name, lambda say: ", ".join(weight.reshaped(say)))


def _times(count: int) -> str:
    return f" (× {count})" if count > 1 else ""


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
