"""Routes values through pools, by a router or by weights: adds the pool's region, the router, and the route."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from modgraph import ir
from modgraph.diagnostics import Note, Span
from modgraph.elaboration import errors
from modgraph.elaboration.apply import SEND, agree_on_weights, apply_op, report_misfit
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import (
    POISON,
    OpUse,
    Poison,
    PoolEntity,
    PoolMember,
    RouterEntity,
    RouterUse,
    Tensor,
    flatten_values,
)
from modgraph.elaboration.messages import (
    infer_message_ranks,
    pack_message,
    pack_results,
    refuse,
    unpack_message,
    unpack_results,
)
from modgraph.elaboration.nodes import add_node, adopt_node, find_node, is_own
from modgraph.elaboration.route_choice import choose_router, find_choice, repeat_for_slots
from modgraph.elaboration.router_text import inline_router
from modgraph.elaboration.scope import Naming, Scope
from modgraph.elaboration.sparsity import compute_choice
from modgraph.ir import Graph, InputNode, Node, PoolNode, Region, Result, RouteNode, RouterNode, find_pool_types
from modgraph.routers import Router
from modgraph.routers.choice import TokenChoice
from modgraph.routers.weighted import EveryModule, OneModule, Weighted
from modgraph.types import Misfit, TensorType, shapes_meet


@dataclass(frozen=True)
class ByRouter:
    """A router, its operands after the routed value, and its pools after the pool that it routes to."""

    router: RouterEntity
    others: tuple[Tensor, ...]
    pools: tuple[PoolEntity, ...] = ()


@dataclass(frozen=True)
class ByWeights:
    """Weights, and the axis to sum, by name or counted from the last; None if the text leaves it out. Over `edges`, the
    messages of each node are summed."""

    weights: Tensor
    over: str | int | None
    edges: Tensor | None = None


Weighting = ByRouter | ByWeights


def apply_pool(pool: PoolEntity, value: Tensor, weighting: Weighting | None, span: Span, elaborator: Elaborator) -> Any:
    """Route a value through a pool: by a router, by weights, or to every module; poison after a reported mistake."""
    node = _require_pool(pool, value.type, span, elaborator)
    if isinstance(node, Poison):
        return POISON
    if isinstance(weighting, ByRouter):
        return _apply_router(pool, node, weighting, value, span, elaborator)
    if isinstance(weighting, ByWeights):
        return _apply_weights(pool, node, value, weighting, span, elaborator)
    return _apply_every_module(pool, node, value, span, elaborator)


def _apply_router(
    pool: PoolEntity, node: PoolNode, weighting: ByRouter, tokens: Tensor, span: Span, elaborator: Elaborator
) -> Any:
    router, others, pools = weighting.router, weighting.others, weighting.pools
    if isinstance(router.router, RouterUse):
        if node.size == 1 and not pool.has_literal_size:
            elaborator.context.report_unless_growing(node.axis.name, errors.SingleModule(span=span, router=router.path))
        return inline_router(node, (pool, *pools), router, (tokens, *others), span, elaborator)
    if pools:
        return elaborator.report(
            errors.RouterPools(span=span, name=router.router.name, wanted="one", given=1 + len(pools))
        )
    if not _can_choose(node, router, span, elaborator):
        return POISON
    return _route(pool.word, node, router, (tokens, *others), span, elaborator)


def _can_choose(pool: PoolNode, router: RouterEntity, span: Span, elaborator: Elaborator) -> bool:
    """Whether a router can choose among a pool's modules; warn if there is nothing to choose."""
    declared: Any = router.router
    count: int = declared.active_modules(pool.size)
    decision = elaborator.decision
    path, where = router.path, router.span
    used: tuple[Note, ...] = (Note(text="used here", span=span),)
    if decision is not None:  # the route belongs to a definition, so its router is at fault
        path, where, used = decision.router, decision.span, ()
    facts: Any = {"router": path, "pool": pool.name, "size": pool.size}
    if count > pool.size:
        elaborator.report(errors.SelectsTooMany(span=where, notes=used, k=count, **facts))
    elif pool.size == 1 and decision is None:  # for a definition, its use is reported
        elaborator.context.report_unless_growing(pool.axis.name, errors.SingleModule(span=span, router=path))
    elif 1 < pool.size == count and declared.chooses_along is not None:
        elaborator.report(errors.SelectsAll(span=where, **facts))
    return count <= pool.size


def _apply_every_module(pool: PoolEntity, node: PoolNode, value: Tensor, span: Span, elaborator: Elaborator) -> Any:
    """Run every module on the value, or each on its row if the value has the axis of the modules."""
    outer = value.type.shape[: len(value.type.shape) - len(node.message.shape)]
    rows = bool(outer) and outer[-1] == pool.axis
    name, _ = elaborator.naming.next("every_module")
    return _route(
        pool.word, node, _make_router(name, EveryModule(rows=rows), span, elaborator), (value,), span, elaborator
    )


def apply_member(member: PoolMember, values: tuple[Tensor, ...], span: Span, elaborator: Elaborator) -> Any:
    """Apply one module of a pool to every message."""
    pool = member.pool
    message = pack_message(pool, values, span, elaborator) if is_own(pool, span, elaborator) else POISON
    if isinstance(message, Poison):
        return POISON
    node = _require_pool(pool, message.type, span, elaborator)
    if isinstance(node, Poison):
        return POISON
    name, _ = elaborator.naming.next("one_module")
    router = _make_router(name, OneModule(index=member.index), span, elaborator)
    return unpack_results(pool, _route(pool.word, node, router, (message,), span, elaborator), span, elaborator)


def _make_router(name: str, router: Router, span: Span, elaborator: Elaborator) -> RouterEntity:
    return RouterEntity(path=name, router=router, frozen=False, span=span, within=elaborator.context.call)


def _apply_weights(
    pool: PoolEntity, node: PoolNode, value: Tensor, weighting: ByWeights, span: Span, elaborator: Elaborator
) -> Any:
    """Route a value by weights, over the pool's axis unless the text names another; over edges, every module sends."""
    if weighting.edges is not None:
        messages = _apply_every_module(pool, node, value, span, elaborator)
        if isinstance(messages, Poison):
            return POISON
        return apply_op(OpUse(SEND()), (messages, weighting.edges, weighting.weights), span, elaborator)
    name, _ = elaborator.naming.next("weighted")
    over, shape = weighting.over, weighting.weights.type.shape
    place = isinstance(over, int) and -len(shape) <= over < 0
    if over is None or (place and shape[int(over)] == node.axis):  # the modules' axis is summed by name
        over = node.axis.name
    at_choice = elaborator.with_naming(Naming(f"{name}_choice", f"{name}_choice", elaborator.scope))
    found = None
    if over == node.axis.name:
        repeated = repeat_for_slots(value, weighting.weights, node, span, at_choice)
        if isinstance(repeated, Poison):
            return POISON
        found = find_choice(weighting.weights, repeated, node, span, at_choice)
        value = value if found is None else repeated
    if found is None:
        router = _make_router(name, Weighted(over=over), span, elaborator)
        return _route(pool.word, node, router, (value, weighting.weights), span, elaborator)
    weights, support = found
    kind, k = choose_router(support)
    decision = elaborator.decision
    has_record = decision is not None and (decision.records_choice or decision.gates_in is elaborator.graph)
    # nothing reads the records of a route in a pool's module, and those over a large pool are too large
    records = not (has_record or elaborator.region or node.is_large)
    choose = kind(k=k or node.size, straight=support.straight, record_choice=records)
    router = _make_router(name, choose, span, elaborator)
    if kind is TokenChoice and k is not None and not _can_choose(node, router, span, elaborator):
        return POISON
    behind = compute_choice(support, weights, at_choice)
    if isinstance(behind, Poison):
        return POISON
    if decision is not None and decision.gates_in is elaborator.graph:
        decision.choices.append(behind[1])
    return _route(pool.word, node, router, (value, weights, *behind), span, elaborator)


def _route(
    word: str, pool: PoolNode, router: RouterEntity, values: tuple[Tensor, ...], span: Span, elaborator: Elaborator
) -> Any:
    who = f'pool "{pool.name}"'
    if not isinstance(router.router, EveryModule | OneModule | Weighted | TokenChoice):
        who = f'router "{router.path}" over {who}'
    assert isinstance(router.router, Router)
    try:
        signature = elaborator.context.bind_signature(
            router.router, tuple(value.type for value in values), find_pool_types(pool)
        )
        shapes = signature.weight_shapes
    except Misfit as misfit:
        return report_misfit(misfit, who, values, span, elaborator)
    if not agree_on_weights(router.path, shapes, span, elaborator):
        return POISON
    if not adopt_node(router.path, elaborator):
        facts: Any = {"span": router.span, "frozen": router.frozen, "within": router.within}
        add_node(elaborator, RouterNode(name=router.path, router=router.router, **facts), span)
    name, _ = elaborator.naming.next(word)
    elaborator.context.shorter[name] = elaborator.naming.shorter(name)
    slots = router.router.slots_of(len(values))
    inputs = {slot: value.result for slot, value in zip(slots, values, strict=True)}
    route = RouteNode(name=name, types=signature.results, span=span)
    if not add_node(
        elaborator, route, span, inputs, {"pool": pool.name, "router": router.path}, signature.padded, signature
    ):
        return POISON
    return Tensor(Result(name), signature.results[0], span)


def _require_pool(pool: PoolEntity, tokens: TensorType, span: Span, elaborator: Elaborator) -> PoolNode | Poison:
    """Return the node of a pool, created at its first use, which fixes the type of its messages."""
    node = find_node(pool.path, elaborator)
    if isinstance(node, PoolNode):
        split = len(tokens.shape) - len(node.message.shape)
        if split >= 0 and shapes_meet(tokens.shape[split:], node.message.shape):
            return node
        notes = (elaborator.context.first_used[pool.whole_path],)
        facts: Any = {"pool": node.name, "takes": node.message, "within": elaborator.naming.node, "found": tokens}
        return elaborator.report(errors.PoolUsedOtherwise(span=span, notes=notes, **facts))
    message = _infer_message(pool, tokens, span, elaborator)
    if isinstance(message, Poison):
        return POISON
    elaborator.context.messages.setdefault(pool.whole_path, (message,))
    elaborator.context.first_used[pool.whole_path] = Note(
        text=f'first used here, in "{elaborator.naming.node}"', span=span
    )
    before = elaborator.context.counts["weights"]
    with elaborator.context.enter_application(pool.span, span), elaborator.context.enter_modules(span):
        regions = [_elaborate_module(pool, at, message, elaborator) for at in range(len(pool.templates))]
    whole = [region for region in regions if isinstance(region, Region)]
    if len(whole) < len(regions):
        return POISON
    results = [result for region in whole for result in region.result_types]
    for index, result in enumerate(results):
        if not result.meets(results[0]):
            reason = f"module {index} yields {result}, and module 0 yields {results[0]}"
            return refuse(pool, Misfit(reason, "give the modules of a pool one type of result"), pool.span, elaborator)
    facts = {"grown": pool.grown, "shares": pool.shares, "inside": pool.inside, "within": pool.within}
    node = PoolNode(name=pool.path, size=pool.size, regions=tuple(whole), span=pool.span, **facts)
    if node.is_homogeneous:  # a pool inside a pool counts as a tensor for each of its modules
        tensors = max(elaborator.context.counts["weights"] - before, bool(elaborator.region))
        elaborator.context.count("weights", (1 if node.is_large else node.size - 1) * tensors, span)
    return node if add_node(elaborator, node, pool.span) else POISON


def _infer_message(pool: PoolEntity, tokens: TensorType, span: Span, elaborator: Elaborator) -> TensorType | Poison:
    """Return the type of message that the modules of a pool take of a value: its last axes."""
    if tokens.per == "batch":
        reason = f"its modules take a value of each example, not {tokens}"
        return refuse(pool, Misfit(reason, "send a value of each example"), span, elaborator)
    parts = elaborator.context.messages.get(pool.whole_path, ())
    ranks = [1] if parts else [rank for each in pool.templates for rank in infer_message_ranks(each, 1, elaborator)]
    if len(tokens.shape) < max(ranks):
        return refuse(pool, Misfit(f"its modules take {max(ranks)} axes, not {tokens}"), span, elaborator)
    return tokens.with_shape(tokens.shape[len(tokens.shape) - max(ranks) :])


def _elaborate_module(pool: PoolEntity, at: int, message: TensorType, elaborator: Elaborator) -> Region | Poison:
    """Elaborate one module of a pool from the template at a place."""
    graph, span = Graph(pool.path), pool.span
    scope = Scope(outer=elaborator.scope, frozen=pool.frozen)
    path = pool.whole_path if len(pool.templates) == 1 else f"{pool.whole_path}.{at}"
    inside = Elaborator(elaborator.context, elaborator.rules, graph, scope, Naming("", "", scope), region=path)

    def name_ops(word: str) -> Elaborator:  # for the ops that pack and unpack messages
        return inside.with_naming(Naming(word, word, scope))

    add_node(inside, InputNode(name="x", types=(message,), span=span), span)
    value, parts = Tensor(Result("x"), message), elaborator.context.messages[pool.whole_path]
    taken = (value,) if len(parts) < 2 else unpack_message(value, parts, span, name_ops("sent"))
    yielded = flatten_values(POISON if isinstance(taken, Poison) else inside.apply(pool.templates[at], taken, span))
    if not all(isinstance(each, Tensor) for each in yielded):
        if not any(isinstance(each, Tensor | Poison) for each in yielded):
            refuse(pool, Misfit("its modules must yield values"), span, elaborator)
        return POISON
    types = tuple(each.type for each in yielded)
    first = elaborator.context.yields.setdefault(pool.whole_path, types)
    if len(first) != len(types) or (len(types) > 1 and not all(map(TensorType.meets, types, first))):
        found = " and ".join(map(str, types)), " and ".join(map(str, first))
        reason = f"a module yields {found[0]}, and module 0 yields {found[1]}"
        return refuse(pool, Misfit(reason, "give all the same types of results"), span, elaborator)
    whole = pack_results(yielded, span, name_ops("yielded"))
    return POISON if isinstance(whole, Poison) else _drop_records(Region(graph, ("x",), (whole.result,)))


def _drop_records(region: Region) -> Region:
    """Remove ops that only unread records of routers need; ops with weights stay."""
    graph = region.graph

    def only_records(node: Node) -> bool:
        in_router = any(each.kind == "router" for each in node.calls)
        return isinstance(node, ir.OpNode) and not node.op.all_weights() and in_router

    ends = [node.name for node in graph if not only_records(node)]
    kept = graph.ancestors([*ends, *(result.node for result in region.results)])

    def rule(node: Node, part: ir.Part) -> Node | None:
        return node if part.graph is not graph or node.name in kept else None

    return region if len(kept) == len(graph) else replace(region, graph=ir.rewrite_graph(graph, rule))
