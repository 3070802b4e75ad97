"""Elaborates types, and binds operands of a block or router to the axes of its inputs."""

from __future__ import annotations

from typing import Any

from modgraph.diagnostics import Note, did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.apply import report_misfit
from modgraph.elaboration.context import BlockCall
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import POISON, AxisEntity, Entity, Poison, Tensor, WithAxis, describe
from modgraph.syntax import ast
from modgraph.types import Axis, Misfit, TensorType, find_repeated, may_meet, meet_axes

SIZED = {"token": "vocabulary", "class": "number of classes"}
LONGEST_AXIS = 2**31 - 1


def elaborate_type(type_: ast.TypeOf, elaborator: Elaborator, of_input: bool = False) -> TensorType | Poison:
    """Elaborate `float[axes…]`, `token[axes…, vocabulary]` or `class[axes…, classes]`; `kind=10` names an axis, and
    `key=time` reads the axis `time` a second time.

    In a block a name refers to the axis that an input's type bound, except in the type of an input.
    """
    dtype, span = type_.dtype, type_.span
    if dtype != "float" and dtype not in SIZED:
        suggestion = did_you_mean(dtype, ["float", *SIZED], "types are: {known}")
        return elaborator.report(errors.UnknownType(span=span, name=dtype, suggestion=suggestion))
    if of_input and type_.named:
        problem = "name the axis: an input of a block or router takes the axes of its operand"
        word = type_.named[0].name
        way_out = f"leave the length out: {word}"
        return elaborator.report(errors.BadAxis(span=type_.named[0].span, problem=problem, way_out=way_out))
    axes = [_elaborate_axis(axis, elaborator, of_input) for axis in type_.axes]
    sound = tuple(axis for axis in axes if isinstance(axis, Axis))
    if len(sound) < len(axes):
        return POISON
    if (twice := find_repeated(sound)) is not None:
        problem = f'the axis "{twice.name}" occurs twice in one type'
        return elaborator.report(errors.BadAxis(span=span, problem=problem, way_out="give each axis another name"))
    if dtype == "float":
        return TensorType("float", sound)
    if not sound or sound[-1].size is None or (sound[-1].name and dtype == "token"):
        problem = f"{dtype} needs its {SIZED[dtype]} as its last number"
        return elaborator.report(errors.BadAxis(span=span, problem=problem, way_out=f"for example: {dtype}[10]"))
    *shape, last = sound
    return TensorType(dtype, tuple(shape), size=last.size, of=last.name)  # type: ignore[arg-type]


def _elaborate_axis(axis: ast.Expression, elaborator: Elaborator, of_input: bool) -> Axis | Poison:
    """Elaborate an axis: a size, perhaps with a name, the name of an axis or a pool, or a new name for any length."""
    if isinstance(axis, ast.NamedAxis):
        of = axis.size.name if isinstance(axis.size, ast.Name) else ""
        if _is_of_any_length(of, elaborator):
            return _read_again(axis, of, elaborator)
        others = [*elaborator.context.of_any_length]
        if of and others and elaborator.scope.find(of) is None and (meant := did_you_mean(of, others, "")):
            return elaborator.report(errors.UnknownName(span=axis.size.span, name=of, suggestion=meant))
        return _declare_axis(axis, elaborator)
    if isinstance(axis, ast.Name):
        name, known = axis.name, elaborator.scope.find(axis.name)
        if name in elaborator.axes:
            return Axis(None, name) if of_input else elaborator.axes[name]
        if isinstance(known, WithAxis):
            elaborator.context.observe(axis.span, known)
            return known.axis
        if known is None or (isinstance(known, Entity) and not isinstance(known, Poison)):
            if not of_input:
                elaborator.context.of_any_length.setdefault(name, "")
            return Axis(None, name, "" if of_input else elaborator.context.of_any_length[name])
    length = _evaluate_length(axis, elaborator)
    return POISON if isinstance(length, Poison) else Axis(length)


def _is_of_any_length(name: str, elaborator: Elaborator) -> bool:
    """Whether a word names an axis of any length that a type has before, and no constant."""
    known = elaborator.scope.find(name)
    hidden = known is not None and (isinstance(known, WithAxis | Poison) or not isinstance(known, Entity))
    return not hidden and name in elaborator.context.of_any_length


def _read_again(axis: ast.NamedAxis, of: str, elaborator: Elaborator) -> Axis | Poison:
    """Declare a second reading of an axis of any length, or check it against the axis of that name."""
    name, known, others = axis.name, elaborator.scope.find(axis.name), elaborator.context.of_any_length
    found = Axis(None, others[of] or of).rename(name)
    earlier = others.setdefault(name, found.of)
    if not isinstance(known, WithAxis) and name != of and earlier == found.of:
        return found
    before = f"a reading of {earlier}" if earlier else "of any length"
    facts: Any = {"name": name, "before": str(known.size) if isinstance(known, WithAxis) else before}
    return elaborator.report(errors.AxisDiffers(span=axis.span, length=f"a reading of {found.lengths}", **facts))


def _declare_axis(axis: ast.NamedAxis, elaborator: Elaborator) -> Axis | Poison:
    """Declare an axis with a name, or check it against the axis of that name."""
    length, name = _evaluate_length(axis.size, elaborator), elaborator.scope.weight_path(axis.name)
    known = elaborator.scope.find(axis.name)
    if isinstance(length, Poison) or isinstance(known, Poison):
        return POISON
    if isinstance(known, WithAxis) and known.size == length:
        return known.axis
    if isinstance(known, WithAxis) or name in elaborator.context.of_any_length:
        before = "of any length" if known is None else str(known.size)
        return elaborator.report(errors.AxisDiffers(span=axis.span, name=axis.name, length=length, before=before))
    if known is not None:
        return elaborator.report(errors.DuplicateName(span=axis.span, name=axis.name))
    found = AxisEntity(Axis(length, name), axis.span)
    elaborator.scope.declare(axis.name, found)
    elaborator.context.observe(axis.span, found)
    return found.axis


def _evaluate_length(axis: ast.Expression, elaborator: Elaborator) -> int | Poison:
    length = elaborator.evaluate_constant(axis, "an axis")
    if isinstance(length, Poison) or (type(length) is int and 1 <= length <= LONGEST_AXIS):
        return length
    problem = f"an axis cannot be {describe(length).removeprefix('the constant ')}"
    return elaborator.report(errors.BadAxis(span=axis.span, problem=problem))


def take_operand(declared: TensorType, statement: ast.Input, elaborator: Elaborator) -> Tensor | Poison:
    """Take the next operand of a block and check it against the type of its input; poison where there is none."""
    call = elaborator.call
    assert call is not None and call.operands is not None
    call.taken += 1
    if not call.operands:
        return POISON
    tensor = call.operands.pop(0)
    reason = _explain_misfit(declared, tensor.type, call.axes)
    if reason is not None:
        return report_misfit(Misfit(reason, f"send it {declared}"), str(call), (tensor,), statement.span, elaborator)
    words = [axis.name for axis in declared.shape if axis.is_padded and axis.name in call.axes]
    for word in words:
        call.named_by.setdefault(word, statement)
    for word in words:  # different names must be different axes, or the body would compute something else
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
    if axis is None or axis.is_padded:
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
