"""Elaborates types of values."""

from __future__ import annotations

from typing import Any

from modgraph.diagnostics import Span, did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import POISON, AxisEntity, Entity, Poison, Tensor, WithAxis, describe
from modgraph.syntax import ast
from modgraph.types import Axis, TensorType, find_repeated
from modgraph.types import edges as type_edges

SIZED = {"token": "vocabulary", "class": "number of classes"}
LONGEST_AXIS = 2**31 - 1


def elaborate_type(
    type_: ast.TypeOf, elaborator: Elaborator, of_input: bool = False, edges: Axis | None = None
) -> TensorType | Poison:
    """Elaborate `float[axes…]`, `token[axes…, vocabulary]` or `class[axes…, classes]`; `kind=10` names an axis, and
    `key=time` reads the axis `time` a second time. What may hold edges gives the axis of `edges`: `edge[node, node]`.

    In a block a name refers to the axis that an input's type bound, except in the type of an input.
    """
    dtype, span = type_.dtype, type_.span
    if dtype not in ("float", "edge", *SIZED):
        suggestion = did_you_mean(dtype, ["float", *SIZED, "edge"], "types are: {known}")
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
    if dtype == "edge":
        return _check_edges(sound, edges, span, elaborator)
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


def _check_edges(ends: tuple[Axis, ...], edges: Axis | None, span: Span, elaborator: Elaborator) -> TensorType | Poison:
    """Check the ends of edges: two axes with names."""
    problem, way_out = "", f"for example: edge[{ends[0].name if ends and ends[0].name else 'node'}, node]"
    if edges is None:
        problem, way_out = "only an input or a constant holds edges", "declare an input: input link: edge[node, node]"
    elif len(ends) > 2:
        problem = f"edges have two ends, not {len(ends)}"
        way_out = f"values of edges are an input of their own: input value: float[{edges.name}, {ends[2]}]"
    elif len(ends) < 2:
        problem = f"edges have two ends, not {len(ends)}"
    elif not all(axis.name for axis in ends):
        unnamed = next(axis for axis in ends if not axis.name)
        problem = f"the end of an edge is an axis with a name, not {unnamed}"
        way_out = f"name the axis in the type of a value: input x: float[node={unnamed}, 8]"
    elif edges in ends:
        problem, way_out = f'the edges are called like their end "{edges.name}"', "give the input another name"
    if problem:
        return elaborator.report(errors.BadAxis(span=span, problem=problem, way_out=way_out))
    assert edges is not None
    return type_edges(edges, *ends)


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
        if isinstance(known, Tensor) and known.type.dtype == "edge":
            return known.type.shape[0]
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
    scope, length = elaborator.scope, _evaluate_length(axis.size, elaborator)
    name = axis.name if axis.name in scope.body.axis_words else scope.weight_path(axis.name)
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
