"""The bodies of a graph: its nodes grouped by the calls that contain them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import takewhile

from modgraph.ir.graph import Graph
from modgraph.ir.node import Call, InputNode, Node, OpNode, PoolNode, RouterNode, ScanNode, TargetNode
from modgraph.ops.shape import Rename

Chain = tuple[Call, ...]  # calls, each in the one before


@dataclass(frozen=True)
class Placed:
    """The first use of a pool or a router that a surrounding body declares: its place among the nodes of the graph."""

    node: Node


@dataclass(eq=False)
class Body:
    """The items of a body in order: nodes, bodies of calls, and places of nodes that surrounding bodies declare.

    The root body has no `call`. `deferred` are the pools and routers that a call in this body places.
    """

    call: Call | None
    outer: Body | None = None
    items: list[Node | Body | Placed] = field(default_factory=list)
    deferred: dict[str, None] = field(default_factory=dict)


def body_of(graph: Graph, base: Call | None = None) -> Body:
    """Group the nodes of a graph, or of the region of a node within the call `base`, into bodies.

    Inputs and targets stand before the call that declares them. If the nodes of a call are no longer contiguous, they
    belong to the surrounding body. A module that is used twice declares its pool in both uses.
    """
    nodes, chains = [*graph], _chains(graph, base)
    root, bodies = Body(base), dict[Chain, Body]()

    def open_body(chain: Chain) -> Body:
        if not chain:
            return root
        if chain not in bodies:
            outer = open_body(chain[:-1])
            bodies[chain] = Body(chain[-1], outer)
            outer.items.append(bodies[chain])
        return bodies[chain]

    for node, around in zip(nodes, _around(nodes, chains), strict=True):
        body = open_body(chains[node.name])
        for name in graph.uses(node.name).values():
            _declare_again(graph[name], body)
        inside = len(around) > len(chains[node.name]) and around[: len(chains[node.name])] == chains[node.name]
        if not inside or not _may_move(node):
            body.items.append(node)
            continue
        last = open_body(around[: len(chains[node.name]) + 1])
        body.items.insert(body.items.index(last), node)
        if isinstance(node, PoolNode | RouterNode):
            body.deferred[node.name] = None
            open_body(around).items.append(Placed(node))
    return root


def sort_by_body(graph: Graph, base: Call | None = None) -> Graph:
    """Sort the nodes of a graph by its bodies, in scans too."""
    deferred = set[str]()
    found = Graph(graph.name, graph.parameters)

    def add(body: Body) -> None:
        deferred.update(body.deferred)
        for item in body.items:
            if isinstance(item, Body):
                add(item)
                continue
            node = item.node if isinstance(item, Placed) else item
            deferred.difference_update([node.name] if isinstance(item, Placed) else [])
            if node.name in found or node.name in deferred:
                continue
            if isinstance(node, ScanNode):
                region = replace(node.region, graph=sort_by_body(node.region.graph, node.within))
                node = replace(node, region=region)
            found.add(node, graph.inputs(node.name), graph.uses(node.name), graph.find_signature(node.name))

    add(body_of(graph, base))
    return found


def _may_move(node: Node) -> bool:
    """Whether a node may move next to its call: it has no operands, or renames axes of the call's results."""
    named = isinstance(node, OpNode) and isinstance(node.op, Rename)
    return named or isinstance(node, PoolNode | RouterNode | InputNode | TargetNode)


def _around(nodes: list[Node], chains: dict[str, Chain]) -> Iterator[Chain]:
    """Find the open calls at each movable node: those that contain both the node before and the node after it."""
    may_move = [_may_move(node) for node in nodes]
    after: list[Chain] = [()] * (len(nodes) + 1)
    for at in range(len(nodes) - 1, -1, -1):
        after[at] = after[at + 1] if may_move[at] else chains[nodes[at].name]
    before: Chain = ()
    for at, node in enumerate(nodes):
        chain = chains[node.name]
        if not may_move[at]:
            before = chain
            yield ()
            continue
        open_ = tuple(a for a, b in takewhile(lambda pair: pair[0] is pair[1], zip(before, after[at], strict=False)))
        yield open_
        if len(chain) > len(open_) and chain == after[at][: len(chain)]:
            before = chain


def _chains(graph: Graph, base: Call | None) -> dict[str, Chain]:
    """Find the calls that contain each node, as long as their nodes are contiguous."""
    known: dict[Call | None, Chain] = {None: ()}
    for within in {node.within for node in graph} - {None}:
        calls = [*within.chain()] if within else []  # innermost first
        inner = calls if base is None else calls[: calls.index(base)] if base in calls else []
        known[within] = tuple(reversed(inner))
    chains = {node.name: () if isinstance(node, InputNode | TargetNode) else known[node.within] for node in graph}
    fixed = [chains[node.name] for node in graph if not _may_move(node)]
    first, last, count = dict[Call, int](), dict[Call, int](), dict[Call, int]()
    for at, chain in enumerate(fixed):
        for call in chain:
            first.setdefault(call, at)
            last[call] = at
            count[call] = count.get(call, 0) + 1
    apart = {call for call in first if last[call] - first[call] + 1 != count[call]}
    return {name: tuple(call for call in chain if call not in apart) for name, chain in chains.items()}


def _declare_again(used: Node, body: Body) -> None:
    """Declare a pool or a router again in the second use of its module."""
    declared, child, around = used.within, None, body
    if declared is None:
        return
    while around is not None and around.call is not None:
        call = around.call
        if call is declared:
            return
        same = (call.kind, call.definition, call.weights) == (declared.kind, declared.definition, declared.weights)
        if same and all(used is not each for each in around.items):
            around.items.insert(len(around.items) if child is None else around.items.index(child), used)
        child, around = around, around.outer  # type: ignore[assignment]
