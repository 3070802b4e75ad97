"""The body of a router: axes that its inputs name, what it records, and what leaves it.

Every axis of senders has an identity in it: a plain one is called after the use of the router, and a value that lacks
one that the body speaks of gets it, of length 1. What leaves the body has these names no more.
"""

from __future__ import annotations

from typing import Any

from modgraph.declare import RANKING, Role
from modgraph.diagnostics import did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.apply import apply_op
from modgraph.elaboration.entities import POISON, OpUse, Poison, Tensor, role_of
from modgraph.elaboration.scope import join
from modgraph.elaboration.senders import for_each_sender
from modgraph.elaboration.site import Site
from modgraph.ir import drawn_by
from modgraph.ops.along_axis import Sum
from modgraph.ops.axes import NewAxis
from modgraph.ops.shape import Rename
from modgraph.routers.defined import ROLES
from modgraph.syntax import ast
from modgraph.types import Axis, Shape, may_meet, shapes_meet, shown


def entered(given: Tensor | Poison, statement: ast.Input, site: Site) -> Tensor | Poison:
    """An operand as the body of a block sees it: in a router's, its axes have the names of the input's type."""
    if isinstance(given, Poison) or site.call is None or site.call.decision is None:
        return given
    decision, rank = site.call.decision, len(given.type.shape)
    words = [axis.name if isinstance(axis, ast.Name) else "" for axis in reversed(statement.type.axes)]
    first = decision.routed is None
    words += [""] * (decision.message_rank * first - len(words))
    words += [f"outer{at}" for at in range(rank - len(words))]
    for at, word in enumerate(words, start=1):
        if word and not isinstance(given, Poison):
            given = _named(given, -at, word, site)
    if first and isinstance(given, Tensor):
        decision.routed = given
    return given


def _named(given: Tensor, place: int, word: str, site: Site) -> Tensor | Poison:
    """A value in which the axis at a place is called by the body's word for it, if it is plain or that of modules."""
    assert site.call is not None and site.call.decision is not None
    decision = site.call.decision
    lacks = len(given.type.shape) < -place
    before = Axis(1) if lacks else given.type.shape[place]
    known = word in decision.words
    if known if lacks else (not before.name or before == decision.modules) and (place < -1 or known):
        axis = Axis(before.size, join(site.region, join(site.naming.node, word)))
        op = NewAxis(length=1, axis=axis.name, at=place) if lacks else Rename(names=(str(place), axis.name))
        given = _applied(op, given, site)
        site.call.axes[word] = decision.named[word] = axis
        decision.lacking |= {axis} if lacks else set()
        decision.of_modules |= {axis} if before.name else set()
    length = site.call.axes[word].size if word in site.call.axes else None
    if length is not None and word not in site.scope.names:
        site.scope.declare(word, length)
    return given


def elaborate_record(statement: ast.Record, site: Site) -> None:
    """What a router shows of its decision; in a `repeat`, of each round."""
    decision = site.call.decision if site.call is not None else None
    if decision is None:
        site.tell(errors.RecordOutsideRouter(span=statement.span))
        return
    for item in statement.items:
        value = item.value or ast.Name(span=item.span, name=item.name)
        naming = site.scope.next_binding(f"record.{item.name}")
        found = site.under(naming).tensor(value, "what a router records")
        role = role_of(item)
        if role is None:
            suggestion = did_you_mean(str(item.role), ROLES, "a record is one of: {known}")
            site.tell(errors.UnknownRole(span=item.span, name=str(item.role), suggestion=suggestion))
            found = POISON
        decision.records.setdefault(item.name, []).append((found, role))
        decision.roles.add(role)


def left(value: Tensor, site: Site) -> Any:
    """A value as the surroundings of a router see it, without the names that its body gave to axes."""
    assert site.call is not None and site.call.decision is not None
    decision = site.call.decision
    for axis in decision.named.values():
        if isinstance(value, Tensor) and axis in value.type.shape:
            modules = decision.modules if axis in decision.of_modules else None
            again = modules.name if modules is not None and modules not in value.type.shape else ""
            renamed = Rename(names=(axis.name, again))
            value = _applied(Sum(axis=axis.name) if axis in decision.lacking else renamed, value, site)
    return value


def recorded(value: Tensor, role: Role, senders: Shape, modules: Axis, site: Site) -> Any:
    """A record as the surroundings see it: a number for each sender, one if there is no axis of them, and module; of a
    router that fills slots, what it chose by has one for each of these too. One that is the same for all senders is
    repeated for each, but for a novelty."""
    assert site.call is not None and site.call.decision is not None
    slots = role is Role.SLOTS or (role in RANKING and site.call.decision.records_as(Role.SLOTS))
    if role not in (Role.OTHER, Role.NOVELTY):
        value = _for_all_senders(value, 1 + slots, site)
    value = left(value, site)
    if role is Role.OTHER or not isinstance(value, Tensor):
        return value
    shape = value.type.shape
    if role is Role.NOVELTY and shape[-1:] == (modules,) and _are_among(shape[:-1], senders):
        return value
    if not senders and len(shape) == 1 + slots:
        value = _applied(NewAxis(length=1, axis="", at=-2 - slots), value, site)
    outer = senders or (Axis(1),)
    kept = value.type.shape if isinstance(value, Tensor) else ()
    if kept[-1:] == (modules,) and shapes_meet(kept[: len(kept) - 1 - slots], outer):
        return value
    wanted = shown((*outer, *((Axis(None, "slots"),) if slots else ()), modules))
    facts: Any = {"role": role.name.lower(), "found": str(value.type), "wanted": wanted}
    site.tell(errors.RecordShape(span=value.span, **facts))
    return POISON


def _are_among(axes: Shape, senders: Shape) -> bool:
    """Whether all axes are some of the senders', in their order."""
    remaining = iter(senders)
    return all(any(may_meet(axis, each) for each in remaining) for axis in axes)


def _for_all_senders(value: Tensor | Poison, rank: int, site: Site) -> Any:
    """A value whose last axes, so many, end with that of the modules, for every sender; what a draw chose once for
    several stays as it is, since its probability counts once."""
    assert site.call is not None and site.call.decision is not None
    decision = site.call.decision
    if not isinstance(value, Tensor) or decision.routed is None or value.type.shape[-1:] != (decision.modules,):
        return value
    if drawn_by(value.result, site.graph) is not None:
        return value
    beside = site.under(decision.naming)
    found = for_each_sender(value, rank, decision.routed, decision.senders, value.span, beside)
    return value if found is None else found


def _applied(op: Any, value: Tensor, site: Site) -> Any:
    """What only names axes is of this use: it stands beside the body."""
    assert site.call is not None and site.call.decision is not None
    return apply_op(OpUse(op), (value,), value.span, site.under(site.call.decision.naming))
