"""Edits of a graph: the same architecture with more in it, every old weight under its old name."""

from __future__ import annotations

from dataclasses import replace

from modgraph.ir.graph import Graph, Part
from modgraph.ir.node import Node, PoolNode
from modgraph.ir.rewrite import rewritten


def grow(graph: Graph, pool: str, by: int) -> Graph:
    """The graph whose pool has `by` modules more; types downstream follow.

    Raises `Misfit` where something downstream fits the old number only, `KeyError` if there is no such pool.
    """
    assert graph.pools()[pool].alike, f"the modules of {pool} are unlike: none says what a new one is"

    def grown(node: Node, part: Part) -> Node:
        if isinstance(node, PoolNode) and node.name == pool:
            return replace(node, size=node.size + by, grown=node.grown + by)
        return node

    return rewritten(graph, grown)
