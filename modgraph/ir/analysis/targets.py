"""Finds outputs that depend on a target in inference, which has none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from modgraph.ir.analysis.needed import decisions_by_result
from modgraph.ir.graph import Graph
from modgraph.ir.node import InputNode, OpNode, Result, ScanNode, TargetNode

Decisions = Mapping[str, Mapping[Result, Sequence[str]]]  # by their results, by the scan in which they are made
Value = tuple[str | None, Result]  # the scan in whose region a result is found, None for the graph itself


def paths_from_targets(graph: Graph) -> dict[str, list[str]]:
    """The outputs that depend on a target in inference, by label, each with the nodes of a shortest path from there.

    Paths leave out operands that only training reads, such as the first one of `training_or_inference`.
    """
    ends: dict[str, Value] = {label: (None, result) for label, result in graph.outputs.items()}
    if not graph.of_kind(TargetNode):
        return {}
    decisions = {"": decisions_by_result(graph)}
    decisions |= {scan.name: decisions_by_result(scan.region.graph) for scan in graph.of_kind(ScanNode)}
    if not _path(graph, decisions, *ends.values()):
        return {}
    found = {label: _path(graph, decisions, end) for label, end in ends.items()}
    return {label: path for label, path in found.items() if path}


def _path(graph: Graph, decisions: Decisions, *ends: Value) -> list[str]:
    """The nodes of a shortest path from a target to one of some values; none if there is no path."""
    readers: dict[Value, Value | None] = dict.fromkeys(ends)
    pending = [*ends]
    for value in pending:
        if value[0] is None and isinstance(graph[value[1].node], TargetNode):
            return [*dict.fromkeys(_names(readers, value))]
        for source in (*_read_in_inference(graph, value), *_decided_with(graph, value, decisions)):
            if source not in readers:
                readers[source] = value
                pending.append(source)
    return []


def _names(readers: dict[Value, Value | None], value: Value | None) -> Iterator[str]:
    while value is not None:
        yield value[1].node
        value = readers[value]


def _decided_with(graph: Graph, value: Value, decisions: Decisions) -> Iterator[Value]:
    """What a router decides where a value is that of its route, or one of its records: inference tells it too."""
    inside, result = value
    scan = None if inside is None else graph[inside]
    here = scan.region.graph if isinstance(scan, ScanNode) else graph
    for name in decisions[inside or ""].get(result, ()):
        yield from ((inside, each) for each in here.inputs(name).values())


def _read_in_inference(graph: Graph, value: Value) -> list[Value]:
    """The values that a value depends on in inference; for a scan's result, the value in its region."""
    inside, result = value
    scan = None if inside is None else graph[inside]
    assert scan is None or isinstance(scan, ScanNode), f"{inside} is no scan"
    here = graph if scan is None else scan.region.graph
    node = here[result.node]
    match node:
        case ScanNode():
            return [(node.name, node.stacked[result.index])]
        case InputNode() if scan is not None:
            return _sources_of_argument(graph, scan, node.name)
        case OpNode() if node.op.outside_training:
            return [(inside, here.inputs(node.name)[node.op.outside_training])]
        case _:
            return [(inside, source) for source in here.inputs(node.name).values()]


def _sources_of_argument(graph: Graph, scan: ScanNode, argument: str) -> list[Value]:
    """The operand of a scan for an argument of its region, and the next value of a state."""
    outer = graph.inputs(scan.name).get(argument)
    found: list[Value] = [] if outer is None else [(None, outer)]
    following = dict(zip(scan.states, scan.following, strict=True))
    return [*found, *([(scan.name, following[argument])] if argument in following else [])]
