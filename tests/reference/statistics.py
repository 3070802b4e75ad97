"""Ops that look at all examples: statistics, states, records, balance and capacity."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from tests.reference.along_axis import ranking
from tests.reference.call import BatchCall, Call, batch_op
from tests.reference.values import Array, Value


def _over(call: BatchCall, x: Value) -> tuple[Array, Array, tuple[int, ...]]:
    """All rows of a batch along the axes that are gone over [rows, …kept]."""
    axes = call.first.setting("axes")
    places = call.first.places(([-2] if len(x.type.axes) > 1 else []) if axes is None else axes)
    rows = [np.moveaxis(each, places, range(len(places))) for each in x.arrays]
    kept = rows[0].shape[len(places) :]
    return np.concatenate([each.reshape(-1, *kept) for each in rows]), np.zeros(kept), kept


@batch_op("batch_mean")
def batch_mean(call: BatchCall, x: Value) -> Value:
    rows, nothing, _ = _over(call, x)
    return Value(call.first.gives[0], (rows.mean(0) if len(rows) else nothing,))


@batch_op("batch_variance")
def batch_variance(call: BatchCall, x: Value) -> Value:
    rows, nothing, _ = _over(call, x)
    return Value(call.first.gives[0], (((rows - rows.mean(0)) ** 2).mean(0) if len(rows) else nothing,))


@batch_op("state")
def state(call: BatchCall, like: Value) -> Value:
    return Value(call.first.gives[0], (call.read_state("value"),))


@batch_op("keep_recent")
def keep_recent(call: BatchCall, record: Value, x: Value) -> Value:
    """A batch's values are appended along the last axis in its order, the oldest fall out."""
    (kept,) = record.arrays
    appended = np.concatenate([kept, np.stack(x.arrays, axis=-1)], axis=-1)
    return Value(call.first.gives[0], (appended[..., appended.shape[-1] - kept.shape[-1] :],))


@batch_op("importance", "load")
def balance(call: BatchCall, *routes: Value) -> Value:
    """Variance / mean² of what each module got, summed over routes."""
    got = [[each.of(at).reshape(-1, each.of(at).shape[-1]).sum(0) for at in range(len(call.calls))] for each in routes]
    if call.first.setting("over", "batch") == "batch":
        return Value(call.first.gives[0], (np.asarray(sum(_squared_cv(sum(each)) for each in got)),))
    found = [np.asarray(sum(_squared_cv(each[at]) for each in got)) for at in range(len(call.calls))]
    return Value(call.first.gives[0], tuple(found))


def _squared_cv(used: Array) -> float:
    """Unbiased variance / mean²; of one module, or where nothing was used, zero."""
    if len(used) == 1 or not used.any():
        return 0.0
    return float(used.var(ddof=1) / used.mean() ** 2)


@batch_op("within_capacity")
def within_capacity(call: BatchCall, scores: Value, choice: Value) -> Value:
    """A module serves those who chose it in the order of its queue, until it has no room left."""
    if not call.first.training:
        return Value(call.first.gives[0], choice.arrays)
    at = call.first.place()
    by_token = [np.moveaxis(each, at, -1) for each in choice.arrays]
    sizes = [each.shape[:-1] for each in by_token]
    flat_choice = np.concatenate([each.reshape(-1, each.shape[-1]) for each in by_token])
    ranked = [np.moveaxis(each, at, -1).reshape(-1, flat_choice.shape[-1]) for each in scores.arrays]
    room = _room(call.first, flat_choice)
    kept = np.zeros_like(flat_choice)
    for module in range(flat_choice.shape[-1]):
        queue = QUEUES[call.first.setting("priority", "score")](np.concatenate(ranked), flat_choice, module)
        kept[[*queue][:room], module] = 1
    parts = np.split(flat_choice * kept, np.cumsum([math.prod(size) for size in sizes])[:-1])
    found = [
        np.moveaxis(part.reshape(*size, flat_choice.shape[-1]), -1, at) for part, size in zip(parts, sizes, strict=True)
    ]
    return Value(call.first.gives[0], tuple(found))


def _room(call: Call, flat_choice: Array) -> int:
    tokens, modules = int((flat_choice != 0).any(-1).sum()), flat_choice.shape[-1]
    return int(call.setting("k", 1)) * int(call.settings["share"] * math.ceil(tokens / modules))


def _by_score(scores: Array, flat_choice: Array, module: int) -> Iterator[int]:
    return (int(token) for token in ranking(scores[:, module]) if flat_choice[token, module] != 0)


def _by_first_choice(scores: Array, flat_choice: Array, module: int) -> Iterator[int]:
    """Those whose first choice it is, then second choices, …; among these by the token's largest score."""
    rank = [int(np.flatnonzero(ranking(row) == module)[0]) for row in scores]
    by_largest = [int(token) for token in ranking(scores.max(-1)) if flat_choice[token, module] != 0]
    return iter(sorted(by_largest, key=lambda token: rank[token]))


QUEUES: dict[str, Callable[[Array, Array, int], Iterator[int]]] = {
    "score": _by_score,
    "first_choice": _by_first_choice,
}
