"""What a program has in it: ops, routers, and constructs of the language, each counted once for a program."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from modgraph.ir import Graph, OpNode, PoolNode, RouteNode, ScanNode
from modgraph.ops import Op
from modgraph.prelude import routers
from modgraph.routers import Router
from tests.assault.programs.names import MEANT_OTHERWISE

CONSTRUCTS = {
    "repeat": r"repeat \w+\[",
    "repeat in repeat": r"(?m)^    repeat ",
    "repeat over strings": r'repeat .* in \["',
    "for": r"\bfor \w in",
    "if": r"\bif .* else ",
    "family": r"\w+\[i\] = ",
    "an earlier round": r"\[i - 1\]",
    "scan": r"\bscan ",
    "scan from a value": r"scan .*\] = \w+",
    "scan that ends by a value": r"} until ",
    "scan with two states": r"with \w+: float\[[^]]*\][^{,]*, \w+: float",
    "route in a scan": r"(?m)^    \w+ = \w+ -> \w+ by \w+$",
    "block": r"(?m)^block ",
    "block with an argument": r"\(inner=",
    "block of two values": r"(?m)^  \w+, \w+ = \w+ -> b\w*$",
    "router of the spec": r"(?m)^router ",
    "module": r"\bmodule ",
    "tokenizer": r"\btokenizer ",
    "frozen": r"\bfrozen ",
    "pool of unlike modules": r"\bpool \w+ = \[",
    "pool that was grown": r"\bgrow \w+\[",
    "growth": r"\bgrow \w+ by ",
    "weights over senders": r" by \(.* over ",
    "state": r"\bstate ",
    "next": r"\bnext ",
    "constant": r"\bconstant ",
    "weight": r"\bweight ",
    "axis of any length": r": (float|token)\[([a-z]\w*, )",
    "axis with a name and a length": r"float\[[^]]*\w=\d",
    "parameter": r"model \w+\(\w",
    "missing labels": "missing=true",
    "weight of a loss": r"loss \w+ = 0.3",
    "record read": r"\.gates",
    "name of another meaning": rf"\b({'|'.join(map(re.escape, MEANT_OTHERWISE))}) = ",
}


def wanted() -> list[str]:
    """All that a campaign is to have met."""
    ops = [f"op {name}" for name in Op.registry]
    return [*ops, *(f"router {name}" for name in (*routers(), *Router.registry)), *CONSTRUCTS]


def constructs(graph: Graph, text: str) -> Counter[str]:
    """What occurs in a program, each once."""
    found = {name for name, pattern in CONSTRUCTS.items() if re.search(pattern, text)}
    for each in graphs_in(graph):
        found |= {f"op {node.op.name}" for node in each.nodes_of(OpNode)}
        for route in each.nodes_of(RouteNode):
            router = each.router_of(route).router
            found.add(f"router {getattr(router, 'definition', '') or router.name}")
    return Counter(found)


def graphs_in(graph: Graph) -> Iterator[Graph]:
    """A graph, those of its scans, and those of its pools' modules."""
    yield graph
    for node in graph:
        regions = node.regions if isinstance(node, PoolNode) else (node.region,) if isinstance(node, ScanNode) else ()
        for region in regions:
            yield from graphs_in(region.graph)
