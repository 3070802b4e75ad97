"""A trace: what the routers of a model did on the first examples of a split."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from modgraph_runtime.arrays import put_arrays
from numpy.typing import NDArray

from modgraph.data import TRAIN, Arrays
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.ir import Graph, Result
from modgraph.trace.errors import UnknownSplit
from modgraph.trace.routes import RouteTrace


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
