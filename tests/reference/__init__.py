"""An interpreter of stored graphs in numpy that shares nothing with modgraph.

It is written from `docs/language.md` and `docs/reference.md` and reads only the JSON of a graph. Tests compare whatever
modgraph computes with it. It is obvious, not fast: 64 bits, one example after another, each cut to its real length, so
that there is no padding and no mask; routes send one message after another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.reference import (  # each registers ops
    along_axis,
    axes,
    dot_product,
    edges,
    elementwise,
    ids,
    image,
    layers,
    neighbours,
    recurrent,
    statistics,
)
from tests.reference.frame import Frame, Model
from tests.reference.graph import Record, Values, compute
from tests.reference.losses import LABELS, has_label
from tests.reference.routes import records_of
from tests.reference.values import Array, Type, Unsupported, Value, cut

__all__ = ["Interpreted", "Unsupported", "interpret"]


@dataclass(frozen=True)
class Interpreted:
    """The results of one batch, batch first: outputs by label, losses by name, records of routes by `route.record`, and
    the states after a training step, by the names of their weights.

    Padding of outputs and records is zero; `real` says by the same names which places are none.
    """

    outputs: dict[str, Array]
    losses: dict[str, float]
    routing: dict[str, Array]
    states: dict[str, Array]
    mask: dict[str, Array]


def interpret(
    record: Record,
    weights: Mapping[str, Array],
    batch: Mapping[str, Array],
    *,
    training: bool = False,
    draws: Mapping[str, Array] | None = None,
) -> Interpreted:
    """Compute a stored graph on a batch of inputs, targets and lengths; lengths left out are full.

    `draws` has the random numbers of training, by the name of the node, batch first and, inside a scan, time second:
    for `draw` the place of each choice, for noise standard normal numbers, for `dropout` ones where values stay.
    Raises `Unsupported` for what it does not know.
    """
    nodes = _needed(record["nodes"])
    given = {node["name"]: Type.read(node["types"][0]) for node in nodes if node["kind"] in ("input", "target")}
    longest = _longest(given, batch)
    lengths = _lengths(given, batch, longest)
    model = Model({name: np.asarray(each, np.float64) for name, each in weights.items()}, training)
    with np.errstate(all="ignore"):
        values = compute(nodes, _given(given, batch, lengths), Frame(model, tuple(lengths), draws or {}))
    outputs = {node["label"]: _source(node, values) for node in nodes if node["kind"] == "output"}
    routing = dict(_records(nodes, values))
    padded = {name: _padded(value, lengths, longest) for name, value in (outputs | routing).items()}
    return Interpreted(
        outputs={name: padded[name][0] for name in outputs},
        losses={node["name"]: _loss(node, nodes, values) for node in nodes if node["kind"] == "loss"},
        routing={name: padded[name][0] for name in routing},
        states=model.states,
        mask={name: mask for name, (_, mask) in padded.items()},
    )


def _needed(nodes: list[Record]) -> list[Record]:
    """The nodes that outputs, losses, records and next states are computed from; nothing else runs."""
    known = {node["name"]: node for node in nodes}
    kinds = ("input", "target", "pool", "router", "output", "loss", "route", "decision")
    kept = {node["name"] for node in nodes if node["kind"] in kinds or node.get("is") == "next_state"}
    kept |= {node["name"] for node in nodes if node["kind"] == "scan" and [*_scan_records(node)]}
    found = {each for name in kept for each in _behind(name, known)}
    return [node for node in nodes if node["name"] in found]


def _longest(given: Mapping[str, Type], batch: Mapping[str, Array]) -> dict[str, int]:
    """How long each axis of any length is in the arrays that are given."""
    found = {}
    for name, type_ in given.items():
        for at, axis in enumerate(type_.axes, start=1):
            if axis.size is None and name in batch:
                found[axis.of or axis.name] = batch[name].shape[at]
    return found


def _lengths(given: Mapping[str, Type], batch: Mapping[str, Array], longest: dict[str, int]) -> list[dict[str, int]]:
    """How long each example is along each axis of any length."""
    count = next(len(batch[name]) for name in given if name in batch)
    known = {type_.of: batch[name] for name, type_ in given.items() if type_.dtype == "length" and name in batch}
    return [longest | {axis: int(each[at]) for axis, each in known.items()} for at in range(count)]


def _given(given: Mapping[str, Type], batch: Mapping[str, Array], lengths: list[dict[str, int]]) -> Values:
    """Lengths, inputs and targets, those that are given, each example cut to its length."""
    found: Values = {}
    for name, type_ in given.items():
        if type_.dtype == "length":
            found[name] = [Value(type_, tuple(np.asarray(own[type_.of]) for own in lengths))]
        elif name in batch:
            numbers = np.asarray(batch[name], np.float64 if type_.dtype == "float" else np.int64)
            found[name] = [Value(type_, tuple(cut(x, type_, own) for x, own in zip(numbers, lengths, strict=True)))]
    return found


def _source(node: Record, values: Values) -> Value:
    ((_, source, index),) = node["inputs"]
    found: Value = values[source][index]
    return found


def _padded(value: Value, lengths: list[dict[str, int]], longest: dict[str, int]) -> tuple[Array, Array]:
    """A value as one array, zero in padding, and where it is no padding."""
    if value.type.over_batch:
        return value.arrays[0], np.ones_like(value.arrays[0], dtype=np.bool_)
    shape = (len(value.arrays), *value.type.shape(longest))
    found, mask = np.zeros(shape), np.zeros(shape, np.bool_)
    for at, own in enumerate(lengths):
        there: Any = (at, *map(slice, value.type.shape(own)))
        found[there], mask[there] = value.arrays[at], True
    return found, mask


def _records(nodes: list[Record], values: Values) -> Iterator[tuple[str, Value]]:
    """What each route recorded, by `route.record`; of one in a scan, with time in front."""
    for node in nodes:
        if node["kind"] in ("route", "decision"):
            yield from ((name, values[source][index]) for name, (source, index) in _results(node, nodes))
        elif node["kind"] == "scan":
            yield from ((name, values[node["name"]][index]) for name, index in _scan_records(node))


def _scan_records(scan: Record) -> Iterator[tuple[str, int]]:
    """The records of the routes in a scan, and in scans in its steps, and which of its results each is."""
    inside, final = scan["region"]["nodes"], scan.get("final", 0)
    results = scan["region"]["results"][scan["carried"] + (final > 0) :]
    for node in inside:
        if node["kind"] == "scan":
            yield from ((name, results.index([node["name"], index], final)) for name, index in _scan_records(node))
        if node["kind"] in ("route", "decision"):
            yield from ((name, results.index(result, final)) for name, result in _results(node, inside))


def _results(route: Record, nodes: list[Record]) -> Iterator[tuple[str, list[Any]]]:
    """What users call each record of a route, and the result that it is: of a decision, what flows in by its name."""
    label = route.get("label") or route["name"]
    if route["kind"] == "decision":
        names = [name for name, _ in route.get("records", ())]
        yield from ((f"{label}.{slot}", source) for slot, *source in route["inputs"] if slot in names)
        return
    router = next(node for node in nodes if node["name"] == route["uses"]["router"])
    for index, name in enumerate(records_of(router["is"], router["settings"]), start=1):
        yield f"{label}.{name}", [route["name"], index]


def _loss(node: Record, nodes: list[Record], values: Values) -> float:
    """The mean over the batch: over the examples that have a label at all, where labels may be missing."""
    loss = _source(node, values)
    if loss.type.over_batch:
        return float(loss.arrays[0])
    counts = _labelled(node, nodes, values)
    each = [float(x) for at, x in enumerate(loss.arrays) if counts is None or counts[at]]
    return sum(each) / max(1, len(each))


def _labelled(node: Record, nodes: list[Record], values: Values) -> list[bool] | None:
    """Which examples have a label of a loss that compares with nothing but targets whose labels may be missing."""
    known = {each["name"]: each for each in nodes}
    behind = [known[name] for name in _behind(node["name"], known)]
    targets = {each["name"] for each in behind if each["kind"] == "target"}
    compared = {name: _comparisons(name, nodes) for name in targets}
    if not targets or any(each is None for each in compared.values()):
        return None
    found = [False] * len(values[min(targets)][0].arrays)
    for name, comparisons in compared.items():
        for each in comparisons or ():
            for at, target in enumerate(values[name][0].arrays):
                found[at] |= has_label(each["settings"], target)
    return found


def _behind(name: str, known: Mapping[str, Record]) -> set[str]:
    """All that a node is computed from."""
    seen, pending = {name}, [name]
    while pending:
        new = {source for _, source, _ in known[pending.pop()].get("inputs", ())} - seen
        seen |= new
        pending += new
    return seen


def _comparisons(target: str, nodes: list[Record]) -> list[dict[str, Any]] | None:
    """The ops that compare with a target, if nothing else reads it and all of them know that labels may be missing."""
    readers = [(node, slot) for node in nodes for slot, source, _ in node.get("inputs", ()) if source == target]
    knows = all(
        LABELS.get(node.get("is", "")) == slot and node["settings"].get("missing", False) for node, slot in readers
    )
    return [dict(node) for node, _ in readers] if knows and readers else None
