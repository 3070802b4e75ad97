"""Ops along one axis: reductions, softmax, sums of products, order, and choices."""

from __future__ import annotations

from collections.abc import Callable
from string import ascii_letters

import numpy as np

from tests.reference.call import Call, op
from tests.reference.values import Array, Unsupported, broadcast_over


def each_line(x: Array, at: int, function: Callable[[Array], Array]) -> Array:
    """Apply a function to each line along an axis, with its result in place of the axis."""
    return np.apply_along_axis(function, at, x) if x.size else x


def softmax_of(line: Array, axis: int = -1) -> Array:
    if line.shape[axis] == 0:
        return line
    powers = np.exp(line - line.max(axis, keepdims=True))
    found: Array = powers / powers.sum(axis, keepdims=True)
    return found


def log_softmax_of(line: Array, axis: int = -1) -> Array:
    if line.shape[axis] == 0:
        return line
    off = line - line.max(axis, keepdims=True)
    found: Array = off - np.log(np.exp(off).sum(axis, keepdims=True))
    return found


@op("softmax")
def softmax(call: Call, x: Array) -> Array:
    return softmax_of(x, call.place())


@op("log_softmax")
def log_softmax(call: Call, x: Array) -> Array:
    return log_softmax_of(x, call.place())


@op("unit")
def unit(call: Call, x: Array) -> Array:
    norm = np.sqrt((x**2).sum(call.place(), keepdims=True))
    return np.asarray(x / np.maximum(norm, 1e-8))


@op("sum", "mean", "max", "min", "last")
def reduction(call: Call, x: Array) -> Array:
    """Of nothing each is zero."""
    at = call.place(-2)
    if x.shape[at] == 0:
        return np.zeros((*x.shape[:at], *x.shape[at + 1 :]))
    if call.op == "last":
        return np.asarray(x.take(-1, axis=at))
    found: Array = getattr(x, call.op)(axis=at)
    return found


@op("flip")
def flip(call: Call, x: Array) -> Array:
    return np.flip(x, call.place(-2))


@op("logsumexp")
def logsumexp(call: Call, x: Array) -> Array:
    """Of nothing it is zero."""
    at = call.place()
    if x.shape[at] == 0:
        return np.zeros((*x.shape[:at], *x.shape[at + 1 :]))
    return np.asarray(np.logaddexp.reduce(x, at))


@op("contract")
def contract(call: Call, left: Array, right: Array) -> Array:
    """Σ over an axis of both; axes that both have by name are aligned, the others kept, those of the left first."""
    axis, (first, second) = call.setting("axis", -1), (type_.axes for type_ in call.takes)
    over = [type_.place(axis) for type_ in call.takes]
    letters = iter(ascii_letters)
    of_left = [next(letters) for _ in first]
    by_name = {each.name: letter for each, letter in zip(first, of_left, strict=True) if each.name}
    of_right = [by_name.get(each.name) or next(letters) for each in second]
    of_right[over[1]] = of_left[over[0]]
    kept = [letter for letter in dict.fromkeys(of_left + of_right) if letter != of_left[over[0]]]
    found: Array = np.einsum(f"{''.join(of_left)},{''.join(of_right)}->{''.join(kept)}", left, right)
    return found


@op("cumulative_sum")
def cumulative_sum(call: Call, x: Array) -> Array:
    return np.cumsum(x, axis=call.place())


def ranking(line: Array, sign: int = -1) -> Array:
    """The places of a line from the largest value to the least, of equal ones the first in front."""
    return np.argsort(sign * ordered(line), kind="stable")


def ordered(x: Array) -> Array:
    """x, whose values can be put in an order."""
    if np.isnan(x).any():
        raise Unsupported("an order of what is no number")
    return x


@op("sort_order")
def sort_order(call: Call, x: Array) -> Array:
    sign = -1 if call.setting("descending", False) else 1

    def ranks(line: Array) -> Array:
        found = np.empty(len(line))
        found[ranking(line, sign)] = np.arange(len(line))
        return found

    return each_line(x, call.place(), ranks)


@op("kth_largest")
def kth_largest(call: Call, x: Array) -> Array:
    """The k-th largest of a line; of fewer than k values the least, of none zero."""
    at = call.place()
    if x.shape[at] == 0:
        return np.zeros((*x.shape[:at], *x.shape[at + 1 :]))
    return np.asarray(np.sort(ordered(x), axis=at).take(-min(call.settings["k"], x.shape[at]), axis=at))


@op("top_k")
def top_k(call: Call, x: Array) -> Array:
    k = call.setting("k", 1)

    def choice(line: Array) -> Array:
        found = np.zeros(len(line))
        found[ranking(line)[:k]] = 1
        return found

    return each_line(x, call.place(), choice)


@op("draw")
def draw(call: Call, x: Array, *forced: Array) -> Array:
    """The most probable place; in training the one that an operand or the caller says, by its number."""
    at, one_hot = call.place(), np.zeros_like(x)
    if x.size == 0:
        return one_hot
    places = ordered(x).argmax(at)  # of equal ones the first
    if call.training:
        places = forced[0] if forced else call.chance()
        if (places < 0).any():
            places = np.where(places < 0, call.chance(), places)
    np.put_along_axis(one_hot, np.expand_dims(places.astype(np.int64), at), 1.0, at)
    return one_hot


@op("above")
def above(call: Call, x: Array) -> Array:
    return np.asarray(x > call.setting("threshold", 0.0), np.float64)


@op("masked_softmax")
def masked_softmax(call: Call, x: Array, choice: Array, sink: Array | None = None) -> Array:
    axes = call.gives[0].axes
    at = call.place()
    if x.size == 0:
        return x
    choice = broadcast_over(choice, call.takes[1].axes, axes)
    among = np.where(choice != 0, x, -np.inf)
    if sink is not None:
        last = np.expand_dims(broadcast_over(sink, call.takes[2].axes, [*axes[:at], *axes[at + 1 :]]), at)
        among = np.concatenate([among, np.broadcast_to(last, [*x.shape[:at], 1, *x.shape[at + 1 :]])], at)
    largest = among.max(at, keepdims=True)
    powers = np.exp(among - np.where(np.isfinite(largest), largest, 0))
    total = powers.sum(at, keepdims=True)
    return np.asarray(np.take(powers / np.where(total > 0, total, 1), range(x.shape[at]), at))


@op("first_places")
def first_places(call: Call, x: Array) -> Array:
    slots, modules = call.settings["slots"], x.shape[-1]
    return np.broadcast_to(np.eye(slots, modules), (*x.shape[:-1], slots, modules)).copy()


@op("dispatch")
def dispatch(call: Call, x: Array) -> Array:
    """A slot for each place that was chosen, in their order; the axis of slots stands before that of places."""
    at, slots = call.place(), call.settings["slots"]
    lines = np.moveaxis(x, at, -1)
    found = np.zeros((*lines.shape[:-1], slots, lines.shape[-1]))
    for index in np.ndindex(lines.shape[:-1]):
        for slot, place in enumerate(np.flatnonzero(lines[index])[:slots]):
            found[(*index, slot, place)] = 1
    return np.moveaxis(np.moveaxis(found, -1, at), -1, at)
