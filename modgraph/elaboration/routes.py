"""Pools by a router: the pool's region, the router, and the route between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from modgraph.diagnostics import Note, Span
from modgraph.elaboration import errors
from modgraph.elaboration.chosen_weights import find_choice
from modgraph.elaboration.context import FirstUse
from modgraph.elaboration.defined import Sent, decided
from modgraph.elaboration.entities import (
    POISON,
    Poison,
    PoolEntity,
    RouterUse,
    Tensor,
    origins,
    several,
)
from modgraph.elaboration.message_ranks import message_ranks
from modgraph.elaboration.messages import as_one, taken_apart
from modgraph.elaboration.scope import Naming, Scope
from modgraph.elaboration.sending import ByRouter, ByWeights
from modgraph.elaboration.site import Site
from modgraph.elaboration.sparsity import compute_choice
from modgraph.ir import Call, Graph, InputNode, OpNode, PoolNode, Region, Result, RouteNode, RouterNode, bind_route
from modgraph.routers import Router
from modgraph.routers.chosen import Chosen
from modgraph.routers.every_module import EveryModule
from modgraph.routers.weighted import Weighted
from modgraph.types import Misfit, TensorType, shapes_meet


@dataclass(frozen=True)
class Chooser:
    """A router that Python computes, as it is declared."""

    path: str
    router: Router
    frozen: bool
    span: Span
    within: Call | None


def apply_route(pool: PoolEntity, means: ByRouter, tokens: Tensor, span: Span, site: Site) -> Any:
    """A value routed through a pool; the route's value, or poison after a told mistake."""
    router, others, pools = means.router, means.others, means.pools
    site.context.used |= {pool.path, router.path}
    node = _pool_node(pool, tokens.type, span, site)
    if isinstance(node, Poison):
        return POISON
    if isinstance(router.router, RouterUse):
        if node.size == 1 and not pool.alone:
            _tell_single(node, router.path, span, site)
        return decided((pool, *pools), router, Sent(tokens, others, span), site)
    if pools:
        site.tell(errors.RouterPools(span=span, name=router.router.name, wanted="one", given=1 + len(pools)))
        return POISON
    choosing = Chooser(router.path, router.router, router.frozen, router.span, router.within)
    if not _can_choose(node, choosing, span, site):
        return POISON
    return _route(pool.word, node, choosing, (tokens, *others), span, site)


def _can_choose(pool: PoolNode, router: Chooser, span: Span, site: Site) -> bool:
    """Whether a router can choose among a pool's modules; a choice that is none is warned of."""
    chosen = router.router.active_modules(pool.size)
    decision = site.call.decision if site.call is not None else None
    used: tuple[Note, ...] = (Note(text="used here", span=span),)
    if decision is not None:  # the route is that of a definition's body: what it chooses is told of the router
        router, used = replace(router, path=decision.router, span=decision.span), ()
    if chosen > pool.size:
        facts: Any = {"router": router.path, "k": chosen, "pool": pool.name, "size": pool.size}
        site.tell(errors.SelectsTooMany(span=router.span, notes=used, **facts))
    elif pool.size == 1:
        if decision is None:  # of a definition it is told where it is used
            _tell_single(pool, router.path, span, site)
    elif chosen == pool.size and router.router.chooses_along is not None:
        site.tell(errors.SelectsAll(span=router.span, router=router.path, pool=pool.name, size=pool.size))
    return chosen <= pool.size


def _tell_single(pool: PoolNode, router: str, span: Span, site: Site) -> None:
    site.context.tell_unless_growing(pool.axis.name, errors.SingleModule(span=span, router=router))


def apply_every_module(pool: PoolEntity, value: Tensor, span: Span, site: Site) -> Any:
    """A pool without a router: every module on the value, or each on its row if the value has an axis of them."""
    site.context.used.add(pool.path)
    node = _pool_node(pool, value.type, span, site)
    if isinstance(node, Poison):
        return POISON
    outer = value.type.shape[: len(value.type.shape) - len(node.message.shape)]
    rows = bool(outer) and outer[-1] == pool.axis
    name, _ = site.naming.next("every_module")
    router = Chooser(name, EveryModule(rows=rows), False, span, site.context.call)
    return _route(pool.word, node, router, (value,), span, site)


def apply_weighted(pool: PoolEntity, value: Tensor, means: ByWeights, span: Span, site: Site) -> Any:
    """A value through a pool by weights, over an axis that is the pool's unless another is named."""
    site.context.used.add(pool.path)
    node = _pool_node(pool, value.type, span, site)
    if isinstance(node, Poison):
        return POISON
    name, _ = site.naming.next("weighted")
    over = _summed(means, node)
    beside = site.under(Naming(f"{name}_choice", f"{name}_choice", site.scope))
    found = find_choice(means.weights, value, node, span, beside) if over == node.axis.name else None
    if found is None:
        router = Chooser(name, Weighted(over=over), False, span, site.context.call)
        return _route(pool.word, node, router, (value, means.weights), span, site)
    shows = site.call is None or site.call.decision is None or not site.call.decision.shows_choice
    declared = found.router(k=found.k or node.size, straight=found.support.straight, shows=shows)
    router = Chooser(name, declared, False, span, site.context.call)
    if found.router is Chosen and found.k is not None and not _can_choose(node, router, span, site):
        return POISON
    behind = compute_choice(found.support, found.weights, beside)
    if isinstance(behind, Poison):
        return POISON
    return _route(pool.word, node, router, (value, found.weights, *behind), span, site)


def _summed(means: ByWeights, pool: PoolNode) -> str | int:
    """Which axis of the weights is summed: that of the modules by its name."""
    shape = means.weights.type.shape
    if means.over is None:
        return pool.axis.name
    place = isinstance(means.over, int) and -len(shape) <= means.over < 0
    return pool.axis.name if place and shape[int(means.over)] == pool.axis else means.over


def _route(word: str, pool: PoolNode, router: Chooser, values: tuple[Tensor, ...], span: Span, site: Site) -> Any:
    who = f'pool "{pool.name}"'
    if not isinstance(router.router, EveryModule | Weighted | Chosen):
        who = f'router "{router.path}" over {who}'
    try:
        signature = bind_route(router.router, pool, *(value.type for value in values))
        shapes = signature.weight_shapes()
    except Misfit as misfit:
        notes = origins(values, misfit.operand)
        site.tell(errors.DoesNotFit(span=span, notes=notes, who=who, reason=misfit.reason, way_out=misfit.help))
        return POISON
    if not site.agree_on_weights(router.path, shapes, span):
        return POISON
    if not site.shares(router.path):
        facts: Any = {"span": router.span, "frozen": router.frozen, "within": router.within}
        site.add(RouterNode(name=router.path, router=router.router, **facts), span)
    name, _ = site.naming.next(word)
    slots = router.router.slots_of(len(values))
    inputs = {slot: value.result for slot, value in zip(slots, values, strict=True)}
    route = RouteNode(name=name, types=signature.results, span=span)
    if not site.add(route, span, inputs, {"pool": pool.name, "router": router.path}, signature.padded()):
        return POISON
    return Tensor(Result(name), signature.results[0], span)


def _pool_node(pool: PoolEntity, tokens: TensorType, span: Span, site: Site) -> PoolNode | Poison:
    """The node of a pool, made when it is first used: its message type is known from then on."""
    if site.shares(pool.path):
        node = site.graph[pool.path]
        assert isinstance(node, PoolNode)
        return node if _takes(node, tokens) else _tell_other(node, tokens, span, site)
    if tokens.per == "batch":
        reason, advice = f"its modules run on each example, and this value is {tokens}", "send what each example has"
        site.tell(errors.DoesNotFit(span=span, who=f'pool "{pool.path}"', reason=reason, way_out=advice))
        return POISON
    parts = site.context.messages.get(pool.path, ())
    ranks = [1] if parts else [rank for each in pool.templates for rank in message_ranks(each, 1, site)]
    if len(tokens.shape) < max(ranks):
        reason = f"its modules take {max(ranks)} axes, and this value is {tokens}"
        site.tell(errors.DoesNotFit(span=span, who=f'pool "{pool.path}"', reason=reason))
        return POISON
    message = tokens.with_shape(tokens.shape[len(tokens.shape) - max(ranks) :])
    site.context.messages.setdefault(pool.path, (message,))
    site.context.first_used[pool.path] = FirstUse(site.naming.node, span)
    with site.context.applying(pool.span, span), site.context.within(None):
        regions = [_region(pool, template, message, site) for template in pool.templates]
    whole = [region for region in regions if isinstance(region, Region)]
    if len(whole) < len(regions):
        return POISON
    results = [result for region in whole for result in region.result_types]
    for index, result in enumerate(results):
        if not result.meets(results[0]):
            reason = f"module {index} yields {result}, and module 0 yields {results[0]}"
            advice = "give the modules of a pool one type of result"
            who = f'pool "{pool.path}"'
            site.tell(errors.DoesNotFit(span=pool.span, who=who, reason=reason, way_out=advice))
            return POISON
    facts: Any = {"grown": pool.grown, "shares": pool.shares, "span": pool.span, "within": pool.within}
    node = PoolNode(name=pool.path, size=pool.size, regions=tuple(whole), **facts)
    if node.alike:
        ops = node.regions[0].graph.of_kind(OpNode)
        site.context.count_weights((node.size - 1) * sum(len(each.op.all_weights()) for each in ops), span)
    return node if site.add(node, pool.span) else POISON


def _takes(pool: PoolNode, tokens: TensorType) -> bool:
    """Whether a value ends with what a pool's modules take, as its first use said."""
    rank = len(pool.message.shape)
    return len(tokens.shape) >= rank and shapes_meet(tokens.shape[len(tokens.shape) - rank :], pool.message.shape)


def _tell_other(pool: PoolNode, tokens: TensorType, span: Span, site: Site) -> Poison:
    first = site.context.first_used[pool.name]
    notes = (Note(text=f'first used here, in "{first.within}"', span=first.span),)
    facts: Any = {"pool": pool.name, "takes": pool.message, "within": site.naming.node, "found": tokens}
    site.tell(errors.PoolUsedOtherwise(span=span, notes=notes, **facts))
    return POISON


def _region(pool: PoolEntity, template: Any, message: TensorType, site: Site) -> Region | Poison:
    """One module of a pool."""
    graph = Graph(pool.path)
    scope = Scope(outer=site.scope, frozen=pool.frozen)
    inside = Site(site.context, site.rules, graph, scope, Naming("", "", scope), region=True)
    inside.add(InputNode(name="x", types=(message,), span=pool.span), pool.span)
    value, parts = Tensor(Result("x"), message), site.context.messages[pool.path]
    taken = (value,) if len(parts) < 2 else taken_apart(value, parts, pool.span, _beside("sent", inside))
    result = POISON if isinstance(taken, Poison) else inside.apply(template, taken, pool.span)
    yielded = several(result)
    if all(isinstance(each, Tensor) for each in yielded) and _yields_alike(yielded, pool, site):
        whole = as_one(yielded, pool.span, _beside("yielded", inside))
        return POISON if isinstance(whole, Poison) else Region(graph, ("x",), (whole.result,))
    if not any(isinstance(each, Tensor | Poison) for each in yielded):
        reason = "its modules must yield values"
        site.tell(errors.DoesNotFit(span=pool.span, who=f'pool "{pool.path}"', reason=reason))
    return POISON


def _beside(word: str, site: Site) -> Site:
    """Where what lays values side by side stands in a module: beside the module's own ops."""
    return site.under(Naming(word, word, site.scope))


def _yields_alike(values: tuple[Tensor, ...], pool: PoolEntity, site: Site) -> bool:
    """Whether a module yields as many values as the first did, and of these types where they are several."""
    types = tuple(each.type for each in values)
    first = site.context.yields.setdefault(pool.path, types)
    if len(first) == len(types) and (len(types) == 1 or all(map(TensorType.meets, types, first))):
        return True
    shown = " and ".join(map(str, types)), " and ".join(map(str, first))
    reason, advice = f"a module yields {shown[0]}, and module 0 yields {shown[1]}", "give all the same types of results"
    site.tell(errors.DoesNotFit(span=pool.span, who=f'pool "{pool.path}"', reason=reason, way_out=advice))
    return False
