"""Types as written, turned into types as meant."""

from __future__ import annotations

from collections.abc import Mapping

from modgraph.diagnostics import did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.entities import POISON, Entity, Poison, PoolEntity, described
from modgraph.elaboration.site import Site
from modgraph.syntax import ast
from modgraph.types import Axis, TensorType, repeated

SIZED = {"token": "vocabulary", "class": "number of classes"}
LONGEST_AXIS = 2**31 - 1


def elaborate_type(type_: ast.TypeOf, site: Site, of_input: bool = False) -> TensorType | Poison:
    """`float[axes…]`, `token[axes…, vocabulary]`, `class[axes…, classes]`.

    In a block a name stands for the axis that an input's type gave it, but in the type of an input itself.
    """
    if type_.dtype != "float" and type_.dtype not in SIZED:
        suggestion = did_you_mean(type_.dtype, ["float", *SIZED], "types are: {known}")
        site.tell(errors.UnknownType(span=type_.span, name=type_.dtype, suggestion=suggestion))
        return POISON
    known = {name: Axis(None, name) for name in site.axes} if of_input else site.axes
    axes = [_axis(axis, site, known) for axis in type_.axes]
    sound = [axis for axis in axes if isinstance(axis, Axis)]
    if len(sound) < len(axes):
        return POISON
    if (twice := repeated(tuple(sound))) is not None:
        problem = f'the axis "{twice.name}" occurs twice in one type'
        site.tell(errors.BadAxis(span=type_.span, problem=problem, way_out="give each axis a name of its own"))
        return POISON
    if type_.dtype == "float":
        return TensorType("float", tuple(sound))
    if not sound or sound[-1].name:
        problem = f"{type_.dtype} needs its {SIZED[type_.dtype]} as its last number"
        site.tell(errors.BadAxis(span=type_.span, problem=problem, way_out=f"for example: {type_.dtype}[10]"))
        return POISON
    return TensorType(type_.dtype, tuple(sound[:-1]), size=sound[-1].size)  # type: ignore[arg-type]


def _axis(axis: ast.Expression, site: Site, inputs: Mapping[str, Axis]) -> Axis | Poison:
    """A length, the name of a pool for an axis of its modules, or a name that nothing else has: any length."""
    if isinstance(axis, ast.Name):
        if axis.name in inputs:
            return inputs[axis.name]
        known = site.scope.find(axis.name)
        if isinstance(known, PoolEntity):
            return known.axis
        if known is None or (isinstance(known, Entity) and not isinstance(known, Poison)):
            return Axis(None, axis.name)
    length = site.constant(axis, "an axis")
    if isinstance(length, Poison):
        return POISON
    if type(length) is not int or not 1 <= length <= LONGEST_AXIS:
        problem = f"an axis cannot be {described(length).removeprefix('the constant ')}"
        site.tell(errors.BadAxis(span=axis.span, problem=problem))
        return POISON
    return Axis(length)
