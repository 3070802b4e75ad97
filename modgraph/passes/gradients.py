"""Gradients of large tables: sparse where asked for, unless a training needs dense ones."""

from __future__ import annotations

from dataclasses import replace

from modgraph.ir import Graph, Node, OpNode, Part, rewrite_graph
from modgraph.ops.lookup import Lookup


def drop_sparse_gradients(graph: Graph) -> Graph:
    """Let every table that is looked up have a dense gradient. No result changes."""
    if not any(_is_sparse(node) for part in graph.parts() for node in part.graph):
        return graph
    return rewrite_graph(graph, _make_dense)


def _is_sparse(node: Node) -> bool:
    return isinstance(node, OpNode) and isinstance(node.op, Lookup) and node.op.sparse


def _make_dense(node: Node, part: Part) -> Node:
    if isinstance(node, OpNode) and isinstance(node.op, Lookup):
        return replace(node, op=replace(node.op, sparse=False))
    return node
