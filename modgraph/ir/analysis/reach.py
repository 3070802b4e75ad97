"""Dependencies of results: nodes, decisions on the way, and targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from modgraph.ir.graph import Graph
from modgraph.ir.node import DecisionNode, InputNode, Node, OpNode, Result, ScanNode, TargetNode
from modgraph.ir.part import Part
from modgraph.ops.array import State

Value = tuple[str, Result]  # the scan whose region contains the result, or "" for the graph itself


@dataclass(frozen=True)
class Needed:
    """The nodes of one graph that the results `ends` depend on; `results` are these and all that the nodes read."""

    graph: Graph
    ends: set[Result]
    nodes: set[str]
    results: set[Result]


def find_dependencies(graph: Graph, ends: Iterable[Result]) -> Needed:
    """The dependencies of results within their graph. The decision of a needed route is needed too."""
    decisions, lengths = find_decisions_by_result(graph), {*graph.length_inputs.values()}
    nodes, results = set[str](), {*ends}
    found = Needed(graph, {*results}, nodes, results)
    pending = [*results]
    while pending:
        result = pending.pop()
        for name in {result.node, *decisions.get(result, ())} - nodes:
            nodes.add(name)
            new = {*graph.inputs(name).values()} - results
            results |= new
            pending += [*new, *map(Result, graph.uses(name).values())]
            if not lengths <= nodes:
                pending += graph.lengths(name).values()
    return found


def find_decisions_by_result(graph: Graph) -> dict[Result, list[str]]:
    """Map each result to the decisions of which it is the value or a record."""
    found: dict[Result, list[str]] = {}
    for each in Part(graph).decisions():
        if isinstance(each.node, DecisionNode):
            for result in dict.fromkeys((each.value, *each.inside.values())):
                found.setdefault(result, []).append(each.name)
    return found


def paths_from_targets(graph: Graph) -> dict[str, list[str]]:
    """The outputs that depend on a target in inference, by label, each with the nodes of a shortest path from it.

    Operands that only training reads, such as the first one of `training_or_inference`, are no dependencies.
    """
    if not graph.nodes_of(TargetNode):
        return {}
    parts = {part.scan.name if part.scan else "": part for part in graph.parts()}
    decisions = {name: find_decisions_by_result(part.graph) for name, part in parts.items()}

    def sources(value: Value) -> Iterator[Value]:
        """Find the values that a value depends on in inference, with the records of its decisions."""
        here, result = value
        part = parts[here]
        node, inputs = part.graph[result.node], part.graph.inputs(result.node)
        match node:
            case ScanNode():
                yield node.name, node.stacked[result.index]
                yield from [(node.name, node.going)] if node.going is not None else []
            case InputNode() if part.scan is not None:
                around = "" if part.outer is None or part.outer.scan is None else part.outer.scan.name
                outside = parts[around].graph.inputs(here)
                following = dict(zip(part.scan.states, part.scan.following, strict=True))
                yield from [(around, outside[node.name])] if node.name in outside else []
                yield from [(here, following[node.name])] if node.name in following else []
            case OpNode() if node.op.outside_training:
                yield here, inputs[node.op.outside_training]
            case _:
                yield from ((here, source) for source in inputs.values())
        for name in decisions[here].get(result, ()):
            yield from ((here, each) for each in part.graph.inputs(name).values())

    ends: dict[str, Value] = {label: ("", result) for label, result in graph.outputs.items()}
    if not _path(graph, sources, [*ends.values()]):
        return {}
    found = {label: _path(graph, sources, [end]) for label, end in ends.items()}
    return {label: names for label, names in found.items() if names}


def _path(graph: Graph, sources: Callable[[Value], Iterator[Value]], ends: list[Value]) -> list[str]:
    """Find the nodes of a shortest path from a target to one of some values; empty if there is none."""
    readers: dict[Value, Value | None] = dict.fromkeys(ends)
    for value in ends:  # the list grows within the loop
        if not value[0] and isinstance(graph[value[1].node], TargetNode):
            names, reader = dict[str, None](), readers[value]
            names[value[1].node] = None
            while reader is not None:
                names[reader[1].node] = None
                reader = readers[reader]
            return [*names]
        for source in sources(value):
            if source not in readers:
                readers[source] = value
                ends.append(source)
    return []


def is_batch_statistic(graph: Graph, node: Node) -> bool:
    """Whether a node, or one in its scan, computes a statistic of the batch; states and functions of them do not."""
    if isinstance(node, ScanNode):
        return any(is_batch_statistic(node.region.graph, each) for each in node.region.graph)
    if not isinstance(node, OpNode) or isinstance(node.op, State):
        return False
    of_examples = any(graph.type_of(each).per == "example" for each in graph.inputs(node.name).values())
    return of_examples and any(type_.per == "batch" for type_ in node.types)


def find_batch_statistics(graph: Graph) -> dict[str, Node]:
    """Find a statistic of the batch that each node depends on outside training, by the node's name."""
    found: dict[str, Node] = {}
    for node in graph:
        op = node.op if isinstance(node, OpNode) else None
        if is_batch_statistic(graph, node):
            found[node.name] = node
        elif found and (op is None or not op.zero_outside_training):
            only = "" if op is None else op.outside_training
            read = (each.node for slot, each in graph.inputs(node.name).items() if only in ("", slot))
            behind = next((found[each] for each in read if each in found), None)
            if behind is not None:
                found[node.name] = behind
    return found
