"""Ops that look at all examples: statistics, states, records, balance and capacity."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from tests.reference.along_axis import log_softmax_of, ranking
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


def _tokens(call: BatchCall, x: Value) -> tuple[Array, list[tuple[int, ...]]]:
    """The scores of all tokens of a batch [S, M], and the outer axes of each example."""
    rows = [np.moveaxis(each, call.first.place(), -1) for each in x.arrays]
    return np.concatenate([each.reshape(-1, each.shape[-1]) for each in rows]), [each.shape for each in rows]


def _by_example(call: BatchCall, tokens: Array, shapes: list[tuple[int, ...]]) -> Value:
    """The inverse of `_tokens`."""
    ends = np.cumsum([math.prod(shape[:-1]) for shape in shapes])[:-1]
    parts = zip(np.split(tokens, ends), shapes, strict=True)
    return Value(
        call.first.gives[0], tuple(np.moveaxis(each.reshape(shape), -1, call.first.place()) for each, shape in parts)
    )


def even_out(scores: Array, iterations: int, bias: Array, room: float) -> Array:
    """Sinkhorn's scaling: shares of a token sum to one, those of a module to its room, which tokens without any
    preference use up."""
    further = room * len(bias) - len(scores)
    powers, scale = np.exp(scores - scores.max(1, keepdims=True)), np.exp(bias)
    for _ in range(iterations):
        shares = powers * scale / (powers * scale).sum(1, keepdims=True)
        scale = scale * room / (shares.sum(0) + further * scale / scale.sum())
    return np.log(scale)


@batch_op("sinkhorn")
def sinkhorn(call: BatchCall, x: Value) -> Value:
    tokens, shapes = _tokens(call, x)
    bias = np.zeros(tokens.shape[1])
    if call.first.training and len(tokens):
        bias = even_out(tokens, call.first.setting("iterations", 8), bias, len(tokens) / len(bias))
    found = np.array([log_softmax_of(each + bias) for each in tokens]).reshape(tokens.shape)
    return _by_example(call, found, shapes)


@batch_op("balanced_assignment")
def balanced_assignment(call: BatchCall, x: Value) -> Value:
    tokens, shapes = _tokens(call, x)
    module = assign(tokens, call.first.setting("iterations", 8)) if call.first.training else tokens.argmax(1)
    return _by_example(call, np.eye(tokens.shape[1])[module], shapes)


def assign(scores: Array, iterations: int) -> Array:
    """The module of each token: prices at falling temperatures, then tokens in the order of what they would lose."""
    tokens, modules = scores.shape
    if not tokens:
        return np.zeros(0, int)
    spread, bias, most = scores.std() or 1.0, np.zeros(modules), -(-tokens // modules)
    for heat in spread / 2 ** np.arange(7):
        bias = even_out(scores / heat, iterations, bias / heat, most) * heat
    worth, room, found = scores + bias, np.full(modules, most), np.full(tokens, -1)
    for _ in range(modules):
        known = np.where(room > 0, worth, -np.inf)
        ordered = np.sort(known, axis=1)
        loss = ordered[:, -1] - ordered[:, -2] if modules > 1 else np.zeros(tokens)
        best, full = known.argmax(1), room.copy()
        for token in sorted(np.flatnonzero(found < 0), key=lambda token: -loss[token]):
            if full[best[token]]:
                found[token], full[best[token]] = best[token], full[best[token]] - 1
        room = full
        if (found >= 0).all():
            break
    return found
