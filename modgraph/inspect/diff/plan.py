"""The plan of a comparison: what changed in a line, and each change with the boxes that it lies on, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from modgraph.inspect.diff.architecture_diff import Comparison
from modgraph.inspect.diff.graph_diff import AXIS, LABEL, WEIGHTS
from modgraph.inspect.diff.text import ADDED, CHANGED, REMOVED, find_moved_groups, lines_of, summary
from modgraph.inspect.diff.words import format_place
from modgraph.inspect.page.content import Change, Kind, Plan
from modgraph.inspect.scene import Scene
from modgraph.inspect.scene.build import find_ids_of_nodes

KINDS: Mapping[str, Kind] = {ADDED: "added", REMOVED: "removed", CHANGED: "changed"}


def build_plan(found: Comparison, before: Scene, after: Scene) -> Plan:
    """The plan for the scenes of both graphs. Changes stand in the order of boxes."""
    old, new = (cost.parameters for cost in found.costs)
    counts = f"; parameters {old:,} → {new:,}" if old != new else ""
    orders = [_order(scene) for scene in (before, after)]
    changes = [each for each in _list_changes(found) if each.before in orders[0] or each.after in orders[1]]

    def place(change: Change) -> float:
        return orders[1].get(change.after, orders[0].get(change.before, 0.0))

    return Plan(f"{summary(found)}{counts}", sorted(changes, key=place))


def _order(scene: Scene) -> dict[str, float]:
    """The place of each box in a scene, from 0 to 1."""
    ids = [box.id for box in scene.walk()]
    return {id: at / len(ids) for at, id in enumerate(ids)}


def _list_changes(found: Comparison) -> Iterator[Change]:
    sides = [dict(find_ids_of_nodes(side.graph)) for side in (found.before, found.after)]
    earlier = {each.after: each.before for each in found.reported.changed}
    for line in lines_of(found):
        kind, many = KINDS[line.sign], f" (× {line.count})" if line.count > 1 else ""
        said = "; ".join(filter(None, (line.what, *line.details)))
        text = f"{line.kind} {format_place(line.place)}{many}{f': {said}' if said else ''}"
        old = "" if kind == "added" else earlier.get(line.first, line.first)
        new = "" if kind == "removed" else line.first
        yield Change(kind, text, *(side.get(place, place) for side, place in zip(sides, (old, new), strict=True)))
    for move, first in find_moved_groups(found.reported.moved, found.keys):
        if first.kind not in (WEIGHTS, AXIS, LABEL):
            text = f"{format_place(move.before)} → {format_place(move.after)}"
            text += f" ({move.count} nodes)" if move.count > 1 else ""
            yield Change("moved", text, sides[0].get(first.before, ""), sides[1].get(first.after, ""))
