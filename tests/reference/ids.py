"""Ids: remainders, one-hot vectors, rows looked up one by one, and the places of the largest values."""

from __future__ import annotations

import numpy as np

from tests.reference.call import Call, op
from tests.reference.values import Array


@op("modulo")
def modulo(call: Call, x: Array) -> Array:
    return x % call.settings["right"]


@op("floor_divide")
def floor_divide(call: Call, x: Array) -> Array:
    return x // call.settings["right"]


@op("to_ids")
def to_ids(call: Call, x: Array) -> Array:
    return np.floor(np.clip(x, 0, call.settings["size"] - 1)).astype(np.int64)


@op("one_hot")
def one_hot(call: Call, x: Array) -> Array:
    found = np.zeros((*x.shape, call.gives[0].axes[-1].size or 0))
    for place in np.ndindex(x.shape):
        if x[place] >= 0:
            found[(*place, int(x[place]))] = 1.0
    return found


@op("lookup")
def lookup(call: Call, table: Array, ids: Array) -> Array:
    """Row by row: along axes that both have at the same place, along the counted axis at the id."""
    rows, places = call.takes
    names = [axis.name for axis in places.axes]
    given = call.setting("axis")
    own = [at for at, axis in enumerate(rows.axes) if not axis.name or axis.name not in names]
    counted = own[0] if given is None else rows.place(given)
    plain = [at for at, name in enumerate(names) if not name]
    found = np.zeros([*ids.shape, *(n for at, n in enumerate(table.shape) if at not in _fixed(rows, names, counted))])
    for place in np.ndindex(ids.shape):
        free = iter(plain)
        index: list[object] = []
        for at, axis in enumerate(rows.axes):
            if at == counted:
                index.append(int(ids[place]))
            elif axis.name in names and axis.name:
                index.append(place[names.index(axis.name)])
            else:
                index.append(place[next(free)] if not axis.name and at < counted else slice(None))
        found[place] = table[tuple(index)]
    return found


def _fixed(rows: object, names: list[str], counted: int) -> list[int]:
    """The axes of the table that the result has not behind those of the ids."""
    axes = rows.axes  # type: ignore[attr-defined]
    return [
        at
        for at, axis in enumerate(axes)
        if at == counted or (axis.name and axis.name in names) or (not axis.name and at < counted)
    ]


@op("top_k_indices")
def top_k_indices(call: Call, x: Array) -> Array:
    """Of equal values the first is larger."""
    place = call.place()
    order = np.argsort(-x, axis=place, kind="stable")
    return np.take(order, range(call.setting("k", 1)), axis=place)
