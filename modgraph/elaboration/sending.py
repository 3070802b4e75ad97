"""What a value is sent or summed by: a router, or weights over an axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modgraph.diagnostics import did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.apply import apply_op
from modgraph.elaboration.calls import axis_called
from modgraph.elaboration.entities import POISON, OpUse, Poison, PoolEntity, RouterEntity, Tensor, described
from modgraph.elaboration.site import Site
from modgraph.ops.linear import Contract
from modgraph.syntax import ast
from modgraph.types import shown
from modgraph.vocabulary import find_op, is_router


@dataclass(frozen=True)
class ByRouter:
    """A router, its operands beside the value that is sent, and pools beside the one that it is sent to."""

    router: RouterEntity
    others: tuple[Tensor, ...]
    pools: tuple[PoolEntity, ...] = ()


@dataclass(frozen=True)
class ByWeights:
    """Weights, and the axis that is summed: by its name or counted from their last; None where it was left out."""

    weights: Tensor
    over: str | int | None


Means = ByRouter | ByWeights


def means_of(sent: ast.Sent, site: Site) -> Means | Poison:
    """What stands behind `by`; poison after a reported mistake."""
    called = sent.by.callee if isinstance(sent.by, ast.Call) else sent.by
    found: Any = None
    if isinstance(called, ast.Name) and site.scope.find(called.name) is None:
        if isinstance(sent.by, ast.Call) and find_op(called.name) is not None:
            found = site.evaluate(sent.by)
        if not isinstance(found, Tensor | Poison):
            _tell_unknown(called, site)
            return POISON
    elif isinstance(called, ast.Name | ast.Attribute | ast.Index):
        found = site.evaluate(called)
    if isinstance(found, RouterEntity):
        return _by_router(found, sent, site)
    if not isinstance(found, Tensor | Poison) and (called is not sent.by or found is None):
        found = site.evaluate(sent.by)
    if isinstance(found, Poison):
        return POISON
    if isinstance(found, Tensor):
        match sent.over:
            case None:
                return ByWeights(found, None)
            case ast.Name(name=name) | ast.Literal(value=str(name)):
                return ByWeights(found, axis_called(name, site))
            case place:
                return ByWeights(found, int(site.constant(place, "the place of an axis")))
    way_out = "declare it: router NAME = …; or give weights: x -> pool by w over expert"
    facts: Any = {"span": sent.by.span}
    if site.given_at(called) is not None:
        facts = site.at_fault(called)
        way_out = "give a router that is declared, or declare one of that kind in the block: router r = kind"
    facts |= {"needed": "a router or weights", "found": f"this is {described(found)}", "way_out": way_out}
    return site.tell(errors.WrongKind(**facts))


def _by_router(router: RouterEntity, sent: ast.Sent, site: Site) -> Means | Poison:
    if sent.over is not None:
        found, way_out = "a router decides what is summed", f"leave it out: x -> pool by {router.path}"
        return site.tell(errors.WrongKind(span=sent.over.span, needed="nothing", found=found, way_out=way_out))
    others, pools = list[Tensor | Poison](), list[PoolEntity]()
    for value in [each.value for each in sent.by.arguments] if isinstance(sent.by, ast.Call) else ():
        pool = site.evaluate(value) if isinstance(value, ast.Name | ast.Index) else None
        if isinstance(pool, PoolEntity):
            pools.append(pool)
        else:
            others.append(site.tensor(value, "an operand of a router"))
    tensors = tuple(each for each in others if isinstance(each, Tensor))
    return ByRouter(router, tensors, tuple(pools)) if len(tensors) == len(others) else POISON


def _tell_unknown(called: ast.Name, site: Site) -> None:
    """Tell of a name behind `by` that stands for nothing here: a kind of router, an op, or nothing at all."""
    name = called.name
    if site.report_ended(name, called.span):
        return
    if is_router(name) or site.scope.find_router(name) is not None:
        found, way_out = f'"{name}" is a kind of router', f"give it a name: router r = {name}, and x -> pool by r"
        site.tell(errors.WrongKind(span=called.span, needed="a router", found=found, way_out=way_out))
    elif find_op(name) is not None:
        found, way_out = f'"{name}" is an op', f"weights are a value: by (x -> {name})"
        site.tell(errors.WrongKind(span=called.span, needed="a router or weights", found=found, way_out=way_out))
    else:
        known = site.visible(called.span, lambda value: isinstance(value, RouterEntity))
        declare = "declare it: router NAME = …"
        suggestion = did_you_mean(name, known, "the routers here: {known}") if known else declare
        site.tell(errors.UnknownName(span=called.span, name=name, suggestion=suggestion))


def apply_sum(value: Tensor, means: ByWeights, span: Any, site: Site) -> Any:
    """`x by w over AXIS`: Σ w x, the sum of products over an axis that both have."""
    over, shape = means.over, value.type.shape
    if over is None:
        shared = [axis.name for axis in means.weights.type.shape if axis.name and axis in shape]
        if len(shared) != 1:
            found = f"{means.weights.type} and {value.type} share {' and '.join(shared) if shared else 'no named axis'}"
            way_out = f"say which is summed: by … over {shared[0] if shared else -1}"
            return site.tell(errors.WrongKind(span=span, needed="one axis to sum over", found=found, way_out=way_out))
        (over,) = shared
    if isinstance(over, str) and value.type.position(over) is None:
        reason = f'there is no axis "{over}" in {shown(shape)}'
        way_out = f"it has: {', '.join(axis.name for axis in shape if axis.name) or 'no named axis'}"
        return site.tell(errors.DoesNotFit(span=span, who="what is summed", reason=reason, way_out=way_out))
    return apply_op(OpUse(Contract(axis=over)), (means.weights, value), span, site)
