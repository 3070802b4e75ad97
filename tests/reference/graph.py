"""Computes the nodes of a stored graph, one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tests.reference.call import BATCH_OPS, OPS, BatchCall, Call
from tests.reference.frame import Frame
from tests.reference.routes import Route, routed
from tests.reference.values import Array, Type, Unsupported, Value, cut

Record = Mapping[str, Any]
Values = dict[str, list[Value]]
NOT_COMPUTED = ("input", "target", "pool", "router", "output", "loss", "growth", "decision")


def compute(nodes: Sequence[Record], values: Values, frame: Frame) -> Values:
    """The results of all nodes by name, given those of inputs."""
    found, known = dict(values), {node["name"]: node for node in nodes}
    for node in nodes:
        if node["kind"] in NOT_COMPUTED:
            continue
        if node["kind"] not in KINDS:
            raise Unsupported(f'kind of node "{node["kind"]}"')
        operands = [found[source][index] for _, source, index in node["inputs"]]
        results = KINDS[node["kind"]](node, operands, frame, known)
        found[node["name"]] = [_checked(node["name"], each, frame) for each in results]
    return found


def _checked(name: str, value: Value, frame: Frame) -> Value:
    """A value, which is as long as its type says."""
    lengths = frame.lengths[:1] if value.type.over_batch else frame.lengths
    for array, own in zip(value.arrays, lengths, strict=True):
        assert np.shape(array) == value.type.shape(own), f"{name}: {np.shape(array)} is no {value.type} of {own}"
    return value


def _op(node: Record, operands: list[Value], frame: Frame, known: Mapping[str, Record]) -> list[Value]:
    gives = tuple(map(Type.read, node["types"]))
    calls = tuple(_call(node, operands, gives, frame, at) for at in range(len(frame.lengths)))
    if node["is"] in BATCH_OPS:
        owner = node.get("owner", node["name"])
        batch = BatchCall(calls, partial(frame.read_state, owner), partial(frame.move_state, owner))
        return [BATCH_OPS[node["is"]](batch, *operands)]
    if node["is"] == "next_state":
        return [_moved(node, operands[1], frame, known)]
    if node["is"] not in OPS:
        raise Unsupported(f'op "{node["is"]}"')
    once = gives[0].over_batch or (operands and all(each.type.over_batch for each in operands))
    examples = [0] if once else range(len(calls))
    each = [OPS[node["is"]](calls[at], *(operand.of(at) for operand in operands)) for at in examples]
    rows = [tuple(map(np.asarray, one if isinstance(one, tuple) else (one,))) for one in each]
    if len(rows) < len(calls) and not gives[0].over_batch:
        rows = rows * len(calls)
    return [Value(type_, arrays) for type_, arrays in zip(gives, zip(*rows, strict=True), strict=True)]


def _call(node: Record, operands: list[Value], gives: tuple[Type, ...], frame: Frame, at: int) -> Call:
    return Call(
        node=node["name"],
        op=node["is"],
        settings=node["settings"],
        slots=tuple(slot for slot, *_ in node["inputs"]),
        takes=tuple(each.type for each in operands),
        gives=gives,
        training=frame.model.training,
        lengths=frame.lengths[at],
        weight=partial(frame.weight, node.get("owner", node["name"])),
        forced=partial(_forced, node, gives[0], frame, at),
    )


def _forced(node: Record, type_: Type, frame: Frame, at: int) -> Array | None:
    """The random numbers that the caller forces: for a draw the place of each choice, else each number."""
    if node["name"] not in frame.forced:
        return None
    if type_.over_batch:
        return frame.forced[node["name"]]
    if node["is"] == "draw":
        place = type_.place(node["settings"].get("axis", -1))
        type_ = Type("class", (*type_.axes[:place], *type_.axes[place + 1 :]))
    return cut(frame.forced[node["name"]][at], type_, frame.lengths[at])


def _moved(node: Record, value: Value, frame: Frame, known: Mapping[str, Record]) -> Value:
    """A state after a step of training; a frozen one stays."""
    state = known[node["inputs"][0][1]]
    if frame.model.training and not state.get("frozen", False):
        frame.move_state(state.get("owner", state["name"]), "value", value.of(0))
    return Value(Type.read(node["types"][0]), value.arrays)


def _route(node: Record, operands: list[Value], frame: Frame, known: Mapping[str, Record]) -> list[Value]:
    pool, router = known[node["uses"]["pool"]], known[node["uses"]["router"]]
    region = pool["regions"][0]
    types = {each["name"]: each["types"] for each in region["nodes"]}
    ((source, index),) = region["results"]
    named = ".".join(filter(None, [pool.get("inside"), pool.get("shares") or pool["name"]]))
    axis = Type.read({"dtype": "float", "shape": [{"name": named, "size": pool["size"]}]})
    route = Route(
        router=router["is"],
        settings=router["settings"],
        axis=axis.axes[0],
        message=Type.read(types[region["arguments"][0]][0]),
        result=Type.read(types[source][index]),
        gives=tuple(map(Type.read, node["types"])),
        training=frame.model.training,
        lengths=frame.lengths,
        apply=partial(_applied, pool, frame),
    )
    return routed(route, operands)


def _applied(pool: Record, frame: Frame, module: int, messages: list[Array], examples: list[int]) -> list[Array]:
    """A module's results for messages, which are one batch for it."""
    if not messages:
        return []
    region = pool["regions"][module if len(pool["regions"]) > 1 else 0]
    (argument,), ((source, index),) = region["arguments"], region["results"]
    type_ = next(Type.read(each["types"][0]) for each in region["nodes"] if each["name"] == argument)
    within = frame.within(pool["name"], module, examples)
    found = compute(region["nodes"], {argument: [Value(type_, tuple(messages))]}, within)
    return [found[source][index].of(at) for at in range(len(messages))]


def _scan(node: Record, operands: list[Value], frame: Frame, known: Mapping[str, Record]) -> list[Value]:
    """A region run for each step, with the examples that have it; their states stay from their end on."""
    region, carried = node["region"], node["carried"]
    if node.get("final"):
        return _loop(node, operands, frame)
    given = {slot: operand for (slot, *_), operand in zip(node["inputs"], operands, strict=True)}
    sequence, states = region["arguments"][0], region["arguments"][1 : 1 + carried]
    types = {each["name"]: Type.read(each["types"][0]) for each in region["nodes"] if each["types"]}
    everyone = range(len(frame.lengths))
    now = {name: [_start(given.get(name), types[name], frame, at) for at in everyone] for name in states}
    steps = [len(given[sequence].of(at)) for at in everyone]
    stacked: list[list[list[Array]]] = [[[] for _ in everyone] for _ in node["types"]]
    for time in range(max(steps, default=0)):
        there = [at for at in everyone if time < steps[at]]
        values = {name: [each.only(there)] for name, each in given.items()}
        values[sequence] = [Value(types[sequence], tuple(given[sequence].of(at)[time] for at in there))]
        values |= {name: [Value(types[name], tuple(now[name][at] for at in there))] for name in states}
        found = compute(region["nodes"], values, frame.step(time, there, [*types]))
        results = [found[source][index] for source, index in region["results"]]
        for place, at in enumerate(there):
            for name, following in zip(states, results[:carried], strict=True):
                now[name][at] = following.of(place)
            for all_steps, result in zip(stacked, results[carried:], strict=True):
                all_steps[at].append(result.of(place))
    gives = list(map(Type.read, node["types"]))
    return [Value(type_, tuple(_stacked(each, type_, frame))) for type_, each in zip(gives, stacked, strict=True)]


def _loop(node: Record, operands: list[Value], frame: Frame) -> list[Value]:
    """A region run for each step while an entry of an example goes on; the others keep states and final results."""
    region, carried, final = node["region"], node["carried"], node["final"]
    given = {slot: operand for (slot, *_), operand in zip(node["inputs"], operands, strict=True)}
    sequence, states = region["arguments"][0], region["arguments"][1 : 1 + carried]
    types = {each["name"]: Type.read(each["types"][0]) for each in region["nodes"] if each["types"]}
    gives, everyone = list(map(Type.read, node["types"])), range(len(frame.lengths))
    now = {name: [_start(given.get(name), types[name], frame, at) for at in everyone] for name in states}
    found = [[np.zeros(type_.shape(own)) for own in frame.lengths] for type_ in gives]
    steps, going = [len(given[sequence].of(at)) for at in everyone], {at: np.array(True) for at in everyone}
    for time in range(max(steps, default=0)):
        there = [at for at in everyone if time < steps[at] and going[at].any()]
        if not there:
            break
        values = {name: [each.only(there)] for name, each in given.items()}
        values[sequence] = [Value(types[sequence], tuple(given[sequence].of(at)[time] for at in there))]
        values |= {name: [Value(types[name], tuple(now[name][at] for at in there))] for name in states}
        computed = compute(region["nodes"], values, frame.step(time, there, [*types]))
        results = [computed[source][index] for source, index in region["results"]]
        for place, at in enumerate(there):
            goes_on = results[carried].of(place) != 0
            active = np.broadcast_to(going[at], goes_on.shape)
            for name, following in zip(states, results[:carried], strict=True):
                now[name][at] = _select(active, following.of(place), now[name][at])
            for index, result in enumerate(results[carried + 1 :]):
                new, column = result.of(place), found[index][at]
                if index < final:
                    found[index][at] = _select(active, new, column)
                else:
                    column[time] = _select(active, new, np.zeros_like(new))
            going[at] = active & goes_on
    return [Value(type_, tuple(each)) for type_, each in zip(gives, found, strict=True)]


def _select(active: Array, new: Array, old: Array) -> Array:
    """New numbers where an entry goes on; a result without some of its axes goes on where any of them does."""
    pairs = enumerate(zip(active.shape, new.shape, strict=False))
    axes = next((at for at, (n, m) in pairs if n != m), min(active.ndim, new.ndim))
    mask = active.any(axis=tuple(range(axes, active.ndim)))
    return np.where(np.reshape(mask, (*np.shape(mask), *[1] * (new.ndim - axes))), new, old)


def _start(given: Value | None, type_: Type, frame: Frame, at: int) -> Array:
    return np.zeros(type_.shape(frame.lengths[at])) if given is None else given.of(at)


def _stacked(each: list[list[Array]], type_: Type, frame: Frame) -> list[Array]:
    """The steps of each example along time."""
    return [
        np.stack(steps) if steps else np.zeros(type_.shape(own)) for steps, own in zip(each, frame.lengths, strict=True)
    ]


KINDS = {"op": _op, "route": _route, "scan": _scan}
