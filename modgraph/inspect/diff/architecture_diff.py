"""All differences between two architectures, with costs and trained weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

from modgraph.diagnostics import ModgraphError
from modgraph.inspect.cost import Cost, check_lengths, compute_cost
from modgraph.inspect.diff.changes import Changed, Diff, Moved
from modgraph.inspect.diff.graph_diff import AXIS, GONE, LABEL, WEIGHTS, Renames, compare
from modgraph.inspect.diff.level import Level, is_below, split_place
from modgraph.inspect.diff.runs_diff import KeyChange, RunsCompared
from modgraph.inspect.diff.words import Keys
from modgraph.ir import Call, DecisionNode, Graph, GraphWeight, OpNode, Result, ScanNode, list_node_weights, weights_of

MARKS = {"frozen", "grown"}
IDENTITY = {"is", "text"}  # the declaration of an op or router


class Fate(StrEnum):
    """The fate of a weight: kept, moved to another name, reshaped, fresh, or dropped."""

    KEPT = "kept"
    MOVED = "moved"
    RESHAPED = "reshaped"
    NEW = "new"
    DROPPED = "dropped"


@dataclass(frozen=True)
class Weight:
    """A weight before and after, None where it does not exist."""

    before: GraphWeight | None
    after: GraphWeight | None

    @property
    def fate(self) -> Fate:
        if self.before is None or self.after is None:
            return Fate.NEW if self.before is None else Fate.DROPPED
        if self.before.shape != self.after.shape:
            return Fate.RESHAPED
        return Fate.KEPT if self.before.name == self.after.name else Fate.MOVED

    @property
    def latest(self) -> GraphWeight:
        """The weight after, or before if it is gone."""
        return next(each for each in (self.after, self.before) if each is not None)

    def list_reshaped_axes(self, say: Callable[[str], str] = str) -> list[str]:
        """The axes whose size differs, `expert 6→8`; one without a name by its position from 0."""
        if self.before is None or self.after is None:
            return []
        axes = enumerate(zip(self.before.axes, self.after.axes, strict=True))
        others = [(at, old, new) for at, (old, new) in axes if old.size != new.size]
        return [f"{say(new.name) or f'axis {at}'} {old.size}→{new.size}" for at, old, new in others]


@dataclass(frozen=True)
class Values:
    """Whether trained weights have equal values.

    Runs and checkpoints are compared name by name, other files as a whole. `longer` are weights that have grown and
    kept their old part.
    """

    trained: Literal["unknown", "equal", "different"] = "unknown"
    equal: int = 0
    different: tuple[str, ...] = ()
    longer: tuple[str, ...] = ()
    reason: str = ""  # why it is unknown, or what was compared


@dataclass(frozen=True)
class Side:
    """One of two architectures: its path, its kind (a spec, a run, …), and its graph."""

    path: str
    kind: str
    graph: Graph


@dataclass(frozen=True)
class Comparison:
    """Two architectures and their differences: nodes (`diff`), costs (`costs`), the fate of each weight (`weights`),
    and for runs whether trained `values` are equal. `runs` are the differences of two runs beyond their architectures,
    `manifests` the keys of the manifests of two bundles, those that are equal too.

    Its text is one line.
    """

    before: Side
    after: Side
    diff: Diff
    costs: tuple[Cost, Cost] = field(repr=False)
    weights: tuple[Weight, ...] = field(repr=False)
    values: Values = Values()
    notes: tuple[str, ...] = ()
    runs: RunsCompared | None = field(default=None, repr=False)
    manifests: tuple[KeyChange, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        return f"<Comparison of {self.before.path} and {self.after.path}: {self}>"

    def __str__(self) -> str:
        """Summarise the differences in a line."""
        from modgraph.inspect.diff.text import summary

        return summary(self)

    def _repr_html_(self) -> str:
        """Render differences and costs for a notebook."""
        from modgraph.inspect.diff.text import text_of
        from modgraph.inspect.notebook import render, render_text

        return render(str(self), render_text(text_of(self)))

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values, as `modgraph diff --json` prints it."""
        from modgraph.inspect.diff.report_json import as_json

        return as_json(self)

    @property
    def is_different(self) -> bool:
        """Whether anything differs: a node, the value of a trained weight, or of two runs a recipe, data, a metric."""
        of_runs = self.runs is not None and self.runs.is_different
        return bool(self.diff) or self.values.trained == "different" or of_runs

    @cached_property
    def reported(self) -> Diff:
        """The part of the diff that people read: settings of a router, not what follows in its body."""
        return drop_router_bodies(self.diff, self.before.graph, self.after.graph)

    @cached_property
    def keys(self) -> Keys:
        """The keys of rounds and modules of both."""
        return Keys(self.before.graph, self.after.graph)

    def fates(self) -> list[tuple[Fate, list[Weight], int]]:
        """The weights by fate, and the number of their values."""
        weights = {fate: [weight for weight in self.weights if weight.fate is fate] for fate in Fate}
        return [(fate, each, sum(weight.latest.count for weight in each)) for fate, each in weights.items()]


def drop_marks(found: Comparison) -> Comparison:
    """The comparison without changes of `frozen` and of counts of added modules."""
    changed = tuple(each for each in found.diff.changed if each.names - MARKS)
    return replace(found, diff=replace(found.diff, changed=changed))


def compare_sides(
    before: Side, after: Side, moved: Mapping[str, str], lengths: Mapping[str, int], notes: tuple[str, ...] = ()
) -> Comparison:
    """Compare two architectures. Raises `ModgraphError` for lengths of axes that neither has."""
    graphs = before.graph, after.graph
    for name, length in lengths.items():
        try:
            check_lengths(before.graph, {name: length})
        except ModgraphError:
            check_lengths(after.graph, {name: length})
    diff = compare(*graphs, moved)
    costs = compute_cost(before.graph, lengths), compute_cost(after.graph, lengths)
    return Comparison(before, after, diff, costs, tuple(list_weights_after(diff, *graphs)), notes=notes)


def list_weights_after(diff: Diff, before: Graph, after: Graph) -> list[Weight]:
    """Every weight of both graphs: those before in their order, then those that are new."""
    names = dict(_names_of_weights(diff, before))
    new = {weight.name: weight for weight in weights_of(after)}
    found = []
    for weight in weights_of(before):
        name = names.get(weight.name, "")
        fits = name in new and len(new[name].axes) == len(weight.axes)
        found.append(Weight(weight, new.pop(name) if fits else None))
    return [*found, *(Weight(None, weight) for weight in new.values())]


def _names_of_weights(diff: Diff, before: Graph) -> Iterator[tuple[str, str]]:
    """Map the names of weights to their names after, if some node still uses them.

    Weights of removed nodes have none, nor those of an op or router that became another, with its body: their meaning
    differs.
    """
    levels = [level for level in Level(before).walk() if not level.scope]
    gone = [(each.kind, each.place) for each in diff.removed]
    gone += [(each.kind, each.before) for each in diff.changed if each.names & IDENTITY]
    heads = {split_place(place)[1] for _, place in gone}
    ops = [(level, node) for level in levels for node in level.graph.nodes_of(OpNode)]
    gone += [(node.kind, level.place + node.name) for level, node in ops if is_below(heads, node.owner)]
    renames = Renames(diff.moved, before, gone)
    for level in levels:
        renamed = renames.graph(level)
        for old, new in zip(level.graph, renamed, strict=True):
            if not isinstance(old, ScanNode):
                both = zip(list_node_weights(level.graph, old), list_node_weights(renamed, new), strict=True)
                yield from ((one.name, other.name) for one, other in both if f".{GONE}" not in f".{other.name}")


# ------------------------------------------------------------ without what follows in the bodies of routers

FOLLOWING = ("types.", "settings.sizes", "settings.axis")  # consequences in the body of a router


def drop_router_bodies(diff: Diff, before: Graph, after: Graph) -> Diff:
    """A diff without the bodies of routers that became others, and without what only follows from them."""
    routers = [each for each in diff.changed if each.kind == "router"]
    places = {each.before for each in routers} | {each.place for each in diff.removed}
    others = {each.after for each in routers} | {each.place for each in diff.added}
    old, new, every = _Bodies(before, places), _Bodies(after, others), _Bodies(after, None)
    left = _Bodies(before, places | {each.before for each in diff.moved})
    come = _Bodies(after, others | {each.after for each in diff.moved})
    uses_moved = any(each.kind in ("route", "decision") for each in diff.moved)

    def is_change(each: Changed) -> bool:
        if each.after in new.inside or each.after in new.decisions:
            return False
        if each.after in every.inside and all(name.startswith(FOLLOWING) for name in each.names):
            return False
        read = [
            isinstance(value, Result) and split_place(place)[0] + value.node in inside
            for one in each.attributes
            for place, value, inside in ((each.before, one.before, old.inside), (each.after, one.after, new.inside))
        ]
        return not all(read)  # another value of the same body

    def is_move(each: Moved) -> bool:
        if each.kind == LABEL:
            return not uses_moved
        return not (left.hold(each.before, each.kind) and come.hold(each.after, each.kind))

    return replace(
        diff,
        added=tuple(each for each in diff.added if each.place not in new.inside),
        removed=tuple(each for each in diff.removed if each.place not in old.inside),
        changed=tuple(filter(is_change, diff.changed)),
        moved=tuple(filter(is_move, diff.moved)),
        doubts=tuple(each for each in diff.doubts if not (each.before in old.inside or each.after in new.inside)),
    )


class _Bodies:
    """The bodies of those routers of a graph whose router, pool or decision stands in `places`; all of them for None.

    `decisions` has the places of their decisions, `inside` those of their nodes.
    """

    def __init__(self, graph: Graph, places: set[str] | None) -> None:
        self.decisions: set[str] = set()
        self.inside: set[str] = set()
        self._names: set[str] = set()
        for level in Level(graph).walk():
            calls: set[Call] = set()
            for node in level.graph.nodes_of(DecisionNode):
                names = {node.name, *level.graph.uses(node.name).values()}
                if places is None or not places.isdisjoint(level.place + name for name in names):
                    own = {call for call in node.calls if call.path == node.name}
                    calls |= own
                    self.decisions |= {level.place + node.name} if own else set()
                    self._names |= {node.name, level.graph.router_of(node).name}
            if calls:
                inside = (node.name for node in level.graph if calls.intersection(node.calls))
                self.inside |= {level.place + name for name in inside}
        self.inside -= self.decisions

    def hold(self, place: str, kind: str) -> bool:
        """Whether a place, or a name of weights or of an axis, is in one of these bodies."""
        if kind not in (WEIGHTS, AXIS):
            return place in self.inside
        return is_below(self._names, split_place(place)[1])
