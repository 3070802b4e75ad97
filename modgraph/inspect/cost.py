"""The cost of an architecture: parameters, multiply-accumulates (MACs) per example, and memory of a training step.

MACs count linear maps, convolutions, the QKᵀ and AV of attention, and the products of routers. They leave out biases,
norms, activations, noise and growth. Attention within a window counts the keys that are seen. `macs` counts every
module on every message that it could get, `active_macs` only those of the choice.
`modgraph.backends.torch.step_memory` measures memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

from modgraph.declare import Signature, product
from modgraph.diagnostics import Diagnostic, ModgraphError, did_you_mean
from modgraph.elaboration.sparsity import find_support
from modgraph.ir import Graph, GrowthNode, Node, OpNode, PoolNode, Result, RouteNode, ScanNode, weights_of
from modgraph.routers import PoolTypes
from modgraph.routers.choice import TokenChoice
from modgraph.routers.weighted import OneModule, Weighted
from modgraph.types import Axis, Misfit, Shape, TensorType


class UnknownAxis(Diagnostic, code="MG128"):
    """`--length` names an axis that the model does not have, or whose size is in the spec."""

    message = 'unknown axis of any length "{name}"'
    help = "{suggestion}"


class DoesNotFitLength(Diagnostic, code="MG129"):
    """An op of the model does not fit the given length, such as one with a learned vector for each position."""

    message = '"{node}" does not fit these lengths: {reason}'
    way_out = "use shorter lengths"


@dataclass(frozen=True)
class Cost:
    """The counts of a model: `parameters`, those that are `trainable`, multiply-accumulates per example (`macs`), and
    those of chosen modules only (`active_macs`).

    `own` has the counts of each name without those below it.
    """

    parameters: int = 0
    trainable: int = 0
    macs: int = 0
    active_macs: int = 0
    own: Mapping[str, Cost] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def nodes(self) -> dict[str, Cost]:
        """The costs by name; each prefix of a name has the sum of what is below it."""
        totals: dict[str, Cost] = {}
        for name, cost in self.own.items():
            for prefix in accumulate(name.split("."), "{}.{}".format):
                totals[prefix] = totals.get(prefix, Cost()) + cost
        return {name: totals[name] for name in sorted(totals, key=natural)}

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, name) + getattr(other, name) for name in COUNTS))

    def __mul__(self, times: int) -> Cost:
        return Cost(*(times * getattr(self, name) for name in COUNTS))

    @property
    def counts(self) -> dict[str, int]:
        """The counts alone, by name."""
        return {name: getattr(self, name) for name in COUNTS}

    def as_table(self) -> list[dict[str, Any]]:
        """List a record for each node and part, the whole model first (its `node` is empty), for `pandas.DataFrame`."""
        rows = {"": self, **self.nodes}
        return [{"node": name, **cost.counts} for name, cost in rows.items()]

    def _repr_html_(self) -> str:
        """Render the counts of the model and of its largest parts for a notebook."""
        from modgraph.inspect.notebook import render, render_table

        parts = [row for row in self.as_table() if row["node"].count(".") < 2 and (row["parameters"] or row["macs"])]
        return render(repr(self), render_table(parts))

    def as_json(self) -> dict[str, Any]:
        """Return the counts, and under `nodes` those of each name, as `modgraph cost --json` prints them."""
        nodes = {name: cost.counts for name, cost in self.nodes.items()}
        return {**self.counts, **({"nodes": nodes} if nodes else {})}


COUNTS = tuple(each.name for each in fields(Cost) if each.name != "own")


def natural(name: str) -> list[tuple[int, int | str]]:
    """Make a sort key that reads numbers in names: `expert.10` comes after `expert.9`."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in name.replace("/", ".").split(".")]


def list_axes_of_any_length(graph: Graph) -> list[str]:
    """List the names of the axes that have no size in the spec."""
    types = (type_ for part in graph.parts() for node in part.graph for type_ in node.types)
    return sorted({axis for type_ in types for axis in type_.padded})


def check_lengths(graph: Graph, lengths: Mapping[str, int]) -> None:
    """Raise `ModgraphError` for lengths of axes that a graph does not have."""
    known = list_axes_of_any_length(graph)
    unknown = [name for name in lengths if name not in known]
    if unknown:
        listed = "its axes without a number: {known}"
        raise ModgraphError(UnknownAxis(name=name, suggestion=did_you_mean(name, known, listed)) for name in unknown)


def compute_cost(graph: Graph, lengths: Mapping[str, int] | None = None) -> Cost:
    """Count what a graph costs. An axis of any length has its length in `lengths`, or 1.

    A node is listed under the name of its weights; each prefix of a name has the sum of what is below it.
    """
    own: dict[str, Cost] = {}
    for name, cost in _macs_of(graph, dict(lengths or {})):
        own[name] = own.get(name, Cost()) + cost
    for weight in weights_of(graph):
        if not weight.buffer:
            trained = 0 if weight.frozen else weight.count
            own[weight.owner] = own.get(weight.owner, Cost()) + Cost(weight.count, trained)
    return replace(sum(own.values(), Cost()), own=own)


def find_unbounded(graph: Graph) -> list[str]:
    """List the pools of routes whose weights are zero outside a choice of any number of modules, such as a threshold.

    Their active MACs count every module.
    """
    graphs = [*(part.graph for part in graph.parts()), *(region.graph for _, region in graph.modules())]
    found: dict[str, None] = {}
    for each in graphs:
        for route in each.nodes_of(RouteNode):
            router, weights = each.declaration_of(route), each.inputs(route.name).get("weights")
            if isinstance(router, TokenChoice) and router.chooses_along == "modules" and weights is not None:
                support = find_support(weights, each)
                if support is not None and support.bound.k is None:
                    found[each.pool_of(route).name] = None
    return [*found]


def _predicting(graph: Graph, results: tuple[Result, ...] = ()) -> list[Node]:
    """Find the nodes that inference needs: without those for noise, growth or training only."""
    read = {result.node for node in graph for result in graph.inputs(node.name).values()}
    ends = (node.name for node in graph if node.name not in read and not isinstance(node, GrowthNode))
    wanted = {*ends} | {result.node for result in results}
    for node in reversed(list(graph)):
        if node.name in wanted and not (isinstance(node, OpNode) and node.op.zero_outside_training):
            only = node.op.outside_training if isinstance(node, OpNode) else ""
            wanted |= {result.node for slot, result in graph.inputs(node.name).items() if only in ("", slot)}
    return [node for node in graph if node.name in wanted or not graph.inputs(node.name)]


def _macs_of(graph: Graph, lengths: Mapping[str, int], results: tuple[Result, ...] = ()) -> Iterator[tuple[str, Cost]]:
    """Count the MACs of each name in a graph: with all modules, and with those of the choice."""
    from modgraph.passes.fuse import list_seen_keys

    seen = list_seen_keys(graph, results)
    for node in _predicting(graph, results):
        match node:
            case OpNode():
                signature = graph.signature(node)
                with _fitting(node.name):
                    axes = signature.declaration.bind(*(fix_lengths(each, lengths) for each in signature.operands)).axes
                macs = product(axes.lead or ()) * int(axes.call(signature.declaration.macs))
                if node.name in seen:
                    keys, place, count = seen[node.name]
                    length = fix_lengths(graph.type_of(keys), lengths).shape[place].size or 1
                    macs = macs // length * min(length, count)
                yield node.owner, Cost(macs=macs, active_macs=macs)
            case PoolNode():
                yield node.name, Cost()
            case RouteNode():
                yield from _route_macs(graph, node, lengths)
            case ScanNode():
                sequence = graph.type_of(graph.inputs(node.name)[node.variable])
                steps = product(fix_lengths(sequence, lengths).shape[:1])
                inside = _macs_of(node.region.graph, lengths, node.region.results)
                yield from ((name, cost * steps) for name, cost in inside)


def _route_macs(graph: Graph, route: RouteNode, lengths: Mapping[str, int]) -> Iterator[tuple[str, Cost]]:
    """Count the MACs of a route: messages count under its pool, decisions under its router."""
    pool, router = graph.pool_of(route), graph.declaration_of(route)
    _, signature = bind_route(graph, route, lengths)
    decisions = product(signature.axes.lead or ())
    messages = decisions * router.count_tokens(signature) if is_first_to_send(graph, route) else 0
    regions, copies = pool.regions, pool.size if pool.is_homogeneous else 1
    if isinstance(router, OneModule):
        regions, copies = (pool.region(router.index),), 1
    insides = (_macs_of(region.graph, lengths, region.results) for region in regions)
    modules = [sum((cost for _, cost in inside), Cost()) for inside in insides]
    every = sum(modules, Cost()) * (messages * copies)
    active = decisions * router.active_messages(signature, pool.size) * max(each.active_macs for each in modules)
    yield pool.name, Cost(macs=every.macs, active_macs=min(every.active_macs, active))
    routing = decisions * signature.axes.call(router.macs)
    yield graph.router_of(route).name, Cost(macs=routing, active_macs=routing)


def bind_route(graph: Graph, route: RouteNode, lengths: Mapping[str, int]) -> tuple[PoolTypes, Signature]:
    """Bind the router of a route, with lengths for axes of any length. Raises `ModgraphError`."""
    pool, router = graph.pool_of(route), graph.declaration_of(route)
    with _fitting(route.name):
        types = PoolTypes(pool.name, pool.axis, fix_lengths(pool.message, lengths), fix_lengths(pool.result, lengths))
        operands = (fix_lengths(each, lengths) for each in graph.signature(route).operands)
        return types, router.bind_pool(types, *operands)


def is_first_to_send(graph: Graph, route: RouteNode) -> bool:
    """Whether a route computes its messages: of routes by weights, only the first that sends a value through a pool."""

    def message_key(each: RouteNode) -> tuple[bool, Result, str]:
        by_weights = isinstance(graph.declaration_of(each), Weighted)
        return by_weights, graph.inputs(each.name)["tokens"], graph.uses(each.name)["pool"]

    own = message_key(route)
    return not own[0] or route == next(each for each in graph.nodes_of(RouteNode) if message_key(each) == own)


@contextmanager
def _fitting(node: str) -> Iterator[None]:
    """Raise `ModgraphError` for a node that the lengths do not fit."""
    try:
        yield
    except Misfit as misfit:
        raise ModgraphError([DoesNotFitLength(node=node, reason=misfit.reason)]) from misfit


def fix_lengths(type_: TensorType, lengths: Mapping[str, int]) -> TensorType:
    """Replace axes of any length in a type by the given lengths, or 1."""

    def fix(axes: Shape) -> Shape:
        return tuple([Axis(lengths.get(axis.lengths, 1), axis.name) if axis.is_padded else axis for axis in axes])

    return replace(type_, shape=fix(type_.shape), ends=fix(type_.ends))


# ------------------------------------------------------------ memory of a training step

MOST = 10**9  # examples of a batch; larger limits are reported as this number


@dataclass(frozen=True)
class TrainingStep:
    """The inputs of a training step: examples, an optimizer's tensors for each weight, the precision.

    `tried_at_once` counts examples that an algorithm runs without gradients between its steps.
    """

    batch: int = 1
    state_per_weight: int = 2
    work_per_weight: int = 0
    precision: str = "float32"
    tried_at_once: int = 0


@dataclass(frozen=True)
class Memory:
    """Bytes of tensors in a training step.

    `activations` is the memory that autograd keeps for the backward pass, `examples` the batch itself, `peak` the
    maximum at any time. The peak may be below the sum of the others, since activations are freed while gradients
    appear. It may be above, since activations have gradients too, and optimizers and algorithms need a workspace.
    """

    batch: int
    weights: int
    gradients: int
    optimizer: int
    examples: int
    activations: int
    peak: int


def last_below(peak: Callable[[int], int], size: int) -> int:
    """Find the largest batch whose peak is at most `size`.

    Peaks are convex in the batch. The line through two of them meets `size` at or behind the answer beyond them, and at
    or before it between them.
    """
    low, high = 1, 2
    if peak(low) > size:
        return 0
    while peak(high) <= size:
        if high >= MOST:
            return MOST
        low, high = high, min(MOST, _interpolate(peak, low, high, size) + 1)
    while high - low > 1:
        guess = min(max(_interpolate(peak, low, high, size), low + 1), high - 1)
        if peak(guess) > size:
            high = guess
        elif peak(guess + 1) > size:
            return guess
        else:
            low = guess + 1
    return low


def _interpolate(peak: Callable[[int], int], low: int, high: int, size: int) -> int:
    """Find the batch at which the line through two peaks meets a size."""
    rise = peak(high) - peak(low)
    return MOST if rise <= 0 else low + (size - peak(low)) * (high - low) // rise
