"""Inlines routers that are defined in the language; a node keeps what they decide."""

from __future__ import annotations

from typing import Any, Literal

from modgraph.declare import CHOICES, Record, Role, record_as
from modgraph.diagnostics import Span
from modgraph.elaboration import errors
from modgraph.elaboration.blocks import enter_body
from modgraph.elaboration.context import BLOCK, Decision
from modgraph.elaboration.decisions import mask_padding, record, unbind
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import POISON, PoolEntity, RouterEntity, RouterUse, Tensor
from modgraph.elaboration.nodes import add_node, adopt_node
from modgraph.elaboration.scope import Naming
from modgraph.elaboration.sparsity import find_support
from modgraph.ir import DecisionNode, Graph, OpNode, PoolNode, RouterNode, find_draw
from modgraph.ops.along_axis import Softmax
from modgraph.routers import RouterFacts
from modgraph.types import Shape

DRAWS = "let a router of the model sample, and choose by linear(k=1) in its modules"


def inline_router(
    pool: PoolNode,
    pools: tuple[PoolEntity, ...],
    router: RouterEntity,
    values: tuple[Tensor, ...],
    span: Span,
    elaborator: Elaborator,
) -> Any:
    """Inline a router that is defined in the language, and return the value of the route or poison.

    The first of the `values` is routed through the `pool`, which is the first of the `pools`.
    """
    use, context = router.router, elaborator.context
    assert isinstance(use, RouterUse)
    definition = use.block.definition
    name, wanted = definition.name, definition.pools
    if len(pools) != len(wanted):
        return elaborator.report(errors.RouterPools(span=span, name=name, wanted=", ".join(wanted), given=len(pools)))
    if any(each.axis != pool.axis for each in pools):
        found = " and ".join(f'"{each.path}"' for each in pools)
        return elaborator.refuse(span, "pools that share an axis", found, f"pool {pools[1].path}[{pools[0].path}] = …")
    node, _ = elaborator.naming.next(pools[0].word)
    inside, call = enter_body(use, (node, router.path), values, span, elaborator, router.frozen)
    inside.scope.names |= dict(zip(wanted, pools, strict=True))
    naming = Naming(f"{node}.axes", f"{node}.axes", inside.scope)
    call.decision = Decision(router.path, router.span, definition.axis_words, naming, pool.axis)
    call.decision.apart = call.apart
    call.decision.message_rank = len(pool.message.shape)
    call.decision.records_choice = record_as(use.records, *CHOICES) is not None
    if record_as(use.records, Role.GATES) is not None and not call.decision.records_choice:
        call.decision.gates_in = inside.graph
    context.spend(BLOCK + len(definition.parameters), span)
    result: Any = POISON
    context.uses.append((span, call.decision))
    if not elaborator.region and not adopt_node(router.path, elaborator):
        facts: Any = {"span": router.span, "frozen": router.frozen, "within": router.within}
        add_node(elaborator, RouterNode(name=router.path, router=use.text, **facts), span)
    with context.enter_use("router", name, inside.naming, span, definition):
        inside.elaborate(definition.body)
        outputs, given = len(call.outputs), len(values)
        if inputs := call.explain_count(given):
            elaborator.report(errors.BlockOperands(span=span, kind="router", name=name, inputs=inputs, given=given))
        elif outputs != 1 and not context.report.errors:
            elaborator.report(errors.RouterOutputs(span=definition.name_span, name=name, count=outputs))
        elif outputs == 1 and isinstance(call.outputs[0], Tensor):
            result = _decide(call.outputs[0], pool, router, values[0], span, inside)
    context.uses.pop()
    return result


def _decide(value: Any, pool: PoolNode, router: RouterEntity, routed: Tensor, span: Span, inside: Elaborator) -> Any:
    """Add the node of a decision and return the value of the body, by the names of its surroundings."""
    decision, token_axes = inside.decision, routed.type.shape
    assert decision is not None
    token_axes = token_axes[: len(token_axes) - len(pool.message.shape)]
    _add_choice(decision)
    records: dict[str, list[Any]] = {
        name: [POISON if role is None else record(each, role, token_axes, pool.axis, inside) for each, role in rounds]
        for name, rounds in decision.records.items()
    }
    value = mask_padding(unbind(value, decision, inside), inside)
    if not isinstance(value, Tensor) or any(each is POISON for rounds in records.values() for each in rounds):
        return POISON
    rounds = min(map(len, records.values()), default=1)
    declared = tuple(Record(name, "...", each[-1][1]) for name, each in decision.records.items())
    made = {name: each[-1][0] for name, each in decision.records.items()}
    facts = _derive_facts(value, made, declared, pool, token_axes, inside.graph)
    if inside.region:  # no algorithm trains choices that are sampled there
        what = f'the sampling router "{router.path}"'
        return inside.report(errors.NotInRegion(span=span, what=what, way_out=DRAWS)) if facts.draws else value
    name = inside.naming.node
    node = DecisionNode(name=name, span=span, records=declared, rounds=rounds, facts=facts)
    decides = (node.records, node.rounds, node.facts)
    if inside.context.decides.setdefault(router.path, decides) != decides:
        return inside.report(errors.DecidesOtherwise(span=span, name=router.path))
    inputs = {"tokens": routed.result, "value": value.result}
    for at in (rounds, *range(1, rounds)):
        inputs |= {node.slot(each, at): found[at - rounds - 1].result for each, found in records.items()}
    if not add_node(inside, node, span, inputs, {"pool": pool.name, "router": router.path}):
        return POISON
    inside.context.decisions[name] = decision
    return value


def _add_choice(decision: Decision) -> None:
    """Record the choice of the routes in a body that records gates alone, if there is one for each round."""
    choices = {each.result: each for each in decision.choices}
    if choices and len(choices) == min(map(len, decision.records.values()), default=0):
        name = next(each for each in ("choice", "chosen", "is_chosen") if each not in decision.records)
        decision.records[name] = [(each, Role.CHOICE) for each in choices.values()]
        decision.roles.add(Role.CHOICE)


def _derive_facts(
    value: Tensor, made: dict[str, Tensor], records: tuple[Record, ...], pool: PoolNode, token_axes: Shape, graph: Graph
) -> RouterFacts:
    """Derive from the body how a router decides."""
    one: Literal["sender", "module", "pair"] = "sender"
    if pool.axis in value.type.shape:
        axes = max(1, len(token_axes)) + len(pool.result.shape)  # a value without token axes is one token
        one = "pair" if len(value.type.shape) > axes else "module"
    choice = next((each for each in records if each.role in CHOICES), None)
    gates = next((made[each.name] for each in records if each.role is Role.GATES), None)
    if choice is None:
        node = None if gates is None else graph[gates.result.node]
        if not isinstance(node, OpNode) or not isinstance(node.op, Softmax):
            return RouterFacts(one)
        # modules compete for a token: gates are a softmax over modules
        return RouterFacts(one, balanced=node.types[0].shape[graph.signature(node).axes["position"]] == pool.axis)
    choices = made[choice.name]
    support, by_gates = (None if each is None else find_support(each.result, graph) for each in (choices, gates))
    along: Literal["modules", "senders"] = "modules"
    if support is not None and support.axis not in (None, pool.axis):
        along = "senders"
    slots = choices.type.shape[-2].size or 0 if choice.role is Role.SLOTS else 1
    k = 0 if support is None or along == "senders" else (support.bound.k or 0) * slots
    # gates that equal the choice, or count the choices of slots, pass no gradient
    hard = by_gates is not None and by_gates.pure and not by_gates.straight
    sampled = find_draw(choices.result, graph) is not None
    balanced = along == "modules" and not hard and not (sampled and gates is None)
    return RouterFacts(one, along, k, balanced, draws=sampled and (gates is None or hard))
