"""All that two architectures differ in, and what that means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from modgraph.inspect.diff.compare import compare
from modgraph.inspect.diff.costs import Costs, costs_of
from modgraph.inspect.diff.keys import Keys
from modgraph.inspect.diff.told import without_bodies
from modgraph.inspect.diff.values import Diff
from modgraph.inspect.diff.weights import Fate, Weight, weights_after
from modgraph.ir import Graph

MARKS = {"frozen", "grown"}


class Trained(StrEnum):
    """What is known of the values of two sets of trained weights."""

    UNKNOWN = "unknown"
    EQUAL = "equal"
    DIFFERENT = "different"


@dataclass(frozen=True)
class Values:
    """Whether trained weights have the same values: of runs and checkpoints name by name, in all others as a whole.
    `longer` are those that have grown, whose old part is as it was."""

    trained: Trained = Trained.UNKNOWN
    equal: int = 0
    different: tuple[str, ...] = ()
    longer: tuple[str, ...] = ()
    reason: str = ""  # why it is unknown


@dataclass(frozen=True)
class Side:
    """One of two architectures: where it was read, what it is (a spec, a run, …), its graph as compared."""

    path: str
    kind: str
    graph: Graph


@dataclass(frozen=True)
class Comparison:
    """Two architectures, what they differ in, and what that means."""

    before: Side
    after: Side
    diff: Diff
    costs: Costs = field(repr=False)
    weights: tuple[Weight, ...] = field(repr=False)
    values: Values = Values()
    notes: tuple[str, ...] = ()

    @property
    def is_different(self) -> bool:
        return bool(self.diff) or self.values.trained is Trained.DIFFERENT

    @cached_property
    def told(self) -> Diff:
        """What they differ in as people are told it: of a router its settings, not what follows in its body."""
        return without_bodies(self.diff, self.before.graph, self.after.graph)

    @cached_property
    def keys(self) -> Keys:
        """The keys of rounds and modules of both."""
        return Keys(self.before.graph, self.after.graph)

    def fates(self) -> dict[Fate, list[Weight]]:
        """The weights by what becomes of them."""
        return {fate: [weight for weight in self.weights if weight.fate is fate] for fate in Fate}


def without_marks(found: Comparison) -> Comparison:
    """The same without what is only frozen now, or learns again, or counts as added."""
    changed = tuple(each for each in found.diff.changed if each.names - MARKS)
    return replace(found, diff=replace(found.diff, changed=changed))


def compared(
    before: Side,
    after: Side,
    moved: Mapping[str, str],
    lengths: Mapping[str, int],
    values: Values = Values(),
    notes: tuple[str, ...] = (),
) -> Comparison:
    """Two architectures beside each other. Raises `ModgraphError` for lengths of axes that neither has."""
    graphs = before.graph, after.graph
    diff = compare(*graphs, moved)
    costs, weights = costs_of(diff, *graphs, lengths), tuple(weights_after(diff, *graphs))
    return Comparison(before, after, diff, costs, weights, values, notes)
