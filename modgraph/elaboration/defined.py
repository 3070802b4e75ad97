"""Routers that the language defines, where they are used: their body is put in, and a route shows what it decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from modgraph.declare import CHOSEN, Role
from modgraph.diagnostics import Span
from modgraph.elaboration import errors
from modgraph.elaboration.bodies import BlockCall, Decision
from modgraph.elaboration.context import BLOCK
from modgraph.elaboration.decisions import left, recorded
from modgraph.elaboration.entities import POISON, PoolEntity, RouterEntity, RouterUse, Tensor
from modgraph.elaboration.scope import Naming, Scope
from modgraph.elaboration.site import Site
from modgraph.elaboration.sparsity import support_of
from modgraph.ir import Call, Graph, OpNode, PoolNode, Result, RouteNode, RouterNode, drawn_by
from modgraph.ops.along_axis import Softmax
from modgraph.routers.defined import Defined
from modgraph.syntax import ast
from modgraph.types import Axis, Shape


@dataclass(frozen=True)
class Sent:
    """What is sent by a router: a value, and operands beside it."""

    tokens: Tensor
    others: tuple[Tensor, ...]
    span: Span


def decided(pools: tuple[PoolEntity, ...], router: RouterEntity, sent: Sent, site: Site) -> Any:
    """The value of a route by a router that the language defines, or poison after a told mistake."""
    use = router.router
    assert isinstance(use, RouterUse)
    definition = use.block.definition
    if not _fits(definition, pools, sent, site):
        return POISON
    inside = _inside(pools, router, use, sent, site)
    context = site.context
    context.spend(BLOCK + len(definition.parameters), sent.span)
    shown: Any = POISON
    context.uses.append(sent.span)
    call = Call("router", definition.name, inside.naming.node, router.path, context.call, span=sent.span)
    with context.putting_in(definition, sent.span), context.within(call):
        inside.elaborate(definition.body)
        assert inside.call is not None
        value = _output(inside.call, definition, sent, site)
        node = site.graph_node(pools[0].path)
        if isinstance(value, Tensor) and isinstance(node, PoolNode):
            shown = _shown(value, node, router, use, sent, inside)
    context.uses.pop()
    return shown


def _fits(definition: ast.Definition, pools: tuple[PoolEntity, ...], sent: Sent, site: Site) -> bool:
    name = definition.name
    if len(pools) != len(definition.pools):
        facts: Any = {"name": name, "wanted": ", ".join(definition.pools), "given": len(pools)}
        site.tell(errors.RouterPools(span=sent.span, **facts))
        return False
    if any(pool.axis != pools[0].axis for pool in pools):
        facts = {"needed": "pools that share an axis", "found": " and ".join(f'"{each.path}"' for each in pools)}
        site.tell(errors.WrongKind(span=sent.span, **facts, way_out=f"pool {pools[1].path}[{pools[0].path}] = …"))
        return False
    return True


def _inside(pools: tuple[PoolEntity, ...], router: RouterEntity, use: RouterUse, sent: Sent, site: Site) -> Site:
    """Where the body stands: weights are called below the router, nodes below its use."""
    definition = use.block.definition
    node, _ = site.naming.next(pools[0].word)
    scope = Scope(router.path, node, use.block.scope, frozen=router.frozen or site.scope.frozen)
    scope.declare_parameters(use.parameters, use.spans)
    for name, pool in zip(definition.pools, pools, strict=True):
        scope.declare(name, pool)
    message = site.graph_node(pools[0].path)
    decision = Decision(
        router.path,
        router.span,
        definition.axis_words,
        Naming(f"{node}.axes", f"{node}.axes", scope),
        pools[0].axis,
        message_rank=len(message.message.shape) if isinstance(message, PoolNode) else 0,
        shows_choice=use.record_as(*CHOSEN) is not None,
    )
    defining = (*site.defining, id(definition))
    operands = [sent.tokens, *sent.others]
    call = BlockCall(definition.name, operands, span=sent.span, decision=decision, defining=defining)
    return replace(site, scope=scope, naming=Naming(node, router.path, scope), call=call)


def _output(call: BlockCall, definition: ast.Definition, sent: Sent, site: Site) -> Any:
    if call.taken != 1 + len(sent.others):
        facts: Any = {"kind": "router", "inputs": call.taken, "given": 1 + len(sent.others)}
        site.tell(errors.BlockOperands(span=sent.span, name=definition.name, **facts))
        return POISON
    if len(call.outputs) != 1:
        if not site.context.report.errors:
            site.tell(errors.RouterOutputs(span=definition.name_span, name=definition.name, count=len(call.outputs)))
        return POISON
    return call.outputs[0]


def _shown(value: Tensor, pool: PoolNode, router: RouterEntity, use: RouterUse, sent: Sent, inside: Site) -> Any:
    """The route, whose value is that of the body, with what was recorded."""
    assert inside.call is not None and inside.call.decision is not None
    decision, senders = inside.call.decision, sent.tokens.type.shape
    senders = senders[: len(senders) - len(pool.message.shape)]
    kept: dict[str, list[Any]] = {
        name: [POISON if role is None else recorded(each, role, senders, pool.axis, inside) for each, role in rounds]
        for name, rounds in decision.records.items()
    }
    value = left(value, inside)
    if not isinstance(value, Tensor) or any(each is POISON for rounds in kept.values() for each in rounds):
        return POISON
    roles = {name: rounds[-1][1] for name, rounds in decision.records.items()}
    made = {name: rounds[-1][0] for name, rounds in decision.records.items()}
    facts = _facts(value, made, roles, pool, senders, inside.graph)
    if inside.region:
        return value if _may_decide(router, facts, sent.span, inside) else POISON
    before = min((len(rounds) for rounds in kept.values()), default=1) - 1
    names = tuple(word for name, role in roles.items() for word in (name, role.name.lower()))
    facts |= {"given": use.given, "defaults": use.not_given, "recorded": names, "rounds_before": before}
    declared = Defined(definition=use.name, **facts)
    last = [rounds[-1] for rounds in kept.values()]
    earlier = [rounds[at - before - 1] for at in range(before) for rounds in kept.values()]
    return _route(declared, [sent.tokens, value, *last, *earlier], pool, router, sent.span, inside)


def _may_decide(router: RouterEntity, facts: Mapping[str, Any], span: Span, site: Site) -> bool:
    """Whether a router can route in a module of a pool: no algorithm learns of decisions that are drawn there."""
    if facts.get("draws"):
        advice = "let a router of the model draw, and choose by linear(k=1) in its modules"
        what = f'the router "{router.path}", which draws its choice,'
        site.tell(errors.NotInRegion(span=span, what=what, way_out=advice))
    return not facts.get("draws")


def _route(
    declared: Defined, values: list[Tensor], pool: PoolNode, router: RouterEntity, span: Span, inside: Site
) -> Any:
    if not inside.shares(router.path):
        facts: Any = {"span": router.span, "frozen": router.frozen, "within": router.within}
        node = RouterNode(name=router.path, router=declared, **facts)
        inside.add(node, span)
    elif inside.graph[router.path] != RouterNode(name=router.path, router=declared, frozen=router.frozen):
        inside.tell(errors.DecidesOtherwise(span=span, name=router.path))
        return POISON
    name = inside.naming.node
    inputs = {slot: each.result for slot, each in zip(declared.slots_of(0), values, strict=True)}
    shown = values[1 : 2 + len(declared.record_names)]
    route = RouteNode(name=name, types=tuple(each.type for each in shown), span=span)
    padded = dict.fromkeys(axis for each in values[1:] for axis in each.type.padded)
    if not inside.add(route, span, inputs, {"pool": pool.name, "router": router.path}, padded):
        return POISON
    return Tensor(Result(name), values[1].type, span)


def _facts(
    value: Tensor,
    kept: dict[str, Tensor],
    roles: dict[str, Role],
    pool: PoolNode,
    senders: Shape,
    graph: Graph,
) -> dict[str, Any]:
    """What a router is to those who read the graph, as its body says."""
    one = "sender"
    if pool.axis in value.type.shape:
        axes = max(1, len(senders)) + len(pool.result.shape)  # a value without an axis of senders is one of them
        one = "pair" if len(value.type.shape) > axes else "module"
    facts: dict[str, Any] = {"one_for_each": one}
    choice = next(((kept[name], role) for name, role in roles.items() if role in CHOSEN), None)
    gates = next((kept[name] for name, role in roles.items() if role is Role.GATES), None)
    if choice is None:
        return facts | {"balanced": gates is not None and _competes(gates, pool.axis, graph)}
    support = support_of(choice[0].result, graph)
    along = "modules" if support is None or support.axis in (None, pool.axis) else "senders"
    slots = choice[0].type.shape[-2].size or 0 if choice[1] is Role.SLOTS else 1
    k = 0 if support is None or along == "senders" else (support.bound.k or 0) * slots
    drawn, hard = drawn_by(choice[0].result, graph) is not None, gates is not None and _is_choice(gates, graph)
    balanced = along == "modules" and not hard and not (drawn and gates is None)
    draws = drawn and (gates is None or hard)
    return facts | {"chooses_along": along, "k": k, "balanced": balanced, "draws": draws}


def _is_choice(gates: Tensor, graph: Graph) -> bool:
    """Whether gates are a choice and nothing more, or how often slots chose: no gradient passes them."""
    support = support_of(gates.result, graph)
    return support is not None and support.pure and not support.straight


def _competes(gates: Tensor, modules: Axis, graph: Graph) -> bool:
    """Whether modules compete for a sender: gates are a softmax over them."""
    node = graph[gates.result.node]
    if not isinstance(node, OpNode) or not isinstance(node.op, Softmax):
        return False
    position: int = graph.signature(node).axes["position"]
    return node.types[0].shape[position] == modules
