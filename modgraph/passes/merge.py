"""Common subexpression elimination over ops and routes to every module."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import ClassVar

from modgraph.frozen import replace_fields
from modgraph.ir import Call, Graph, Node, OpNode, PoolNode, Result, RouteNode, is_function
from modgraph.ops.edges import NODES, EdgeOp
from modgraph.passes.infrastructure import Moved, Pass


@dataclass(frozen=True)
class Merge(Pass):
    """Keep one of several equal ops, or of equal routes to every module of a pool, that read the same values.

    The kept node moves before the calls that do not contain all of them, if its operands stand there too: an op that is
    equal in all rounds moves before the first. Random ops, ops over the batch and ops with buffers stay.
    """

    name: ClassVar[str] = "merge"

    def rewrite(self, graph: Graph) -> Moved:
        moved, equal = find_equal_nodes(graph)
        if not moved:
            return Moved(graph)
        order, within = _places(graph, moved, equal)
        found = Graph(graph.name, graph.parameters)
        for name in order:
            inputs = {slot: moved.get(each, each) for slot, each in graph.inputs(name).items()}
            node = replace_fields(graph[name], within=within.get(name, graph[name].within))
            found.add(node, inputs, graph.uses(name))
        return Moved(found, moved)


def find_equal_nodes(graph: Graph) -> tuple[dict[Result, Result], dict[str, list[Node]]]:
    """The results that move to the first of equal nodes, and the equal nodes by the name of the first.

    A value that only says how many nodes edges join is as good as any other.
    """
    first, moved, equal = dict[Hashable, str](), dict[Result, Result](), dict[str, list[Node]]()
    for node in graph:
        if not isinstance(node, OpNode | RouteNode) or not is_function(node, graph):
            continue
        of_edges = isinstance(node, OpNode) and isinstance(node.op, EdgeOp)
        values = ((slot, each) for slot, each in graph.inputs(node.name).items() if not (of_edges and slot == NODES))
        read = tuple((slot, moved.get(each, each)) for slot, each in values)
        what: tuple[Hashable, Hashable]  # the declaration, and the owner of its weights
        if isinstance(node, OpNode):
            what = node.op, node.owner if node.op.all_weights() else ""
        else:
            what = graph.declaration_of(node), graph.uses(node.name)["pool"]
        name = first.setdefault((*what, node.types, read), node.name)
        equal.setdefault(name, []).append(node)
        if name != node.name:
            moved[Result(node.name)] = Result(name)
    return moved, {name: nodes for name, nodes in equal.items() if len(nodes) > 1}


def _places(
    graph: Graph, moved: Mapping[Result, Result], equal: Mapping[str, list[Node]]
) -> tuple[list[str], dict[str, Call | None]]:
    """The nodes that stay, in order, and the new calls of the merged ones."""
    at = {node.name: (index, index) for index, node in enumerate(graph) if Result(node.name) not in moved}
    first_node = dict[Call, int]()
    for index, node in enumerate(graph):
        for call in node.calls:
            first_node.setdefault(call, index)
    within = dict[str, Call | None]()
    for name, nodes in equal.items():
        chains = [node.calls[::-1] for node in nodes]  # from the outside
        common = [each[0] for each in takewhile(lambda calls: len({*calls}) == 1, zip(*chains, strict=False))]
        edges = (*graph.inputs(name).values(), *graph.lengths(name).values())
        read = [at[moved.get(each, each).node][0] for each in edges]
        for left in chains[0][len(common) :]:
            if all(place < first_node[left] for place in read):
                for each in (name, *graph.uses(name).values()):
                    at[each] = (
                        min(first_node[left] - 1, at[each][0]),
                        at[each][1],
                    )  # after the nodes at that place, in order
                    within |= {} if isinstance(graph[each], PoolNode) else {each: left.outer}
                break
    return sorted(at, key=lambda name: at[name]), within
