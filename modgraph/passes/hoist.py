"""Hoist loop-invariant ops out of scans, and mark batch-invariant nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from modgraph.frozen import change_fields, replace_fields
from modgraph.ir import (
    Built,
    Change,
    Graph,
    Part,
    Region,
    Rule,
    batch_invariant,
    is_array,
    is_function,
    prune_region,
    rewrite_graph,
)
from modgraph.ir.node import InputNode, Inputs, Node, OpNode, Result, RouteNode, ScanNode
from modgraph.ops.array import Constant
from modgraph.passes.infrastructure import Pass
from modgraph.routers import GATHERED


@dataclass(frozen=True)
class Hoist(Pass):
    """Move ops out of a scan if they read only values from outside, or results of such ops; constant arrays too.

    A scan keeps arguments that nothing reads any more: the order of the nodes that compute them is the order of noise.
    """

    name: ClassVar[str] = "hoist"

    def __call__(self, graph: Graph) -> Graph:
        return rewrite_graph(graph, _hoist) if graph.nodes_of(ScanNode) else graph


def find_invariant_ops(scan: ScanNode) -> dict[str, OpNode]:
    """The loop-invariant ops of a scan's region, in order."""
    graph, found = scan.region.graph, dict[str, OpNode]()
    for node in graph.nodes_of(OpNode):
        read = {each.node for each in (*graph.inputs(node.name).values(), *graph.lengths(node.name).values())}
        is_outside = bool(read) and read <= {*scan.captured, *found} and is_function(node, graph)
        if is_outside or is_constant(node):  # its operand gives only the batch size
            found[node.name] = node
    return found


def _hoist(node: Node, part: Part) -> Change:
    if not isinstance(node, ScanNode):
        return node
    if node.region.graph.nodes_of(ScanNode):  # what leaves an inner scan may leave this one too
        node = replace_fields(node, region=prune_region(node.region, _hoist))
    if not (hoisted := find_invariant_ops(node)):
        return node
    old, graph = node.region.graph, Graph(node.region.graph.name, node.region.graph.parameters)
    arguments: dict[Result, Result] = {}  # new arguments for results of hoisted ops that the region reads
    staying = [each for each in old if each.name not in hoisted]
    read = {result for each in staying for result in old.inputs(each.name).values()}
    inner = {each.name for part in old.parts()[1:] for each in part.graph}
    for result in map(Result, hoisted):
        if result in {*read, *node.region.results}:
            argument = f"{result.node}~outside"
            while argument in inner:
                argument += "~outside"
            arguments[result] = Result(argument)
            graph.add(InputNode(name=arguments[result].node, types=(old.type_of(result),)))
    for each in staying:
        graph.add(each, _redirect(old.inputs(each.name), arguments), old.uses(each.name))
    results = tuple(arguments.get(each, each) for each in node.region.results)
    taken = {inside.node: result for result, inside in arguments.items()}
    scan = replace_fields(node, region=Region(graph, (*node.region.arguments, *taken), results))

    inputs = part.graph.inputs(node.name)
    outside = {Result(slot): result for slot, result in inputs.items()}
    sequence = inputs[node.variable]  # gives constants the batch size
    ops: list[tuple[Node, Inputs]] = []
    for name, op in hoisted.items():
        edges = old.inputs(name)
        ops.append((op, dict.fromkeys(edges, sequence) if is_constant(op) else _redirect(edges, outside)))
    return Built((*ops, (scan, {**inputs, **taken})))


def is_constant(node: OpNode) -> bool:
    """Whether a node is an array of several constant numbers, which torch cannot export in the step of a scan."""
    return isinstance(node.op, Constant) and len(node.op.numbers) > 1


def _redirect(edges: Mapping[str, Result], now: Mapping[Result, Result]) -> dict[str, Result]:
    return {slot: now.get(each, each) for slot, each in edges.items()}


@dataclass(frozen=True)
class ComputeOnce(Pass):
    """Mark nodes that run once for a batch, since they depend only on learned and constant arrays.

    A `gathered` route in a scan is marked too: its weights are stacked once, before the first step.
    """

    name: ClassVar[str] = "once"

    def __call__(self, graph: Graph) -> Graph:
        return rewrite_graph(graph, mark_once())


def mark_once() -> Rule:
    """The rewrite rule of `ComputeOnce`."""
    invariant: dict[int, frozenset[str]] = {}  # batch-invariant nodes of each graph, by its identity

    def rule(node: Node, part: Part) -> Change:
        if not isinstance(node, OpNode | RouteNode) or is_array(node):
            return node
        if id(part.graph) not in invariant:
            invariant[id(part.graph)] = batch_invariant(part.graph)
        if isinstance(node, RouteNode) and node.lowering == GATHERED and part.scan is not None:
            return change_fields(node, once="scan")
        return change_fields(node, once="batch" if node.name in invariant[id(part.graph)] else "")

    return rule
