"""Types as written, turned into types as meant."""

from __future__ import annotations

from collections.abc import Mapping

from modgraph.diagnostics import did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.entities import POISON, AxisEntity, Entity, Poison, WithAxis, described
from modgraph.elaboration.site import Site
from modgraph.syntax import ast
from modgraph.types import Axis, TensorType, repeated

SIZED = {"token": "vocabulary", "class": "number of classes"}
LONGEST_AXIS = 2**31 - 1


def elaborate_type(type_: ast.TypeOf, site: Site, of_input: bool = False) -> TensorType | Poison:
    """`float[axes…]`, `token[axes…, vocabulary]`, `class[axes…, classes]`; `kind=10` is an axis that gets a name.

    In a block a name stands for the axis that an input's type gave it, but in the type of an input itself.
    """
    if type_.dtype != "float" and type_.dtype not in SIZED:
        suggestion = did_you_mean(type_.dtype, ["float", *SIZED], "types are: {known}")
        return site.tell(errors.UnknownType(span=type_.span, name=type_.dtype, suggestion=suggestion))
    known = {name: Axis(None, name) for name in site.axes} if of_input else site.axes
    if of_input and type_.named:
        problem = "in a block or router, the axes of an input are those of what is sent"
        word = type_.named[0].name
        site.tell(errors.BadAxis(span=type_.named[0].span, problem=problem, way_out=f"leave the length out: {word}"))
        return POISON
    axes = [_axis(axis, site, known, of_input) for axis in type_.axes]
    sound = [axis for axis in axes if isinstance(axis, Axis)]
    if len(sound) < len(axes):
        return POISON
    if (twice := repeated(tuple(sound))) is not None:
        problem = f'the axis "{twice.name}" occurs twice in one type'
        return site.tell(errors.BadAxis(span=type_.span, problem=problem, way_out="give each axis a name of its own"))
    if type_.dtype == "float":
        return TensorType("float", tuple(sound))
    if not sound or sound[-1].size is None or (sound[-1].name and type_.dtype == "token"):
        problem = f"{type_.dtype} needs its {SIZED[type_.dtype]} as its last number"
        return site.tell(errors.BadAxis(span=type_.span, problem=problem, way_out=f"for example: {type_.dtype}[10]"))
    *shape, last = sound
    return TensorType(type_.dtype, tuple(shape), size=last.size, of=last.name)  # type: ignore[arg-type]


def _axis(axis: ast.Expression, site: Site, inputs: Mapping[str, Axis], of_input: bool) -> Axis | Poison:
    """A length, with a name perhaps, the name of an axis or a pool, or one that nothing else has: any length."""
    if isinstance(axis, ast.NamedAxis):
        return _named(axis, site)
    if isinstance(axis, ast.Name):
        if axis.name in inputs:
            return inputs[axis.name]
        known = site.scope.find(axis.name)
        if isinstance(known, WithAxis):
            site.context.observe(axis.span, known)
            return known.axis
        if known is None or (isinstance(known, Entity) and not isinstance(known, Poison)):
            if not of_input:
                site.context.of_any_length.add(axis.name)
            return Axis(None, axis.name)
    length = _length(axis, site)
    return POISON if isinstance(length, Poison) else Axis(length)


def _named(axis: ast.NamedAxis, site: Site) -> Axis | Poison:
    """An axis that gets a name here, or has it already."""
    length, name = _length(axis.size, site), site.scope.weights_below(axis.name)
    known = site.scope.find(axis.name)
    if isinstance(length, Poison) or isinstance(known, Poison):
        return POISON
    if isinstance(known, WithAxis) and known.size == length:
        return known.axis
    if isinstance(known, WithAxis) or name in site.context.of_any_length:
        before = "of any length" if known is None else str(known.size)
        return site.tell(errors.AxisDiffers(span=axis.span, name=axis.name, length=length, before=before))
    if known is not None:
        return site.tell(errors.DuplicateName(span=axis.span, name=axis.name))
    found = AxisEntity(Axis(length, name), axis.span)
    site.scope.declare(axis.name, found)
    site.context.observe(axis.span, found)
    return found.axis


def _length(axis: ast.Expression, site: Site) -> int | Poison:
    length = site.constant(axis, "an axis")
    if isinstance(length, Poison):
        return POISON
    if type(length) is not int or not 1 <= length <= LONGEST_AXIS:
        problem = f"an axis cannot be {described(length).removeprefix('the constant ')}"
        return site.tell(errors.BadAxis(span=axis.span, problem=problem))
    return length
