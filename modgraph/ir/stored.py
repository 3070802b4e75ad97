"""What is asked of a stored graph before it is trusted: kinds of values, references, slots, and types that follow."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from modgraph.ir.graph import Graph
from modgraph.ir.node import (
    InputNode,
    LossNode,
    Node,
    OpNode,
    OutputNode,
    PoolNode,
    Result,
    RouteNode,
    RouterNode,
    ScanNode,
    TargetNode,
)
from modgraph.ir.region import Region, scan_types
from modgraph.types import Misfit, TensorType

NAME = re.compile(r"[\w.]+")
DEEPEST = 100  # lists and objects within each other
MOST_MODULES = 65_536  # of a pool


class UnreadableGraph(ValueError):
    """Stored JSON does not describe a graph that this version knows."""


def ask(holds: bool, reason: str) -> None:
    """Raises `UnreadableGraph` for the reason where something does not hold."""
    if not holds:
        raise UnreadableGraph(reason)


def check_depth(record: Any) -> None:
    level = [record]
    for _ in range(DEEPEST):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise UnreadableGraph("it is nested too deep")


def name_of(value: Any) -> str:
    ask(isinstance(value, str) and NAME.fullmatch(value) is not None, f"{str(value)[:80]!r} is no name")
    return str(value)


def names_of(values: Any) -> tuple[str, ...]:
    ask(isinstance(values, list) and len(set(map(str, values))) == len(values), "names are not a list of unlike ones")
    return tuple(map(name_of, values))


def flag_of(value: Any) -> bool:
    ask(isinstance(value, bool), f"{str(value)[:80]!r} is neither true nor false")
    return bool(value)


def whole_of(value: Any, least: int, most: int) -> int:
    ask(type(value) is int and least <= value <= most, f"{str(value)[:80]!r} is no number from {least} to {most}")
    return int(value)


def type_of(record: Any) -> TensorType:
    """A type, as `TensorType.as_json` wrote it."""
    ask(isinstance(record, dict) and isinstance(record.get("shape"), list), "a type is no object with a shape")
    type_ = TensorType.from_json(record)
    sound = type_.dtype in ("float", "token", "class", "length") and type_.per in ("example", "batch")
    sound = sound and (type_.size is not None) == (type_.dtype in ("token", "class"))
    for length in (*type_.shape, *([type_.size] if type_.size is not None else [])):
        named = isinstance(length, str) and length.isidentifier()
        sound = sound and (named or (isinstance(length, int) and not isinstance(length, bool) and length >= 1))
    ask(sound and not isinstance(type_.size, str), f"{str(record)[:80]} is no type")
    return type_


def check_references(graph: Graph, node: Node, inputs: Mapping[str, Result], uses: Mapping[str, str]) -> None:
    """A node has a name of its own, and all that it reads or uses stands before it."""
    ask(node.name not in graph, f"two nodes are called {node.name}")
    for result in inputs.values():
        ask(result.node in graph, f"{node.name} reads {result.node}, which is not there")
        whole_of(result.index, 0, len(graph[result.node].types) - 1)
    kinds = {"pool": PoolNode, "router": RouterNode} if isinstance(node, RouteNode) else {}
    ask(uses.keys() == kinds.keys(), f"{node.name} uses {', '.join(uses) or 'nothing'}")
    for role, used in uses.items():
        ask(used in graph and isinstance(graph[used], kinds[role]), f"{node.name} uses {used}, which is no {role}")


def check_node(graph: Graph, node: Node) -> None:
    """A node has the slots and the types that follow from what it is and reads. Raises `UnreadableGraph`."""
    slots = set(graph.inputs(node.name))
    match node:
        case InputNode() | TargetNode():
            ask(not slots and len(node.types) == 1, f"{node.name} is no {node.kind}")
        case OutputNode() | LossNode():
            ask(slots == {"x"} and not node.types, f"{node.name} is no {node.kind}")
        case OpNode() | RouteNode():
            _check_signature(graph, node, slots)
        case RouterNode():
            ask(not slots and not node.types, f"{node.name} is no router")
        case PoolNode():
            ask(not slots and not node.types, f"{node.name} is no pool")
            _check_regions(node)
        case ScanNode():
            _check_scan(graph, node)


def _check_signature(graph: Graph, node: OpNode | RouteNode, slots: set[str]) -> None:
    """Op or router, bound to what flows in, gives the node's types."""
    declaration: Any = node.op if isinstance(node, OpNode) else graph.router_of(node).router
    try:
        signature = graph.signature(node)
        signature.weight_shapes()
    except Misfit as misfit:
        raise UnreadableGraph(f"{node.name}: {misfit.reason}") from misfit
    ask(signature.results == node.types, f"{node.name} has other types than follow from what it reads")
    count = len(slots - {"length"})
    if declaration.variadic:
        known = {str(at) for at in range(count)}
    else:
        names = [operand.name for operand in declaration.operands]
        known = set(names if len(names) == count else ["left", "right"][:count])
    masked = {"length"} if declaration.masked(signature.axes) is not None else set()
    ask(slots == known | masked, f"{node.name} has other slots than it takes")


def check_region(region: Region) -> None:
    """A region takes its arguments, each once, and gives values that it has."""
    ask({*region.arguments} == {*region.graph.input_types}, "the arguments of a region are its inputs")
    ask(bool(region.arguments) and bool(region.results), "a region takes something, and gives something")
    for result in region.results:
        ask(result.node in region.graph, f"a region gives {result.node}, which is not there")
        whole_of(result.index, 0, len(region.graph[result.node].types) - 1)


def _check_regions(pool: PoolNode) -> None:
    ask(len(pool.regions) in (1, pool.size), "a pool has one region, or one for each module")
    for region in pool.regions:
        inside = all(isinstance(node, InputNode | OpNode) for node in region.graph)
        sound = len(region.arguments) == len(region.results) == 1
        ask(inside and sound, "a module of a pool has one argument, one result, and ops")
        types = *region.argument_types, *region.result_types
        ask(types == (pool.message, pool.result), "the modules of a pool have unlike types")


def _check_scan(graph: Graph, scan: ScanNode) -> None:
    """Its region takes what flows in, carries its states on, and gives its results."""
    region, given = scan.region, graph.inputs(scan.name)
    ask(not any(isinstance(node, TargetNode | OutputNode | LossNode) for node in region.graph), "a step has no ends")
    types = {slot: graph.type_of(result) for slot, result in given.items()}
    sequence = types.get(scan.variable)
    ask(sequence is not None and bool(sequence.shape), "a scan runs over a sequence")
    assert sequence is not None
    axis, *step = sequence.shape
    inside = dict(zip(region.arguments, region.argument_types, strict=True))
    ask(inside[scan.variable] == sequence.with_shape(tuple(step)), "a scan's variable is one step")
    slots = {scan.variable, *scan.captured} | ({"length"} if isinstance(axis, str) else set())
    ask(slots <= set(given) <= slots | set(scan.states), "a scan has other slots than its region has arguments")
    for name in (*scan.states, *scan.captured):
        ask(types.get(name, inside[name]) == inside[name], f"{name} has another type inside")
    try:
        ask(scan_types(scan, axis) == scan.types, "a scan has other types than follow from its region")
    except Misfit as misfit:
        raise UnreadableGraph(f"{scan.name}: {misfit.reason}") from misfit
    for route in region.graph.of_kind(RouteNode):
        records = set(region.graph.recorded(route).values())
        ask(records <= set(scan.stacked), f"a scan lacks what {route.name} records")


def check_shared(graph: Graph) -> None:
    """What a scan shares with the graph around it or with another scan is the same thing."""
    known: dict[str, Node] = {}
    for node in (node for part in graph.parts() for node in part.graph):
        ask(not isinstance(node, ScanNode) or node.name in graph, "a scan stands in a scan")
        if isinstance(node, PoolNode | RouterNode):
            ask(known.setdefault(node.name, node) == node, f"{node.name} is two things")
