"""Binds the operands of a block or router to the axes that the types of its inputs name.

Two names are two axes. Where a use gives one axis for both, the body reads it a second time, by a name below the call.
"""

from __future__ import annotations

import itertools
from typing import Any

from modgraph.diagnostics import Note
from modgraph.elaboration import errors
from modgraph.elaboration.apply import apply_op, report_misfit
from modgraph.elaboration.context import BlockCall
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import POISON, Family, OpUse, Poison, Tensor
from modgraph.elaboration.scope import Naming, join, ordinal
from modgraph.ops.shape import Rename
from modgraph.syntax import ast
from modgraph.types import Axis, Misfit, TensorType, may_meet, meet_axes

Apart = dict[str, tuple[Axis, Axis]]  # by the word of a body: the further reading of an axis, and the axis


def take_operand(declared: TensorType, statement: ast.Input, elaborator: Elaborator) -> Tensor | Poison:
    """Take the next operand of a block and check it against the type of its input; poison where there is none."""
    call = elaborator.call
    assert call is not None and call.operands is not None
    call.taken += 1
    if not call.operands:
        return POISON
    tensor: Tensor | Poison = _keep_apart(declared, call.operands.pop(0), call, elaborator)
    if isinstance(tensor, Poison):
        return tensor
    reason = _explain_misfit(declared, tensor.type, call.axes)
    if reason is not None:
        return report_misfit(Misfit(reason, f"send it {declared}"), str(call), (tensor,), statement.span, elaborator)
    words = [axis.name for axis in declared.shape if axis.is_padded and axis.name in call.axes]
    for word in words:
        call.named_by.setdefault(word, statement)
    for word in words:  # a plain axis may have met another one since
        axis = call.axes[word]
        other = next((each for each in call.named_by if each != word and axis.name and call.axes[each] == axis), None)
        if other is not None:
            return _refuse_one_axis((other, call.named_by[other]), (word, statement), axis, call, elaborator)
    lacking = declared.shape[: max(0, len(declared.shape) - len(tensor.type.shape))] if elaborator.region else ()
    for place, axis in enumerate(reversed(lacking)):  # token axes of a module have the same names in all inputs
        first = call.token_axes.setdefault(place, (axis.name, statement))
        if first[0] != axis.name:
            return _refuse_one_axis(first, (axis.name, statement), None, call, elaborator)
    return tensor


def _keep_apart(declared: TensorType, tensor: Tensor, call: BlockCall, elaborator: Elaborator) -> Any:
    """Read axes of an operand a second time for which the body has another word already."""
    names: list[str] = []
    for named, own in zip(reversed(declared.shape), reversed(tensor.type.shape), strict=False):
        word = named.name
        if not (named.is_padded and own.name):
            continue
        if word not in call.axes and own in call.axes.values():
            path = join(elaborator.region, join(elaborator.naming.node, word))
            call.axes[word] = own.rename(path)
            call.apart[word] = call.axes[word], own
        reading, axis = call.apart.get(word, (None, None))
        if reading is not None and axis == own:
            names += [own.name, reading.name]
    if not names:
        return tensor
    if call.naming is None:
        call.naming = elaborator.scope.next_binding("axes") if call.decision is None else call.decision.naming
    return _rename(names, tensor, call.naming, elaborator)


def restore_axes(value: Any, apart: Apart, naming: Naming | None, elaborator: Elaborator) -> Any:
    """Name further readings in a result of a body: as the axis that they read, or as in the body where both occur."""
    if isinstance(value, Family):
        for key, member in value.members.items():
            value.members[key] = restore_axes(member, apart, naming, elaborator)
    if naming is None or not isinstance(value, Tensor):
        return value
    shape = value.type.shape
    taken, names = {axis.name for axis in shape}, list[str]()
    for word, (reading, axis) in apart.items():
        if reading in shape:
            numbered = (ordinal(word, count) for count in itertools.count(1))
            name = next(each for each in itertools.chain([axis.name], numbered) if each not in taken)
            names += [reading.name, name]
            taken.add(name)
    return _rename(names, value, naming, elaborator) if names else value


def _rename(names: list[str], value: Tensor, naming: Naming, elaborator: Elaborator) -> Any:
    return apply_op(OpUse(Rename(names=tuple(names))), (value,), value.span, elaborator.with_naming(naming))


def _explain_misfit(declared: TensorType, found: TensorType, axes: dict[str, Axis]) -> str | None:
    """Explain why a value does not fit the type of an input; None if it does.

    It may have more outer axes, and may lack outer named ones.
    """
    reason = f"its input must be {declared}, not {found}"
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
            axes[axis.name] = meet_axes(expected, own)
    return None


def _refuse_one_axis(
    named: tuple[str, ast.Input],
    again: tuple[str, ast.Input],
    axis: Axis | None,
    call: BlockCall,
    elaborator: Elaborator,
) -> Poison:
    """Report two names for one axis; for the token axes of a pool, `axis` is None."""
    (first, earlier), (second, statement) = named, again
    if axis is None:
        type_ = ", ".join(first if each.span.text == second else each.span.text for each in statement.type.axes)
        one = f"input {statement.reference.name}: {statement.type.dtype}[{type_}]"
        way_out = f"if both mean one axis, use one name for it: {one}"
    else:
        name = axis.name.rpartition(".")[2]
        way_out = f'rename an axis of the second value: -> rename({name}="{second}")'
    notes = tuple(Note(text=f'"{word}" is an axis of this input', span=each.span) for word, each in (named, again))
    words = f'"{first}" of input "{earlier.reference.name}" and "{second}" of input "{statement.reference.name}"'
    facts: Any = {"axis": "the axis of its tokens" if axis is None else axis, "words": words, "way_out": way_out}
    return elaborator.report(errors.OneAxisForTwo(span=call.span, notes=notes, who=str(call), **facts))
