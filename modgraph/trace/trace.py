"""A trace: the decisions of a model's routers on the first examples of a split.

Axis letters: R rounds, B examples, N tokens, M modules.
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
from modgraph.ir import Decision, Graph, Result, find_dependencies
from modgraph.trace.errors import NotFinite, UnknownRoute, UnknownSplit


@dataclass(frozen=True)
class RouteTrace:
    """The records of a router at one route: arrays [R, B, ..., N, M] by the name of the record, gates among them."""

    decision: Decision = field(repr=False)
    records: Mapping[str, NDArray[Any]] = field(repr=False)

    @classmethod
    def from_records(cls, decision: Decision, records: Mapping[str, NDArray[Any]]) -> RouteTrace:
        """Check the records. Raises `ModgraphError` unless they are finite."""
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
        """Return the record in the first of these roles that exists."""
        name = self.decision.record_as(*roles)
        return None if name is None else self.records[name]

    @property
    def gates(self) -> NDArray[Any]:
        gates = self.record_as(Role.GATES)
        assert gates is not None, "only routes with gates are traced"
        return gates

    @property
    def has_choice(self) -> bool:
        """Whether the router makes a choice."""
        return self.decision.record_as(*CHOICES) is not None

    @property
    def choice(self) -> NDArray[Any]:
        """In how many slots each module was chosen, or the gates where a router makes no choice."""
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
    """The records of routes over some examples of a split, and those examples.

    `labels` are the true classes of each target with one label per example, `predicted` the predictions for the first
    of them. `predictions` are the results that the model compares with each target. `epoch` and `step` are those of the
    checkpoint.
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
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)  # the words of an input's ids
    growth: Mapping[str, Any] | None = None  # modules that a training added, from the run's logs
    epoch: int | None = None
    step: int | None = None
    steps: int = 12  # steps of a time axis in the summary

    def __repr__(self) -> str:
        routes = ", ".join(route.name for route in self.routes)
        return f"<Trace of {len(self)} examples of {self.split}: {routes}>"

    def _repr_html_(self) -> str:
        """The use of each module, for a notebook."""
        from modgraph.inspect.notebook import render, render_text
        from modgraph.trace.summary import as_json, as_table

        return render(repr(self), render_text(as_table(self, as_json(self))))

    def as_records(self) -> list[dict[str, Any]]:
        """Return a record for each module of each route, for `pandas.DataFrame`: how often it is chosen (`load`), the
        sum of its gates (`importance`), its `share` of all choices, and whether it is never chosen (`dead`)."""
        from modgraph.trace.statistics import compute_statistics

        records = []
        for route in self.routes:
            found = compute_statistics(route)
            total = sum(found["load"])
            for module, (load, importance) in enumerate(zip(found["load"], found["importance"], strict=True)):
                use = {"share": load / total if total else 0.0, "load": load, "importance": importance}
                names = {"route": route.name, "pool": route.pool, "module": module}
                records.append({**names, **use, "dead": module in found["dead"]})
        return records

    def __len__(self) -> int:
        return len(self.arrays)

    def first(self, examples: int) -> Trace:
        """Return the trace of the first examples only."""
        routes = tuple(route.first(examples) for route in self.routes)
        return replace(self, arrays=first_of(self.arrays, examples), routes=routes)

    def as_npz(self) -> bytes:
        """Return the content of an .npz file: inputs and targets by name, and records as `<route>.<record>` [rounds,
        examples, ..., tokens, modules]."""
        arrays = dict(self.arrays.values)
        for route in self.routes:
            arrays |= {f"{route.name}.{record}": array for record, array in route.records.items()}
        buffer = io.BytesIO()
        put_arrays(buffer, arrays, zipfile.ZIP_DEFLATED)
        return buffer.getvalue()


def choose_split(splits: Mapping[str, Arrays], name: str | None) -> tuple[str, Arrays]:
    """Return a split by name, by default the first but `train`. Raises `ModgraphError`."""
    if name is None:
        name = next((each for each in splits if each != TRAIN), TRAIN)
    if name not in splits:
        raise ModgraphError([UnknownSplit(name=name, suggestion=did_you_mean(name, splits))])
    return name, splits[name]


def first_of(arrays: Arrays, examples: int) -> Arrays:
    """Read the first examples into memory."""
    groups = {name: words[:examples] for name, words in arrays.groups.items()}
    return Arrays(arrays.read(slice(examples)), groups, orders=arrays.orders)


def name_classes(labels: NDArray[Any], names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the class names of labels [B], or the numbers of labels without a name, such as ignored ones."""
    known = dict(enumerate(names or ()))
    return tuple(known.get(label, str(label)) for label in labels.tolist())


def list_routes_with_gates(graph: Graph, name: str | None = None) -> list[Decision]:
    """Return the routes whose router records a gate for each module, those in scans too, in the order of computation;
    given a name, only that route. Raises `ModgraphError` if there is no such route."""
    found: dict[str, list[Decision]] = {}
    for each in graph.decisions():
        if each.record_as(Role.GATES) is not None:
            found.setdefault((each.part.outermost or each.node).name, []).append(each)
    routes = [each for node in graph for each in found.get(node.name, ())]
    if name is None:
        return routes
    known = {route.label: route for route in routes}
    if name not in known:
        raise ModgraphError([UnknownRoute(name=name, suggestion=did_you_mean(name, known))])
    return [known[name]]


def find_routes_behind(graph: Graph, results: Sequence[Result]) -> set[str]:
    """Return the names of the routes with gates that results depend on."""
    needed = find_dependencies(graph, results).nodes
    return {each.label for each in list_routes_with_gates(graph) if (each.part.outermost or each.node).name in needed}
