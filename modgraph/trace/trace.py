"""A trace: what the routers of a model did on the first examples of a split.

Axis letters: R rounds, B examples, N senders (tokens), M modules.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from modgraph_runtime.arrays import put_arrays
from numpy.typing import NDArray

from modgraph.data import TRAIN, Arrays
from modgraph.declare import CHOICES, Role
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.ir import Decision, Graph, Result, needed_in
from modgraph.trace.errors import NotFinite, UnknownRoute, UnknownSplit


@dataclass(frozen=True)
class RouteTrace:
    """What a router recorded at one route: arrays [R, B, ..., N, M] by the name of the record, gates among them."""

    decision: Decision = field(repr=False)
    records: Mapping[str, NDArray[Any]] = field(repr=False)

    @classmethod
    def of(cls, decision: Decision, records: Mapping[str, NDArray[Any]]) -> RouteTrace:
        """Raises `ModgraphError` unless the records are finite."""
        for name, array in records.items():
            if not np.isfinite(array).all():
                raise ModgraphError([NotFinite(record=name, route=decision.label)])
        return cls(decision, records)

    @property
    def name(self) -> str:
        return self.decision.label

    @property
    def pool(self) -> str:
        return self.decision.pool.name

    @property
    def short_pool(self) -> str:
        """The last word of the pool's path, for labels."""
        return self.pool.rpartition(".")[2]

    def record_as(self, *roles: Role) -> NDArray[Any] | None:
        """The record in the first of these roles that there is one for."""
        name = self.decision.record_as(*roles)
        return None if name is None else self.records[name]

    @property
    def gates(self) -> NDArray[Any]:
        gates = self.record_as(Role.GATES)
        assert gates is not None, "only routes with gates are traced"
        return gates

    @property
    def selects(self) -> bool:
        """Whether each module is chosen or not."""
        return self.decision.record_as(*CHOICES) is not None

    @property
    def chosen(self) -> NDArray[Any]:
        """How many slots each module was selected for, or the gates where a router selects nothing."""
        slots, choice = self.record_as(Role.SLOTS), self.record_as(Role.CHOICE)
        if slots is not None:
            counts: NDArray[Any] = slots.sum(-2)
            return counts
        return self.gates if choice is None else choice

    @property
    def modules(self) -> int:
        return int(self.gates.shape[-1])

    def first(self, examples: int) -> RouteTrace:
        return replace(self, records={name: array[:, :examples] for name, array in self.records.items()})


@dataclass(frozen=True)
class Trace:
    """The routes' records over some examples of a split, and those examples.

    `labels` are the true classes of each target that has one for an example, `predicted` what the model says of the
    first of them; `predictions` are what it compares with each target. `epoch` and `step` are those of a checkpoint.
    """

    graph: Graph
    split: str
    arrays: Arrays
    routes: tuple[RouteTrace, ...]
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    predicted: Sequence[str] = ()
    predictions: Mapping[str, Result] = field(default_factory=dict)
    history: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # use of modules [epochs, modules] by route
    entropies: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # of controllers [epochs, 2] by route
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)  # that the ids of an input stand for
    growth: Mapping[str, Any] | None = None  # what was added to the model, as a run has recorded it
    epoch: int | None = None
    step: int | None = None
    steps: int = 12  # that are summarised of a time axis

    def __repr__(self) -> str:
        routes = ", ".join(route.name for route in self.routes)
        return f"<Trace of {len(self)} examples of {self.split}: {routes}>"

    def __len__(self) -> int:
        return len(self.arrays)

    def first(self, examples: int) -> Trace:
        """The trace of the first examples alone."""
        routes = tuple(route.first(examples) for route in self.routes)
        return replace(self, arrays=first_of(self.arrays, examples), routes=routes)

    def as_npz(self) -> bytes:
        """The content of an .npz file: inputs and targets by name, and records as `<route>.<record>` [rounds, examples,
        ..., tokens, modules]."""
        arrays = dict(self.arrays.values)
        for route in self.routes:
            arrays |= {f"{route.name}.{record}": array for record, array in route.records.items()}
        buffer = io.BytesIO()
        put_arrays(buffer, arrays, zipfile.ZIP_DEFLATED)
        return buffer.getvalue()


def chosen_split(splits: Mapping[str, Arrays], name: str | None) -> tuple[str, Arrays]:
    """A split by name, by default the first that was not learnt from. Raises `ModgraphError`."""
    if name is None:
        name = next((each for each in splits if each != TRAIN), TRAIN)
    if name not in splits:
        raise ModgraphError([UnknownSplit(name=name, suggestion=did_you_mean(name, splits))])
    return name, splits[name]


def first_of(arrays: Arrays, examples: int) -> Arrays:
    """The first examples, in memory."""
    groups = {name: words[:examples] for name, words in arrays.groups.items()}
    return Arrays(arrays.read(slice(examples)), groups, orders=arrays.orders)


def named(labels: NDArray[Any], names: Sequence[str] | None) -> tuple[str, ...]:
    """Labels [B] as the names of their classes, or as numbers where they have none, such as a label that is ignored."""
    known = dict(enumerate(names or ()))
    return tuple(known.get(label, str(label)) for label in labels.tolist())


def routes_with_gates(graph: Graph, name: str | None = None) -> list[Decision]:
    """The routes of a graph whose router records a gate for each module, those in scans too, in the order of work; with
    a name that one alone. Raises `ModgraphError` if there is no such route."""
    found: dict[str, list[Decision]] = {}
    for each in graph.decisions():
        if each.record_as(Role.GATES) is not None:
            found.setdefault((each.part.scan or each.node).name, []).append(each)
    routes = [each for node in graph for each in found.get(node.name, ())]
    if name is None:
        return routes
    known = {route.label: route for route in routes}
    if name not in known:
        raise ModgraphError([UnknownRoute(name=name, suggestion=did_you_mean(name, known))])
    return [known[name]]


def routes_behind(graph: Graph, results: Sequence[Result]) -> set[str]:
    """The names of the routes with gates that results depend on."""
    needed = needed_in(graph, results).nodes
    return {each.label for each in routes_with_gates(graph) if (each.part.scan or each.node).name in needed}
