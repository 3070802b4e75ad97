"""Holds regions against the nodes that have them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from modgraph.ir.graph import Graph
from modgraph.ir.invalid import InvalidGraph, ask
from modgraph.ir.node import InputNode, Node, OpNode, PoolNode, RouteNode, RouterNode, ScanNode
from modgraph.ir.part import Part
from modgraph.ir.region import Region, scan_types
from modgraph.ir.verify.names import owners_of, verify_owners
from modgraph.types import Misfit, TensorType

Check = Callable[[Part, Node], None]


def verify_region(region: Region, holder: str, field: str) -> None:
    """A region takes its arguments, each once, and gives values that it has."""
    inputs = ", ".join(region.graph.input_types)
    listed = sorted(region.arguments) == sorted(region.graph.input_types)
    ask(listed, f"the arguments are those of its nodes that are inputs: {inputs}", holder, field)
    for result in region.results:
        there = result.node in region.graph and result.index < len(region.graph[result.node].types)
        ask(there, f"it gives {result}, which is not there", holder, field)


def verify_pool(pool: PoolNode, verify_node: Check) -> None:
    """A pool has modules of one interface, made of ops and of pools with their routes."""
    ask(len(pool.regions) in (1, pool.size), "it has one region, or one for each module", pool.name, "regions")
    ask(pool.alike or not pool.grown, "only a pool of modules of one kind grows", pool.name, "grown")
    for at, region in enumerate(pool.regions):
        verify_region(region, pool.name, "regions")
        single = len(region.arguments) == len(region.results) == 1
        ask(single, "a module has one argument and one result", pool.name, "regions")
        fits = region.argument_types == (pool.message,) and region.result_types[0].meets(pool.result)
        ask(fits, "its modules have unlike types", pool.name, "regions")
        for node in region.graph:
            inside = isinstance(node, InputNode | OpNode | PoolNode | RouterNode | RouteNode)
            ask(inside, f"a module is made of ops and pools, and {node.name} is none", pool.name, "regions")
            _in_pool(pool, Part(region.graph), node, verify_node)
            if isinstance(node, PoolNode):
                path = pool.path_of(at)
                ask(node.inside == path, f"{pool.name} > {node.name} is inside {path}", node.name, "inside")
        verify_owners(owners_of(Part(region.graph)))


def _in_pool(pool: PoolNode, part: Part, node: Node, verify_node: Check) -> None:
    """A node of a module, told with the pool that it is in."""
    try:
        verify_node(part, node)
    except InvalidGraph as error:
        raise InvalidGraph(error.reason, f"{pool.name} > {error.node}", error.field) from error


def verify_scan(graph: Graph, scan: ScanNode, verify_node: Check) -> None:
    """A scan's region takes what flows in, carries its states on, and gives its results."""
    region, given = scan.region, graph.inputs(scan.name)
    verify_region(region, scan.name, "region")
    for node in region.graph:
        verify_node(Part(region.graph, scan), node)
    most = min(len(region.arguments) - 1, len(region.results) - 1)
    ask(scan.carried <= most, f"its region can carry {max(most, 0)} at most", scan.name, "carried")
    types = {slot: graph.type_of(result) for slot, result in given.items()}
    sequence = types.get(scan.variable)
    if sequence is None or not sequence.shape or sequence.per == "batch":
        raise InvalidGraph(f"a sequence flows into its slot {scan.variable}", scan.name, "inputs")
    _slots(scan, [*given])
    _arguments(scan, types | {scan.variable: sequence.with_shape(sequence.shape[1:])})
    _states(scan)
    try:
        follow = scan_types(scan, sequence.shape[0])
    except Misfit as misfit:
        raise InvalidGraph(misfit.reason, scan.name, "region") from misfit
    ask(follow == scan.types, f"its region gives {', '.join(map(str, follow))}", scan.name, "types")
    for decision in Part(region.graph, scan).decisions():
        records = {*decision.inside.values()}
        ask(records <= {*scan.stacked}, f"it lacks what {decision.name} records", scan.name, "region")
    verify_lengths(graph, scan, [sequence.shape[0].name] if sequence.shape[0].is_padded else [])


def verify_lengths(graph: Graph, node: Node, axes: Iterable[str]) -> None:
    """A node is told the lengths of the axes whose padding it must leave out, and of no other."""
    lengths, wanted = graph.lengths(node.name), sorted(axes)
    ask(sorted(lengths) == wanted, f"it is told the lengths of {', '.join(wanted) or 'nothing'}", node.name, "lengths")
    for axis, result in lengths.items():
        type_ = graph.type_of(result)
        ask(type_ == TensorType("length", of=axis), f"{result} tells no lengths of {axis}", node.name, "lengths")


def _slots(scan: ScanNode, slots: list[str]) -> None:
    """Every argument but a state has something that flows in."""
    wanted = {scan.variable, *scan.captured}
    in_order = [name for name in scan.region.arguments if name in slots]
    ask(slots == in_order, "it takes the arguments of its region", scan.name, "inputs")
    missing = sorted(wanted - {*slots})
    ask(not missing, f"nothing flows into {', '.join(missing)}", scan.name, "inputs")


def _arguments(scan: ScanNode, outside: dict[str, TensorType]) -> None:
    for name, type_ in zip(scan.region.arguments, scan.region.argument_types, strict=True):
        flows = outside.get(name, type_)
        ask(flows.meets(type_), f"{name} is {type_} inside, and {flows} flows in", scan.name, "region")


def _states(scan: ScanNode) -> None:
    for state in scan.states:
        (type_,) = scan.region.graph[state].types
        sound = type_.dtype == "float" and not type_.padded and type_.per == "example"
        ask(sound, f"{type_} cannot be carried: a state is float, each axis with a number", state, "types")
