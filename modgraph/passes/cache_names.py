"""The names of caches, and how many tokens they keep."""

from __future__ import annotations

from modgraph.ir import Graph, Result
from modgraph.ir.node import OpNode
from modgraph.ops.steps import Append, Retain
from modgraph.passes.extents import Extent

CACHE = "cache."  # begins the names of what a step takes from the one before, and leaves for the next
COUNT, PLACES = "count", "places"  # caches of the number of tokens before, and of their positions


def is_cache(name: str) -> bool:
    """Whether an input or an output of an incremental form is a cache."""
    return name.startswith(CACHE)


def name_kept(name: str, extent: str) -> str:
    """Name what belongs to the kept tokens of an extent; all tokens have no word for it."""
    return f"{name}.{extent}" if extent else name


def list_extents(graph: Graph) -> dict[str, int]:
    """List how many tokens caches keep at most, by the word for their extent, without those that keep all."""
    found = (Extent(node.op.first, node.op.last) for node in graph.nodes_of(OpNode) if isinstance(node.op, Retain))
    return {each.name: each.most or 0 for each in found}


def list_places(graph: Graph) -> list[Result]:
    """List the positions of new tokens, and of these after those that caches keep without a gap."""
    found = dict[Result, None]()
    for node in graph.nodes_of(OpNode):
        sources = [*graph.inputs(node.name).values()]
        if isinstance(node.op, Append) and sources[0].node.startswith(f"{CACHE}{PLACES}"):
            retained = [graph[each.name] for each in graph.users_of(node.name)]
            firsts = [each.op.first for each in retained if isinstance(each, OpNode) and isinstance(each.op, Retain)]
            found |= dict.fromkeys([sources[1], *([] if any(firsts) else [Result(node.name)])])
    return [*found]


def list_most_kept(graph: Graph) -> dict[str, int]:
    """List the caches that keep a number of tokens at most, with this number."""
    ends = {label: graph[result.node] for label, result in graph.outputs.items() if is_cache(label)}
    retained = ((label, node.op) for label, node in ends.items() if isinstance(node, OpNode))
    return {label: op.first + op.last for label, op in retained if isinstance(op, Retain)}
