"""Uses of routers that are written in the language: their body is inlined, a node keeps what they decide."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from modgraph.declare import CHOSEN, Record, Role
from modgraph.diagnostics import Span
from modgraph.elaboration import errors
from modgraph.elaboration.bodies import BlockCall, Decision
from modgraph.elaboration.context import BLOCK
from modgraph.elaboration.decisions import mask_padding, record, unbind
from modgraph.elaboration.entities import POISON, PoolEntity, RouterEntity, RouterUse, Tensor
from modgraph.elaboration.scope import Naming, Scope
from modgraph.elaboration.site import Site
from modgraph.elaboration.sparsity import support_of
from modgraph.ir import DecisionNode, Graph, OpNode, PoolNode, RouterNode, drawn_by
from modgraph.ops.along_axis import Softmax
from modgraph.routers import RouterFacts
from modgraph.syntax import ast
from modgraph.types import Axis, Shape


@dataclass(frozen=True)
class Operands:
    """What a router is used on: the value that it routes, and others beside it."""

    tokens: Tensor
    others: tuple[Tensor, ...]
    span: Span


def inline_router(pools: tuple[PoolEntity, ...], router: RouterEntity, operands: Operands, site: Site) -> Any:
    """The value of a route by a router that is written in the language, or poison after a told mistake."""
    use = router.router
    assert isinstance(use, RouterUse)
    definition = use.block.definition
    if not _fits(definition, pools, operands, site):
        return POISON
    inside = _inside(pools, router, use, operands, site)
    context = site.context
    context.spend(BLOCK + len(definition.parameters), operands.span)
    found: Any = POISON
    context.uses.append(operands.span)
    if not site.region:
        _declare(router, use, operands.span, site)
    with context.using("router", definition.name, inside.naming, operands.span, definition):
        inside.elaborate(definition.body)
        assert inside.call is not None
        value = _output(inside.call, definition, operands, site)
        node = site.graph_node(pools[0].path)
        if isinstance(value, Tensor) and isinstance(node, PoolNode):
            found = _decide(value, node, router, use, operands, inside)
    context.uses.pop()
    return found


def _fits(definition: ast.Definition, pools: tuple[PoolEntity, ...], operands: Operands, site: Site) -> bool:
    name = definition.name
    if len(pools) != len(definition.pools):
        facts: Any = {"name": name, "wanted": ", ".join(definition.pools), "given": len(pools)}
        site.tell(errors.RouterPools(span=operands.span, **facts))
        return False
    if any(pool.axis != pools[0].axis for pool in pools):
        facts = {"needed": "pools that share an axis", "found": " and ".join(f'"{each.path}"' for each in pools)}
        site.tell(errors.WrongKind(span=operands.span, **facts, way_out=f"pool {pools[1].path}[{pools[0].path}] = …"))
        return False
    return True


def _inside(
    pools: tuple[PoolEntity, ...], router: RouterEntity, use: RouterUse, operands: Operands, site: Site
) -> Site:
    """Where the body stands: weights are called below the router, nodes below its use."""
    definition = use.block.definition
    node, _ = site.naming.next(pools[0].word)
    site.context.shorter[node] = site.naming.shorter(node)
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
    values = [operands.tokens, *operands.others]
    call = BlockCall(definition.name, values, span=operands.span, decision=decision, defining=defining)
    return replace(site, scope=scope, naming=Naming(node, router.path, scope), call=call)


def _output(call: BlockCall, definition: ast.Definition, operands: Operands, site: Site) -> Any:
    if call.taken != 1 + len(operands.others):
        facts: Any = {"kind": "router", "inputs": call.taken, "given": 1 + len(operands.others)}
        return site.tell(errors.BlockOperands(span=operands.span, name=definition.name, **facts))
    if len(call.outputs) != 1:
        if not site.context.report.errors:
            site.tell(errors.RouterOutputs(span=definition.name_span, name=definition.name, count=len(call.outputs)))
        return POISON
    return call.outputs[0]


def _decide(
    value: Tensor, pool: PoolNode, router: RouterEntity, use: RouterUse, operands: Operands, inside: Site
) -> Any:
    """What the use yields: the value of the body, as its surroundings see it, beside a node for what was decided."""
    decision, senders = inside.decision, operands.tokens.type.shape
    assert decision is not None
    senders = senders[: len(senders) - len(pool.message.shape)]
    records: dict[str, list[Any]] = {
        name: [POISON if role is None else record(each, role, senders, pool.axis, inside) for each, role in rounds]
        for name, rounds in decision.records.items()
    }
    value = mask_padding(unbind(value, decision, inside), inside)
    if not isinstance(value, Tensor) or any(each is POISON for rounds in records.values() for each in rounds):
        return POISON
    rounds = min(map(len, records.values()), default=1)
    declared = tuple(Record(name, "...", each[-1][1]) for name, each in decision.records.items())
    made = {name: each[-1][0] for name, each in decision.records.items()}
    facts = _facts(value, made, declared, pool, senders, inside.graph)
    if inside.region:
        return value if _may_decide(router, facts, operands.span, inside) else POISON
    name = inside.naming.node
    node = DecisionNode(name=name, span=operands.span, records=declared, rounds=rounds, facts=facts)
    decides = (node.records, node.rounds, node.facts)
    if inside.context.decides.setdefault(router.path, decides) != decides:
        return inside.tell(errors.DecidesOtherwise(span=node.span, name=router.path))
    inputs = {"tokens": operands.tokens.result, "value": value.result}
    for at in (rounds, *range(1, rounds)):
        inputs |= {node.slot(each, at): found[at - rounds - 1].result for each, found in records.items()}
    if not inside.add(node, operands.span, inputs, {"pool": pool.name, "router": router.path}):
        return POISON
    inside.context.decisions[name] = decision
    return value


def _may_decide(router: RouterEntity, facts: RouterFacts, span: Span, site: Site) -> bool:
    """Whether a router can route in a module of a pool: no algorithm learns of decisions that are drawn there."""
    if facts.draws:
        advice = "let a router of the model draw, and choose by linear(k=1) in its modules"
        what = f'the router "{router.path}", which draws its choice,'
        site.tell(errors.NotInRegion(span=span, what=what, way_out=advice))
    return not facts.draws


def _declare(router: RouterEntity, use: RouterUse, span: Span, site: Site) -> None:
    """Add the node of a router at its first use."""
    if not site.shares(router.path):
        facts: Any = {"span": router.span, "frozen": router.frozen, "within": router.within}
        site.add(RouterNode(name=router.path, router=use.text, **facts), span)


def _facts(
    value: Tensor,
    made: dict[str, Tensor],
    records: tuple[Record, ...],
    pool: PoolNode,
    senders: Shape,
    graph: Graph,
) -> RouterFacts:
    """How a router decides, as its body says."""
    one: Literal["sender", "module", "pair"] = "sender"
    if pool.axis in value.type.shape:
        axes = max(1, len(senders)) + len(pool.result.shape)  # a value without an axis of senders is one of them
        one = "pair" if len(value.type.shape) > axes else "module"
    choice = next((each for each in records if each.role in CHOSEN), None)
    gates = next((made[each.name] for each in records if each.role is Role.GATES), None)
    if choice is None:
        return RouterFacts(one, balanced=gates is not None and _competes(gates, pool.axis, graph))
    chosen = made[choice.name]
    support = support_of(chosen.result, graph)
    along: Literal["modules", "senders"] = "modules"
    if support is not None and support.axis not in (None, pool.axis):
        along = "senders"
    slots = chosen.type.shape[-2].size or 0 if choice.role is Role.SLOTS else 1
    k = 0 if support is None or along == "senders" else (support.bound.k or 0) * slots
    drawn, hard = drawn_by(chosen.result, graph) is not None, gates is not None and _is_choice(gates, graph)
    balanced = along == "modules" and not hard and not (drawn and gates is None)
    return RouterFacts(one, along, k, balanced, draws=drawn and (gates is None or hard))


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
