"""What a class holds beside what it computes with: all that stands in the state dict, in its order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from modgraph.backends.torch.pool import CompiledPool
from modgraph.backends.torch.source.classes import Class, first
from modgraph.backends.torch.source.names import below
from modgraph.backends.torch.source.pools import made_pool
from modgraph.backends.torch.source.starts import parameter, starts
from modgraph.ir import Graph, OpNode, PoolNode, RouteNode, RouterNode


def held_all(home: Class, graph: Graph, prefix: str) -> None:
    """Let a class hold all weights that a graph calls below a prefix, in the order of the state dict, read or not."""
    inside = home.prefix.removesuffix(prefix)
    made: dict[str, Callable[[], str]] = {}
    for part in (each.graph for each in graph.parts()):
        for node in part:
            path = node.owner if isinstance(node, OpNode) else node.name
            if not path.startswith(prefix) or home.covers(path):
                continue
            make = _make(home, part, node, path.removeprefix(prefix), inside)
            if make is not None:
                made.setdefault(path.removeprefix(prefix), make)
    names = [*home.root.state_dict()]
    for path in sorted(dict.fromkeys([*made, *home.members]), key=lambda path: first(names, path)):
        home.members[path] = home.members.pop(path) if path in home.members else made[path]()
    ops = [path for path, make in made.items() if path in home.members and getattr(make, "func", None) is not made_pool]
    home.after += starts(home, ops)


def _make(home: Class, graph: Graph, node: object, path: str, inside: str) -> Callable[[], str] | None:
    """What makes that which a node's weights stand in."""
    if isinstance(node, PoolNode):
        pool = below(home.root, path)
        assert isinstance(pool, CompiledPool)
        return partial(made_pool, home.file, node, pool, inside)
    if isinstance(node, RouterNode) and node.weights:
        route = next(each for each in graph.of_kind(RouteNode) if graph.router_of(each) is node)
        return partial(home.file.made, graph.signature(route).constructor())
    if isinstance(node, OpNode) and node.op.all_weights():
        return partial(_made, home, graph, node, path)
    return None


def _made(home: Class, graph: Graph, node: OpNode, path: str) -> str:
    made, positional, named = graph.signature(node).constructor()
    if made == "modgraph.nn.Parameter":
        return parameter(positional[1], home, path)
    return home.file.made((made, positional, named))
