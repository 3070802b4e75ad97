"""Checks regions against their nodes, and the owners of weights against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from modgraph.ir.analysis.affine import NotAffine
from modgraph.ir.analysis.recurrences import find_recurrences
from modgraph.ir.graph import Graph
from modgraph.ir.invalid import InvalidGraph, ask
from modgraph.ir.node import InputNode, Node, OpNode, PoolNode, RouteNode, RouterNode, ScanNode
from modgraph.ir.part import Part, Region, infer_scan_types
from modgraph.types import Misfit

Check = Callable[[Part, Node], None]


def verify_pool(pool: PoolNode, verify_node: Check) -> None:
    """Check that the modules of a pool have one interface and contain only ops, pools and routes."""
    ask(len(pool.regions) in (1, pool.size), "it has one region, or one for each module", pool.name, "regions")
    ask(pool.is_homogeneous or not pool.grown, "only a pool of modules of one kind grows", pool.name, "grown")
    ask(pool.is_homogeneous or not pool.stored, "only modules of one kind are stored together", pool.name, "stored")
    for at, region in enumerate(pool.regions):
        part = Part(region.graph)
        _verify_region(region, pool.name, "regions")
        single = len(region.arguments) == len(region.results) == 1
        ask(single, "a module has one argument and one result", pool.name, "regions")
        fits = region.argument_types == (pool.message,) and region.result_types[0].meets(pool.result)
        ask(fits, "its modules have unlike types", pool.name, "regions")
        for node in region.graph:
            inside = isinstance(node, InputNode | OpNode | PoolNode | RouterNode | RouteNode)
            ask(inside, f"a module is made of ops and pools, and {node.name} is none", pool.name, "regions")
            try:
                verify_node(part, node)
            except InvalidGraph as error:
                raise InvalidGraph(error.reason, f"{pool.name} > {error.node}", error.field) from error
            if isinstance(node, PoolNode):
                path = pool.path_of(at)
                ask(node.inside == path, f"{pool.name} > {node.name} is inside {path}", node.name, "inside")
        verify_owners(list_owners(part))


def verify_scan(graph: Graph, scan: ScanNode, verify_node: Check) -> None:
    """Check that a scan's region takes the scan's operands, updates its states, and returns its results."""
    name, region, part = scan.name, scan.region, Part(scan.region.graph, scan)
    _verify_region(region, name, "region")
    for node in region.graph:
        verify_node(part, node)
    most = min(len(region.arguments) - 1, len(region.results) - 1)
    ask(scan.carried <= most, f"its region can carry {max(most, 0)} at most", name, "carried")
    most = max(len(region.results) - scan.carried - 1, 0)
    ask(scan.final <= most, f"its region can hold {most} at most", name, "final")
    types = {slot: graph.type_of(result) for slot, result in graph.inputs(name).items()}
    sequence = types.get(scan.variable)
    if sequence is None or not sequence.shape or sequence.per == "batch":
        raise InvalidGraph(f"a sequence flows into its slot {scan.variable}", name, "inputs")
    in_order = [argument for argument in region.arguments if argument in types]
    ask([*types] == in_order, "it takes the arguments of its region", name, "inputs")
    missing = sorted({scan.variable, *scan.captured} - {*types})
    ask(not missing, f"nothing flows into {', '.join(missing)}", name, "inputs")
    types[scan.variable] = sequence.with_shape(sequence.shape[1:])
    for argument, type_ in zip(region.arguments, region.argument_types, strict=True):
        flows = types.get(argument, type_)
        ask(flows.meets(type_), f"{argument} is {type_} inside, and {flows} flows in", name, "region")
    for state in scan.states:
        (type_,) = region.graph[state].types
        sound = type_.dtype == "float" and type_.per == "example" and (state in in_order or not type_.padded)
        ask(sound, f"{type_} cannot be carried: a state is float, and one of any length has a start", state, "types")
    if scan.going is not None:
        type_ = region.graph.type_of(scan.going)
        sound = type_.dtype == "float" and type_.per == "example"
        ask(sound, f"{type_} cannot end a scan: that is float of each example", name, "final")
    try:
        follow = infer_scan_types(scan, sequence.shape[0])
    except Misfit as misfit:
        raise InvalidGraph(misfit.reason, name, "region") from misfit
    ask(follow == scan.types, f"its region gives {', '.join(map(str, follow))}", name, "types")
    if scan.lowering:
        try:
            find_recurrences(scan)
        except NotAffine as reason:
            raise InvalidGraph(f"its steps run one after another: {reason}", name, "lowering") from reason
    for decision in region.graph.decisions():
        ask(
            {*decision.results.values()} <= {*scan.stacked[scan.final :]},
            f"it lacks what {decision.name} records",
            name,
            "region",
        )


def _verify_region(region: Region, holder: str, field: str) -> None:
    """Check that a region takes its arguments, each once, and returns values that it has."""
    inputs = region.graph.input_types
    listed = sorted(region.arguments) == sorted(inputs)
    ask(listed, f"the arguments are those of its nodes that are inputs: {', '.join(inputs)}", holder, field)
    for result in region.results:
        there = result.node in region.graph and result.index < len(region.graph[result.node].types)
        ask(there, f"it gives {result}, which is not there", holder, field)


class Owner(NamedTuple):
    """A name of weights, the node that claims it, and all facts that must be equal for all claims."""

    name: str
    node: str
    facts: tuple[Any, ...]


def list_owners(part: Part) -> Iterator[Owner]:
    """List the names below which the nodes of a graph have weights, or might have some."""
    graph = part.graph
    for node in graph:
        match node:
            case OpNode(op=op):
                known = op.settings()  # each use has its own axes
                kept = {} if op.takes_names else op.values()
                settings = {word: value for word, value in kept.items() if not known[word].bounds.get("axis")}
                weights = tuple(graph.signature(node).weight_shapes.items())
                yield Owner(node.owner, node.name, (op.name, settings, weights, node.initial, node.frozen))
            case PoolNode():
                yield Owner(node.name, node.name, ("pool",))
            case RouteNode():
                weights = tuple(graph.signature(node).weight_shapes.items())
                yield Owner(graph.router_of(node).name, node.name, ("router", weights))


def verify_owners(owners: Iterable[Owner]) -> None:
    """Check that nodes with one name of weights use the same weights, and that no such name lies below another."""
    known: dict[str, Owner] = {}
    for owner in owners:
        first = known.setdefault(owner.name, owner)
        ask(first.facts == owner.facts, f"{first.node} has other weights of the name {owner.name}", owner.node, "owner")
    for name, owner in known.items():
        parts = name.split(".")
        above = [".".join(parts[:end]) for end in range(1, len(parts))]
        blocked = next((each for each in above if each in known), "")
        ask(not blocked, f"weights of {name} would lie below those of {blocked}", owner.node, "owner")
