"""Binds the operands of a block or router to the axes that the types of its inputs name.

Two names are two axes. Where a use gives one axis for both, the body reads it a second time, by a name below the call.
Where the body of a block names an axis of its inputs, a plain one gets such a name too, and so do plain outer axes.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import Any

from modgraph.diagnostics import Note
from modgraph.elaboration import errors
from modgraph.elaboration.apply import apply_op, report_misfit
from modgraph.elaboration.context import BlockCall
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import POISON, Family, OpUse, Poison, Tensor, describe
from modgraph.elaboration.scope import Naming, join, ordinal
from modgraph.ops.shape import Rename
from modgraph.syntax import ast
from modgraph.types import Axis, Misfit, TensorType, may_meet, meet_axes

Apart = dict[str, tuple[Axis, Axis]]  # by the word of a body: the further reading of an axis, and the axis


def take_operand(declared: TensorType | Poison, statement: ast.Input, elaborator: Elaborator) -> Any:
    """Take the next operand of a block, or the default of an input, and check it against the type of the input.

    A default may be a number. Poison where there is neither.
    """
    call = elaborator.call
    assert call is not None and call.operands is not None
    call.inputs.append(statement)
    value: Any = POISON
    if call.operands:
        call.given.add(statement.reference.name)
        value = call.operands.pop(0)
    elif statement.default is not None:
        value = evaluate_default(statement.default, statement, elaborator)
    if isinstance(declared, Poison):
        return POISON
    if isinstance(value, Tensor) and not declared.ends:
        value = _name_plain_axes(declared, value, call, elaborator)
    if isinstance(value, Tensor):
        value = _keep_apart(declared, value, call, elaborator)
    return _check_operand(declared, value, statement, call, elaborator) if isinstance(value, Tensor) else value


def evaluate_default(default: ast.Expression, statement: ast.Input, elaborator: Elaborator) -> Any:
    """Evaluate the default of an input: a value of the body so far, or a number."""
    name = statement.reference.name
    value = elaborator.with_naming(elaborator.scope.next_binding(name)).evaluate(default)
    if isinstance(value, Tensor | Poison | int | float) and not isinstance(value, bool):
        return value
    return elaborator.refuse(default, "a value or a number", describe(value), f"for example: input {name}: … = 1")


def _check_operand(
    declared: TensorType, tensor: Tensor, statement: ast.Input, call: BlockCall, elaborator: Elaborator
) -> Tensor | Poison:
    if not _fits(declared, tensor.type, call):
        known = {**call.axes, **{word: Axis(axis.size, word) for word, axis in call.named.items()}}
        wanted = declared.with_shape(tuple(known.get(axis.name, axis) for axis in declared.shape))
        elaborator.scope.names |= {axis.name: POISON for axis in declared.shape if axis.name and axis.name not in known}
        reason = f'its input "{statement.reference.name}" must be {wanted}, not {tensor.type}'
        return report_misfit(Misfit(reason, f"send it {wanted}"), str(call), (tensor,), statement.span, elaborator)
    words = [axis.name for axis in declared.shape if axis.is_padded and axis.name in call.axes and not declared.ends]
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


def _name_plain_axes(declared: TensorType, tensor: Tensor, call: BlockCall, elaborator: Elaborator) -> Any:
    """Name the plain axes of an operand that the body names, and plain outer axes, which its inputs share."""
    if not call.axis_words:
        return tensor
    words = [axis.name if axis.name in call.axis_words else "" for axis in reversed(declared.shape)]
    words += [f"outer{at}" for at in range(1, 1 + len(tensor.type.shape) - len(words))]
    names: list[str] = []
    for at, (word, own) in enumerate(zip(words, reversed(tensor.type.shape), strict=False), start=1):
        if word and not own.name and call.axes.get(word, own).size == own.size:
            call.named[word] = own.rename(join(elaborator.region, join(elaborator.naming.node, word)))
            names += [str(-at), call.named[word].name]
    return _rename(names, tensor, call, elaborator) if names else tensor


def _keep_apart(declared: TensorType, tensor: Tensor, call: BlockCall, elaborator: Elaborator) -> Any:
    """Read axes of an operand a second time for which the body has another word already."""
    names: list[str] = []
    if declared.ends:  # its words mean the axes of values that the body has
        return tensor
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
    return _rename(names, tensor, call, elaborator) if names else tensor


def _rename(names: list[str], tensor: Tensor, call: BlockCall, elaborator: Elaborator) -> Any:
    """Name axes of an operand as the body does."""
    if call.naming is None:
        call.naming = elaborator.scope.next_binding("axes") if call.decision is None else call.decision.naming
    return _apply_rename(names, tensor, call.naming, elaborator)


def restore_axes(
    value: Any, apart: Apart, naming: Naming | None, elaborator: Elaborator, named: Collection[Axis] = ()
) -> Any:
    """Name further readings in a result of a body: as the axis that they read, or as in the body where both occur.

    Axes that are `named` for the body alone become plain again.
    """
    if isinstance(value, Family):
        for key, member in value.members.items():
            value.members[key] = restore_axes(member, apart, naming, elaborator, named)
    if naming is None or not isinstance(value, Tensor):
        return value
    shape = value.type.shape
    names = [name for axis in shape if axis in named for name in (axis.name, "")]
    taken = {axis.name for axis in shape}
    for word, (reading, axis) in apart.items():
        if reading in shape and axis in named:
            names += [reading.name, ""]
        elif reading in shape:
            numbered = (ordinal(word, count) for count in itertools.count(1))
            name = next(each for each in itertools.chain([axis.name], numbered) if each not in taken)
            names += [reading.name, name]
            taken.add(name)
    return _apply_rename(names, value, naming, elaborator) if names else value


def _apply_rename(names: list[str], value: Tensor, naming: Naming, elaborator: Elaborator) -> Any:
    return apply_op(OpUse(Rename(names=tuple(names))), (value,), value.span, elaborator.with_naming(naming))


def _fits(declared: TensorType, found: TensorType, call: BlockCall) -> bool:
    """Whether a value fits the type of an input, whose words it binds to axes.

    It may have more outer axes, and may lack outer named ones, unless the body names them and no input before has them.
    """
    if declared.dtype != found.dtype or declared.size != found.size:
        return False
    lacking = max(0, len(declared.shape) - len(found.shape))
    if any(not axis.is_padded or axis.name in call.axis_words - {*call.axes} for axis in declared.shape[:lacking]):
        return False
    named = declared.shape[lacking:]
    pairs = [*zip(named, found.shape[len(found.shape) - len(named) :], strict=True)]
    for axis, own in (*pairs, *zip(declared.ends, found.ends, strict=True)):
        expected = call.axes.setdefault(axis.name, own) if axis.is_padded else axis
        if not may_meet(expected, own):
            return False
        if axis.is_padded:
            call.axes[axis.name] = meet_axes(expected, own)
    return True


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
