"""Routes as message passing: each sender's message goes to modules, what they make of it is weighted and summed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tests.reference.values import Array, Axis, Type, Unsupported, Value

MODULE = "module"
Apply = Callable[[int, list[Array], list[int]], list[Array]]  # a module, messages and their examples give results


@dataclass(frozen=True)
class Route:
    """One use of a pool by a router: `apply` runs one of its modules on messages, each with the example it is of."""

    router: str
    settings: Mapping[str, Any]
    axis: Axis
    message: Type
    result: Type
    gives: tuple[Type, ...]
    training: bool
    lengths: tuple[Mapping[str, int], ...]
    apply: Apply

    def outer(self, type_: Type) -> tuple[Axis, ...]:
        """The axes of a value before those of a message."""
        return type_.axes[: len(type_.axes) - len(self.message.axes)]

    @property
    def modules(self) -> range:
        assert self.axis.size is not None
        return range(self.axis.size)

    def nothing(self, example: int) -> Array:
        return np.zeros(self.result.shape(self.lengths[example]))


def routed(route: Route, values: list[Value]) -> list[Value]:
    """The value of a route, then its records."""
    if route.router not in ROUTERS:
        raise Unsupported(f'router "{route.router}"')
    return ROUTERS[route.router](route, values)


def _every_module(route: Route, values: list[Value]) -> list[Value]:
    """An axis of modules before each message; with `rows` module j takes row j of the value."""
    (x,) = values
    rows = route.settings.get("rows", False)
    return [Value(route.gives[0], tuple(_messages(route, x, rows)))]


def _one_module(route: Route, values: list[Value]) -> list[Value]:
    """The module that the text names takes every message."""
    (x,), module = values, route.settings["index"]
    return [
        Value(route.gives[0], tuple(each.take(module, len(route.outer(x.type))) for each in _messages(route, x, False)))
    ]


def _messages(route: Route, x: Value, rows: bool) -> list[Array]:
    """For each example f_j(s_i) [senders, modules, result]."""
    depth = len(route.outer(x.type)) - rows
    positions = [(at, index) for at, each in enumerate(x.arrays) for index in np.ndindex(each.shape[:depth])]
    found = [
        np.zeros((*each.shape[:depth], len(route.modules), *route.nothing(at).shape))
        for at, each in enumerate(x.arrays)
    ]
    for module in route.modules:
        messages = [x.arrays[at][(*index, module) if rows else index] for at, index in positions]
        results = route.apply(module, messages, [at for at, _ in positions])
        for (at, index), result in zip(positions, results, strict=True):
            found[at][(*index, module)] = result
    return found


def _weighted(route: Route, values: list[Value]) -> list[Value]:
    """y = Σ over an axis of the weights w · f_j(x_i)."""
    x, weights = values
    outer = route.outer(x.type)
    rows = bool(outer) and outer[-1].name == route.axis.name
    positions = [f"sender {at}" for at in range(len(outer) - rows)]
    of_weights = _aligned(route, outer[: len(positions)], weights.type)
    over = of_weights[weights.type.place(route.settings.get("over", -1))]
    kept = [each for each in dict.fromkeys([*positions, *of_weights, MODULE]) if each != over]
    each = zip(_messages(route, x, rows), map(weights.of, range(len(x.arrays))), strict=True)
    found = [_summed(messages, w, [*positions, MODULE], of_weights, kept) for messages, w in each]
    return [Value(route.gives[0], tuple(found))]


def _aligned(route: Route, positions: tuple[Axis, ...], weights: Type) -> list[str]:
    """The kind of each axis of the weights: that of modules, one of the senders, or one of their own."""
    plain = [at for at, axis in enumerate(positions) if not axis.name]
    names, found = [axis.name for axis in positions], list[str]()
    for place, axis in reversed([*enumerate(weights.axes)]):
        if axis.name == route.axis.name:
            found.insert(0, MODULE)
        elif axis.name and axis.name in names:
            found.insert(0, f"sender {names.index(axis.name)}")
        elif not axis.name and plain:
            found.insert(0, f"sender {plain.pop()}")
        else:
            found.insert(0, f"weight {place}")
    return found


def _summed(messages: Array, weights: Array, of_messages: list[str], of_weights: list[str], kept: list[str]) -> Array:
    """Σ w · message over all axes but those kept, each axis known by what it is; a message's own stay last."""
    lengths = dict(zip(of_messages, messages.shape, strict=False)) | dict(zip(of_weights, weights.shape, strict=True))
    found = np.zeros((*(lengths[each] for each in kept), *messages.shape[len(of_messages) :]))
    for places in product(*(range(length) for length in lengths.values())):
        at = dict(zip(lengths, places, strict=True))
        weight = weights[tuple(at[each] for each in of_weights)]
        found[tuple(at[each] for each in kept)] += weight * messages[tuple(at[each] for each in of_messages)]
    return found


def _choice(route: Route, values: list[Value]) -> list[Value]:
    """Each sender's message goes to the modules of its choice alone, weighted: [..., N, message] to [..., N, result].

    A straight-through gate sends, while a model learns, along all that it weights.
    """
    tokens, weights, scores, choice = values
    straight, examples = route.training and route.settings.get("straight", False), range(len(tokens.arrays))
    edges = [(weights.of(at) if straight else choice.of(at)) != 0 for at in examples]
    gates = [weights.of(at) * edges[at] for at in examples]
    found = [np.zeros((*each.shape[:-1], *route.nothing(at).shape)) for at, each in enumerate(gates)]
    for module in route.modules:
        sending = [(at, tuple(token)) for at in examples for token in np.argwhere(edges[at][..., module])]
        messages = [tokens.arrays[at][token] for at, token in sending]
        results = route.apply(module, messages, [at for at, _ in sending])
        for (at, token), result in zip(sending, results, strict=True):
            found[at][token] += gates[at][(*token, module)] * result
    records = [gates, [*map(scores.of, examples)], [(choice.of(at) != 0) * 1.0 for at in examples]]
    others = [_of_tokens(route, tokens.type, each) for each in records if route.settings.get("record_choice", True)]
    return [Value(type_, tuple(arrays)) for type_, arrays in zip(route.gives, [found, *others], strict=True)]


def _by_ids(route: Route, values: list[Value]) -> list[Value]:
    """Each slot's message goes to the module of its id, times its gate: [..., message] and slots to [..., result]."""
    tokens, ids, gates = values
    depth = len(route.outer(tokens.type))
    found = [np.zeros((*each.shape[:depth], *route.nothing(at).shape)) for at, each in enumerate(tokens.arrays)]
    for at, each in enumerate(tokens.arrays):
        for place in np.ndindex(ids.of(at).shape):
            (result,) = route.apply(int(ids.of(at)[place]), [each[place[:depth]]], [at])
            found[at][place[:depth]] += gates.of(at)[place] * result
    return [Value(route.gives[0], tuple(found))]


def _of_tokens(route: Route, tokens: Type, records: list[Array]) -> list[Array]:
    """Records, with an axis of one sender where the value has none."""
    return records if route.outer(tokens) else [each[None] for each in records]


ROUTERS: dict[str, Callable[[Route, list[Value]], list[Value]]] = {
    "every_module": _every_module,
    "one_module": _one_module,
    "weighted": _weighted,
    "chosen": _choice,
    "chosen_ids": _by_ids,
    "chosen_senders": _choice,
}


def records_of(router: str, settings: Mapping[str, Any]) -> list[str]:
    """The names of a route's records, in the order of its results behind the value."""
    of_choice = router in ("chosen", "chosen_senders") and settings.get("record_choice", True)
    return ["gates", "scores", "selected"] if of_choice else []
