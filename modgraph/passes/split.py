"""Split weighted routes into the messages of their pool and the weighted sum."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import Any, ClassVar

from modgraph.ir import Built, Change, Graph, Part, build_op, is_function, rewrite_graph
from modgraph.ir.node import InputNode, Inputs, Node, Result, RouteNode, RouterNode
from modgraph.ops.array import Constant
from modgraph.ops.elementwise import MaskPadding
from modgraph.passes.infrastructure import Pass
from modgraph.routers.weighted import EveryModule, Weighted


@dataclass(frozen=True)
class Split(Pass):
    """Compute the messages of a `dense` route, and f(0) of a `factorised` one, by a route of their own.

    `Merge` keeps one of equal routes. Where it does not apply (in scans, in modules, with random messages), the first
    route computes the messages of all routes that send the same value through the same pool.
    """

    name: ClassVar[str] = "split"

    def __call__(self, graph: Graph) -> Graph:
        graphs = [part.graph for part in graph.parts()] + [region.graph for _, region in graph.modules()]
        whole = any(is_whole(node, each) for each in graphs for node in each.nodes_of(RouteNode))
        return rewrite_graph(graph, _split) if whole else graph


def split_routes(route: RouteNode, graph: Graph) -> list[RouteNode]:
    """The routes, this one included, that read the same messages after `Split` and `Merge`."""
    messages = graph.inputs(route.name).get("messages")
    users = [graph[name] for name in graph.users(messages.node)] if messages else []
    return [user for user in users if isinstance(user, RouteNode)] or [route]


def sends_messages(route: RouteNode, graph: Graph) -> bool:
    """Whether a route only computes messages for other routes."""
    users = [graph.inputs(name) for name in graph.users(route.name)]
    return bool(users) and all(inputs.get("messages") == Result(route.name) for inputs in users)


def is_whole(route: RouteNode, graph: Graph) -> bool:
    """Whether a route can be split. A message with padded axes cannot: their lengths are unknown."""
    is_weighted = isinstance(graph.declaration_of(route), Weighted) and "messages" not in graph.inputs(route.name)
    padded = any(axis.is_padded for axis in graph.pool_of(route).message.shape)
    return is_weighted and route.lowering in ("dense", "factorised") and not padded


def _split(node: Node, part: Part) -> Change:
    if not isinstance(node, RouteNode) or not is_whole(node, part.graph):
        return node
    graph, first = part.graph, _first(node, part)
    name = f"{first}~messages"
    reader = node, {**graph.inputs(node.name), "messages": Result(name)}
    if first != node.name:
        return Built((reader,))
    pool, of_zero, source = graph.pool_of(node), node.lowering == "factorised", graph.inputs(node.name)["tokens"]
    ops: list[tuple[Node, Inputs]] = []
    if of_zero:
        shape = (pool.axis, *pool.message.shape)
        sizes, names = tuple(axis.size or 0 for axis in shape), tuple(axis.name for axis in shape)
        zero = Constant(sizes=sizes, names=names, numbers=(0.0,), ids=None)
        ops.append(build_op(f"{name}.zero", zero, _like(node, graph)))
    elif MaskPadding().bind(graph.type_of(source)).padded:
        ops.append(build_op(f"{name}.masked", MaskPadding(), source))
    rows = of_zero or graph.signature(node).axes.bound["rows_"]
    router = RouterNode(name=f"{name}.every_module", router=EveryModule(rows=rows))
    route = RouteNode(name=name, lowering="every_module")
    tokens = Result(ops[-1][0].name) if ops else source
    uses = {name: {"pool": pool.name, "router": router.name}}
    return Built((*ops, (router, {}), (route, {"tokens": tokens}), reader), uses)


def _first(route: RouteNode, part: Part) -> str:
    """The name of the route that computes a route's messages: its own if `Merge` will find equal ones."""
    graph = part.graph
    if part.scan is None and not part.place and is_function(graph.pool_of(route), graph):
        return route.name

    def key(each: RouteNode) -> Any:
        source = each.lowering == "factorised" or graph.inputs(each.name)["tokens"]
        return each.lowering, graph.pool_of(each).name, source

    return next(each.name for each in graph.nodes_of(RouteNode) if is_whole(each, graph) and key(each) == key(route))


def _like(route: RouteNode, graph: Graph) -> Result:
    """A value before a route from which a constant reads the batch size: the first float input, if any."""
    before = takewhile(lambda each: each is not route, graph)
    types = {each.name: each.types[0] for each in before if isinstance(each, InputNode)}
    floats = (name for name, type_ in types.items() if (type_.dtype, type_.per) == ("float", "example"))
    return next(map(Result, floats), graph.inputs(route.name)["tokens"])
