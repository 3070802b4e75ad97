"""Operands of a block or router: each must fit the type of its input, and binds the axes that this type names."""

from __future__ import annotations

from typing import Any

from modgraph.diagnostics import Note
from modgraph.elaboration import errors
from modgraph.elaboration.bodies import BlockCall
from modgraph.elaboration.entities import POISON, Poison, Tensor, origins
from modgraph.elaboration.site import Site
from modgraph.syntax import ast
from modgraph.types import Axis, TensorType, may_meet, met


def take_operand(declared: TensorType, statement: ast.Input, site: Site) -> Tensor | Poison:
    """The next operand of a block, checked against the type of its input; poison where too few were given."""
    assert site.call is not None and site.call.operands is not None
    site.call.taken += 1
    if not site.call.operands:
        return POISON
    tensor = site.call.operands.pop(0)
    reason = _misfit(declared, tensor.type, site.call.axes)
    if reason is None:
        apart = _keeps_axes_apart(declared, statement, site.call, site)
        return tensor if apart and _keeps_senders_apart(declared, tensor, statement, site) else POISON
    facts: Any = {"who": _describe(site.call), "reason": reason, "way_out": f"send it {declared}"}
    return site.tell(errors.DoesNotFit(span=statement.span, notes=origins((tensor,), 0), **facts))


def _describe(call: BlockCall) -> str:
    return f'{"block" if call.decision is None else "router"} "{call.name}"'


def _misfit(declared: TensorType, found: TensorType, axes: dict[str, Axis]) -> str | None:
    """Why a value is not of an input's type. Outer axes beyond the declared are welcome; outer named ones may lack."""
    reason = f"its input is {declared}, and this value is {found}"
    if declared.dtype != found.dtype or declared.size != found.size:
        return reason
    lacking = len(declared.shape) - len(found.shape)
    if any(not axis.is_padded for axis in declared.shape[: max(0, lacking)]):
        return reason
    named = declared.shape[max(0, lacking) :]
    for axis, own in zip(named, found.shape[len(found.shape) - len(named) :], strict=True):
        expected = axes.setdefault(axis.name, own) if axis.is_padded else axis
        if not may_meet(expected, own):
            return reason
        if axis.is_padded:
            axes[axis.name] = met(expected, own)
    return None


def _keeps_axes_apart(declared: TensorType, statement: ast.Input, call: BlockCall, site: Site) -> bool:
    """Whether different names of axes stand for different axes; if not, the body would compute something else."""
    words = [axis.name for axis in declared.shape if axis.is_padded and axis.name in call.axes]
    for word in words:
        call.named_by.setdefault(word, statement)
    for word, axis in ((word, call.axes[word]) for word in words):
        other = next((each for each in call.named_by if each != word and axis.name and call.axes[each] == axis), None)
        if other is not None:
            _refuse_one_axis((other, call.named_by[other]), (word, statement), axis, site)
            return False
    return True


def _keeps_senders_apart(declared: TensorType, tensor: Tensor, statement: ast.Input, site: Site) -> bool:
    """Whether inputs of a pool's module give the axes that a message lacks, those of its senders, the same names."""
    call = site.call
    assert call is not None
    lacking = declared.shape[: max(0, len(declared.shape) - len(tensor.type.shape))] if site.region else ()
    for place, axis in enumerate(reversed(lacking)):
        first = call.senders.setdefault(place, (axis.name, statement))
        if first[0] != axis.name:
            _refuse_one_axis(first, (axis.name, statement), None, site)
            return False
    return True


def _refuse_one_axis(named: tuple[str, ast.Input], again: tuple[str, ast.Input], axis: Axis | None, site: Site) -> None:
    """Report two names for one axis, which is that of a pool's senders if `axis` is None."""
    (first, earlier), (second, statement) = named, again
    call = site.call
    assert call is not None
    if axis is None or axis.is_padded:
        type_ = ", ".join(first if each.span.text == second else each.span.text for each in statement.type.axes)
        way_out = f"if both mean one axis, use one name for it: input {statement.name}: {statement.type.dtype}[{type_}]"
    else:
        name = axis.name.rpartition(".")[2]
        way_out = f'give the second value an axis of its own: -> rename({name}="{second}")'
    notes = tuple(
        Note(text=f'"{word}" is an axis of this input', span=each.span)
        for word, each in ((first, earlier), (second, statement))
    )
    words = f'"{first}" of input "{earlier.name}" and "{second}" of input "{statement.name}"'
    sent = "of its senders" if axis is None else axis
    facts: Any = {"who": _describe(call), "axis": sent, "words": words, "way_out": way_out}
    site.tell(errors.OneAxisForTwo(span=call.span, notes=notes, **facts))
