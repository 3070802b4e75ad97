"""Pools by a router: the pool's region, the router, and the route between them."""

from __future__ import annotations

from typing import Any

from modgraph.diagnostics import Span
from modgraph.elaboration import errors
from modgraph.elaboration.context import Here
from modgraph.elaboration.entities import POISON, Bound, Poison, PoolEntity, RouterEntity, Template, Tensor
from modgraph.elaboration.scope import Naming
from modgraph.ir import Graph, InputNode, OutputNode, PoolNode, Result, RouteNode, RouterNode, bind_route
from modgraph.ops import Misfit, TensorType


def apply_route(pool: PoolEntity, router: RouterEntity, tokens: Tensor, span: Span, here: Here) -> Any:
    """A value routed through a pool; the route's value, or poison after a told mistake."""
    here.context.used |= {pool.path, router.path}
    node = _pool_node(pool, tokens.type, span, here)
    if isinstance(node, Poison):
        return POISON
    try:
        signature = bind_route(router.router, node, tokens.type)
        shapes = signature.weight_shapes()
    except Misfit as misfit:
        who = f'router "{router.path}" over pool "{pool.path}"'
        here.tell(errors.DoesNotFit(span=span, who=who, reason=misfit.reason, way_out=misfit.help))
        return POISON
    if not here.agree_on_weights(router.path, shapes, span):
        return POISON
    if router.path not in here.graph:
        here.add(RouterNode(name=router.path, router=router.router, span=router.span), span)
    name, _ = here.naming.next(pool.path.rpartition(".")[2])
    inputs = {"tokens": tokens.result}
    if (axis := router.router.masked(signature.axes)) is not None:
        inputs["length"] = here.length_of(axis, span)
    route = RouteNode(name=name, types=signature.results, span=span)
    if not here.add(route, span, inputs, {"pool": pool.path, "router": router.path}):
        return POISON
    return Tensor(Result(name), signature.results[0], span)


def _pool_node(pool: PoolEntity, tokens: TensorType, span: Span, here: Here) -> PoolNode | Poison:
    """The node of a pool, made when it is first used: its message type is known from then on."""
    if pool.path in here.graph:
        node = here.graph[pool.path]
        assert isinstance(node, PoolNode)
        return node
    rank = message_rank(pool.template, here)
    if len(tokens.shape) < rank:
        reason = f"its modules take {rank} axes, and this value is {tokens}"
        here.tell(errors.DoesNotFit(span=span, who=f'pool "{pool.path}"', reason=reason))
        return POISON
    message = tokens.with_shape(tokens.shape[len(tokens.shape) - rank :])
    region = _region(pool, message, here)
    if isinstance(region, Poison):
        return POISON
    node = PoolNode(name=pool.path, size=pool.size, region=region, span=pool.span)
    return node if here.add(node, pool.span) else POISON


def _region(pool: PoolEntity, message: TensorType, here: Here) -> Graph | Poison:
    """The graph of one module of a pool."""
    from modgraph.elaboration.apply import apply

    graph = Graph(pool.path.rpartition(".")[2])
    inside = Here(here.context, graph, here.scope, Naming("", "", ""))
    x = InputNode(name="x", types=(message,), span=pool.span)
    inside.add(x, pool.span)
    result = apply(pool.template, (Tensor(Result("x"), message),), pool.span, inside)
    if not isinstance(result, Tensor):
        if not isinstance(result, Poison):
            reason = "its modules must yield one value"
            here.tell(errors.DoesNotFit(span=pool.span, who=f'pool "{pool.path}"', reason=reason))
        return POISON
    inside.add(OutputNode(name="output.output", types=(), span=pool.span), pool.span, {"x": result.result})
    return graph


def message_rank(template: Any, here: Here) -> int:
    """How many trailing axes the modules of a pool take: as many as the first op that says so."""
    from modgraph.elaboration.apply import callable_of

    terms: list[Any] = [template]
    while terms:
        term = terms.pop(0)
        if isinstance(term, Bound) and term.op.message_rank is not None:
            return term.op.message_rank
        if isinstance(term, Template):
            inside = here.within(term.scope)
            terms = [callable_of(stage.term, inside) for stage in term.stages] + terms
    return 1
