"""What an architecture costs: parameters, and multiply-accumulates per example.

MACs are those of linear maps, convolutions, attention's QKᵀ and AV, and a router's products; biases, norms and
activations are left out, and so is what only noise or growth needs. `macs` runs every module on every message it could
get, `active_macs` the selected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any

from modgraph.declare import Signature, product
from modgraph.diagnostics import Diagnostic, ModgraphError, did_you_mean
from modgraph.inspect.natural import natural
from modgraph.ir import Graph, GrowthNode, Node, OpNode, PoolNode, Region, Result, RouteNode, ScanNode, weights_of
from modgraph.routers import PoolTypes
from modgraph.types import Axis, Misfit, TensorType


class UnknownAxis(Diagnostic):
    """A length is given for an axis that the model does not have, or that has a number in the spec."""

    code = "MG128"
    message = 'there is no axis "{name}" of any length in this model'
    help = "{suggestion}"


class DoesNotFitLength(Diagnostic):
    """At the length asked for, an op of the model does not fit, such as one with a learned vector for each place."""

    code = "MG129"
    message = '"{node}" does not fit these lengths: {reason}'
    help = "{way_out}"
    way_out = "ask for shorter lengths"


@dataclass(frozen=True)
class Cost:
    """Counts of a whole graph, and by node."""

    parameters: int = 0
    trainable: int = 0
    macs: int = 0
    active_macs: int = 0
    nodes: Mapping[str, Cost] = field(default=(), repr=False)  # type: ignore[arg-type]

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, name) + getattr(other, name) for name in COUNTS))

    @property
    def counts(self) -> dict[str, int]:
        """The counts alone, by name."""
        return {name: getattr(self, name) for name in COUNTS}

    def as_json(self) -> dict[str, Any]:
        nodes = {name: cost.as_json() for name, cost in self.nodes.items()} if self.nodes else {}
        return {**self.counts, **({"nodes": nodes} if nodes else {})}


COUNTS = tuple(each.name for each in fields(Cost) if each.name != "nodes")


def axes_of_any_length(graph: Graph) -> list[str]:
    """The names of the axes that have no number in the spec."""
    return sorted(
        {axis for part in graph.parts() for node in part.graph for type_ in node.types for axis in type_.padded}
    )


def check_lengths(graph: Graph, lengths: Mapping[str, int]) -> None:
    """Raises `ModgraphError` for lengths of axes that a graph does not have."""
    known = axes_of_any_length(graph)
    unknown = [name for name in lengths if name not in known]
    if unknown:
        listed = "its axes without a number: {known}"
        raise ModgraphError(UnknownAxis(name=name, suggestion=did_you_mean(name, known, listed)) for name in unknown)


def cost_of(graph: Graph, lengths: Mapping[str, int] | None = None) -> Cost:
    """The cost of a graph, axes of any length taken at the given lengths (1 where none is given).

    Nodes stand under the names of their weights, each name prefix with the sum of what is below it.
    """
    counts: dict[str, Cost] = {}
    for node in _predicting(graph):
        for name, macs, active in _macs_of(graph, node, dict(lengths or {})):
            counts[name] = counts.get(name, Cost()) + Cost(macs=macs, active_macs=active)
    for weight in weights_of(graph):
        if not weight.buffer:
            trained = 0 if weight.frozen else weight.count
            counts[weight.owner] = counts.get(weight.owner, Cost()) + Cost(weight.count, trained)
    total = sum(counts.values(), Cost())
    return replace(total, nodes=_with_subtotals(counts))


def _predicting(graph: Graph, results: tuple[Result, ...] = ()) -> list[Node]:
    """The nodes of a graph without those that only noise needs, that only decide on growth, and what else is for
    training alone."""
    read = {result.node for node in graph for result in graph.inputs(node.name).values()}
    ends = (node.name for node in graph if node.name not in read and not isinstance(node, GrowthNode))
    wanted = {*ends} | {result.node for result in results}
    for node in reversed(list(graph)):
        if node.name in wanted:
            wanted |= {result.node for slot, result in graph.inputs(node.name).items() if _predicts_with(node, slot)}
    return [node for node in graph if node.name in wanted or not graph.inputs(node.name)]


def _predicts_with(node: Node, slot: str) -> bool:
    if not isinstance(node, OpNode):
        return True
    return not node.op.zero_outside_training and node.op.outside_training in ("", slot)


def _macs_of(graph: Graph, node: Node, lengths: dict[str, int]) -> list[tuple[str, int, int]]:
    """Names with their MACs, of every module and of the selected ones."""
    match node:
        case OpNode():
            macs = _macs(fixed_signature(graph.signature(node), lengths, node.name))
            return [(node.owner, macs, macs)]
        case PoolNode():
            return [(node.name, 0, 0)]
        case RouteNode():
            return _route_macs(graph, node, lengths)
        case ScanNode():
            steps = product(fixed(node.types[0], lengths).shape[:1])
            inside = _predicting(node.region.graph, node.region.results)
            inner = [each for one in inside for each in _macs_of(node.region.graph, one, lengths)]
            return [(name, steps * macs, steps * active) for name, macs, active in inner]
        case _:
            return []


def _route_macs(graph: Graph, route: RouteNode, lengths: dict[str, int]) -> list[tuple[str, int, int]]:
    """A route's messages, counted under its pool, and its decisions, under its router."""
    pool, router = graph.pool_of(route), graph.declaration_of(route)
    signature = fixed_route_signature(graph, route, lengths)
    decisions = product(signature.axes.lead or ())
    messages = decisions * router.senders_in(signature)
    messages *= graph.same_messages(route)[0] == route  # the others take them from the first
    modules = [_module_macs(region, lengths) for region in pool.regions]
    times = messages * (pool.size if pool.alike else 1)
    every, of_all = (times * sum(each) for each in zip(*modules, strict=True))
    chosen = decisions * router.active_messages(signature, pool.size) * max(active for _, active in modules)
    routing = decisions * signature.axes.call(router.macs)
    return [
        (pool.name, every, min(of_all, chosen)),
        (graph.router_of(route).name, routing, routing),
    ]


def _module_macs(region: Region, lengths: dict[str, int]) -> tuple[int, int]:
    """Those of one message, of every module of pools inside and of the selected ones."""
    nodes = _predicting(region.graph, region.results)
    found = [each for node in nodes for each in _macs_of(region.graph, node, lengths)]
    return sum(macs for _, macs, _ in found), sum(active for _, _, active in found)


def fixed_signature(signature: Signature, lengths: Mapping[str, int], node: str) -> Signature:
    """A node's signature with axes of any length at the given ones, or 1. Raises `ModgraphError`."""
    operands = [fixed(type_, lengths) for type_ in signature.operands]
    with _fitting(node):
        bound: Signature = signature.declaration.bind(*operands)
    return bound


def fixed_route_signature(graph: Graph, route: RouteNode, lengths: Mapping[str, int]) -> Signature:
    """A route's signature with axes of any length at the given ones, or 1. Raises `ModgraphError`."""
    pool, router = graph.pool_of(route), graph.declaration_of(route)
    operands = [fixed(type_, lengths) for type_ in graph.signature(route).operands]
    with _fitting(route.name):
        types = PoolTypes(pool.name, pool.axis, fixed(pool.message, lengths), fixed(pool.result, lengths))
        return router.bind_pool(types, *operands)


@contextmanager
def _fitting(node: str) -> Iterator[None]:
    """Tells of a node that the lengths do not fit. Raises `ModgraphError`."""
    try:
        yield
    except Misfit as misfit:
        raise ModgraphError([DoesNotFitLength(node=node, reason=misfit.reason)]) from misfit


def fixed(type_: TensorType, lengths: Mapping[str, int]) -> TensorType:
    """A type with axes of any length at the given ones, or 1."""
    shape = (Axis(lengths.get(axis.name, 1), axis.name) if axis.is_padded else axis for axis in type_.shape)
    return type_.with_shape(tuple(shape))


def _macs(signature: Signature) -> int:
    return product(signature.axes.lead or ()) * int(signature.axes.call(signature.declaration.macs))


def _with_subtotals(counts: dict[str, Cost]) -> dict[str, Cost]:
    """The costs by name, and for every prefix of a name the sum of what is below it."""
    totals: dict[str, Cost] = {}
    for name, cost in counts.items():
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            prefix = ".".join(parts[:end])
            totals[prefix] = totals.get(prefix, Cost()) + cost
    return {name: totals[name] for name in sorted(totals, key=natural)}
