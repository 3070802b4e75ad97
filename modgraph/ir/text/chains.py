"""Ops that follow each other, each on the value of the one before alone: one line of text, as the author wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from modgraph.ir.graph import Graph
from modgraph.ir.node import LossNode, Node, OpNode, Result
from modgraph.ir.text.runs import Run

Item = Node | Run | list[Node]


def chains_of(items: Iterable[Node | Run], graph: Graph, read: set[Result]) -> Iterator[Item]:
    """The items of a body, in order, with lists of nodes that are one line; `read` are values that are read outside."""
    chain: list[Node] = []
    for item in items:
        if chain and isinstance(item, Node) and _continues(item, chain[-1], graph, read):
            chain.append(item)
            continue
        yield from _ended(chain)
        chain = [item] if isinstance(item, OpNode) else []
        if not chain:
            yield item
    yield from _ended(chain)


def path_of(node: Node) -> str:
    """What the nodes of one statement are called below."""
    return node.name if isinstance(node, LossNode) else node.name.rpartition(".")[0]


def _ended(chain: list[Node]) -> Iterator[Item]:
    if chain:
        yield chain if len(chain) > 1 else chain[0]


def _continues(node: Node, before: Node, graph: Graph, read: set[Result]) -> bool:
    """Whether a node stands in the line of the one before: it alone reads its one value, as its first operand."""
    value = Result(before.name)
    return (
        isinstance(node, OpNode | LossNode)
        and len(before.types) == 1
        and [*graph.inputs(node.name).values()][:1] == [value]
        and [*graph.inputs(node.name).values()].count(value) == 1
        and graph.users(before.name) == [node.name]
        and value not in read
    )
