"""Which parameters of a spec give a model that has grown: found by asking the spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from modgraph.ir import Graph
from modgraph.ir.edits import Grow, Mark, replayed
from modgraph.store.opened import SpecOfRun
from modgraph.store.run_directory import RunDirectory
from modgraph.training.continual.evaluation import classes
from modgraph.types import Misfit

Sizes = dict[str, int]  # of axes that can grow, by name
Values = dict[str, Any]


def grown_parameters(directory: RunDirectory, began: Graph, grown: Graph) -> Values | None:
    """The parameters, if there are any, by which the spec of a run gives the graph that the first one has become, but
    for what is frozen in it and counts as added; only those that differ."""
    missing = _difference(sizes_of(began), sizes_of(grown))
    spec = SpecOfRun(directory)
    plain = spec.graph(began.parameters)
    if not missing or plain is None:
        return None
    values, left = dict(began.parameters), dict(missing)
    for name, place in _numbers(values):
        graph = spec.graph(_with(began.parameters, name, place, 1))
        moved = {} if graph is None else _difference(sizes_of(plain), sizes_of(graph))
        by = {left.get(axis) for axis in moved}
        if set(moved.values()) == {1} and len(by) == 1 and None not in by:
            values = _with(values, name, place, by.pop())  # type: ignore[arg-type]
            left = {axis: count for axis, count in left.items() if axis not in moved}
    found = spec.graph(values)
    if left or found is None or not _same(found, plain, missing):
        return None
    return {name: value for name, value in values.items() if value != began.parameters[name]}


def sizes_of(graph: Graph) -> Sizes:
    """How long the axes are that can grow: those of pools and of classes, by name."""
    axes = {pool.axis.name: pool.size for pool in graph.pools().values()}
    return axes | classes(graph)


def _difference(before: Sizes, after: Sizes) -> Sizes:
    return {name: size - before[name] for name, size in after.items() if size != before.get(name, size)}


def _numbers(values: Mapping[str, Any]) -> Iterator[tuple[str, int | None]]:
    """The parameters that are whole numbers, and the places of lists that are."""
    for name, value in values.items():
        if type(value) is int:
            yield name, None
        elif isinstance(value, list | tuple):
            yield from ((name, place) for place, each in enumerate(value) if type(each) is int)


def _with(values: Values, name: str, place: int | None, more: int) -> Values:
    """Parameters of which one number is larger."""
    if place is None:
        return {**values, name: values[name] + more}
    items = list(values[name])
    items[place] += more
    return {**values, name: items}


def _same(found: Graph, plain: Graph, grew: Sizes) -> bool:
    """Whether a spec's graph is another of its graphs after some axes grew, whatever is frozen or counts as added."""
    try:
        edited = replayed(plain, [Grow(axis, by) for axis, by in grew.items()])
    except Misfit:
        return False
    return Mark().apply(edited) == Mark().apply(found)
