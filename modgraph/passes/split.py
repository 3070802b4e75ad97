"""Split routes by weights into the messages of their pool and what is made of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from modgraph.ir import Change, Expanded, Graph, Part, is_function, rewritten
from modgraph.ir.node import InputNode, Node, OpNode, Result, RouteNode, RouterNode
from modgraph.ops import Op
from modgraph.ops.array import Constant
from modgraph.ops.elementwise import MaskPadding
from modgraph.passes.infrastructure import Pass
from modgraph.routers.weighted import EveryModule, Weighted


@dataclass(frozen=True)
class Split(Pass):
    """Compute the messages of a `dense` route, and f(0) of a `factorised` one, by a route of their own.

    `Merge` keeps one of equal routes. Where it does not, in scans and in modules, and of messages that are drawn by
    chance, those of the first route serve all that send the same value through the same pool.
    """

    name: ClassVar[str] = "split"

    def __call__(self, graph: Graph) -> Graph:
        graphs = [part.graph for part in graph.parts()] + [region.graph for _, region in graph.modules()]
        whole = any(is_whole(node, each) for each in graphs for node in each.of_kind(RouteNode))
        return rewritten(graph, _split) if whole else graph


def split_routes(route: RouteNode, graph: Graph) -> list[RouteNode]:
    """The routes that read the same messages as a route, this one among them, once they are split and merged."""
    messages = graph.inputs(route.name).get("messages")
    users = [graph[name] for name in graph.users(messages.node)] if messages else []
    return [user for user in users if isinstance(user, RouteNode)] or [route]


def sends_messages(route: RouteNode, graph: Graph) -> bool:
    """Whether a route computes messages that other routes read, and nothing else does."""
    users = [graph.inputs(name) for name in graph.users(route.name)]
    return bool(users) and all(inputs.get("messages") == Result(route.name) for inputs in users)


def is_whole(route: RouteNode, graph: Graph) -> bool:
    """Whether a route could be split; lengths of a message's own axes are not known."""
    is_weighted = isinstance(graph.declaration_of(route), Weighted) and "messages" not in graph.inputs(route.name)
    padded = any(axis.is_padded for axis in graph.pool_of(route).message.shape)
    return is_weighted and route.lowering in ("dense", "factorised") and not padded


def _split(node: Node, part: Part) -> Change:
    if not isinstance(node, RouteNode) or not is_whole(node, part.graph):
        return node
    uses, pool, of_zero = part.graph.uses(node.name), part.graph.pool_of(node), node.lowering == "factorised"
    name = f"{_first(node, part)}~messages"
    rows = of_zero or part.graph.signature(node).axes.bound["rows_"]

    def put(graph: Graph, inputs: Mapping[str, Result], lengths: Mapping[str, Result]) -> tuple[Result, ...]:
        if name not in graph:
            sent = inputs["tokens"]
            if of_zero:
                shape = (pool.axis, *pool.message.shape)
                sizes, names = tuple(axis.size or 0 for axis in shape), tuple(axis.name for axis in shape)
                zero = Constant(sizes=sizes, names=names, numbers=(0.0,))
                sent = _add_op(graph, f"{name}.zero", zero, _like(graph, sent))
            elif padded := {axis: lengths[axis] for axis in MaskPadding().bind(graph.type_of(sent)).padded}:
                sent = _add_op(graph, f"{name}.masked", MaskPadding(), sent, padded)
            router = graph.add(RouterNode(name=f"{name}.every_module", router=EveryModule(rows=rows)))
            route = RouteNode(name=name, lowering="every_module")
            graph.add(route, {"tokens": sent}, {"pool": pool.name, "router": router.name})
            _set_types(graph, route)
        graph.add(node, {**inputs, "messages": Result(name)}, uses, lengths)
        return (Result(node.name),)

    return Expanded(put)


def _first(route: RouteNode, part: Part) -> str:
    """The route whose messages a route reads: its own, where `Merge` finds equal ones."""
    graph = part.graph
    if part.scan is None and not part.place and is_function(graph.pool_of(route), graph):
        return route.name

    def key(each: RouteNode) -> Any:
        sent = each.lowering == "factorised" or graph.inputs(each.name)["tokens"]
        return each.lowering, graph.pool_of(each).name, sent

    return next(each.name for each in graph.of_kind(RouteNode) if is_whole(each, graph) and key(each) == key(route))


def _like(graph: Graph, otherwise: Result) -> Result:
    """A value that tells a constant how many examples there are, the same for all constants where there is one."""
    inputs = (node for node in graph.of_kind(InputNode) if node.types[0].dtype == "float")
    return next((Result(node.name) for node in inputs if node.types[0].per == "example"), otherwise)


def _add_op(graph: Graph, name: str, op: Op, operand: Result, lengths: Mapping[str, Result] | None = None) -> Result:
    node = OpNode(name=name, owner=name, op=op)
    graph.add(node, {op.slots_of(1)[0]: operand}, lengths=lengths)
    _set_types(graph, node)
    return Result(name)


def _set_types(graph: Graph, node: OpNode | RouteNode) -> None:
    graph.replace(replace(node, types=graph.signature(node).results))
