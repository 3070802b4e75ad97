"""Messages about types and shapes."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class DoesNotFit(Diagnostic):
    """The types of the operands do not fit an op, a router or a pool."""

    code = "MG301"
    message = "{who}: {reason}"
    help = "{way_out}"
    example = "model m() { input x: float[4] y = x -> conv(8) output y }"
    way_out = ""


class UnknownType(Diagnostic):
    """A type is `float[axes…]`, `token[axes…, vocabulary]` or `class[axes…, classes]`."""

    code = "MG302"
    message = 'there is no type "{name}"'
    help = "{suggestion}"
    example = "model m() { input x: flaot[4] output x }"


class BadAxis(Diagnostic):
    """An axis of a type is a whole number from 1, or a name that stands for any length."""

    code = "MG303"
    message = "{problem}"
    help = "{way_out}"
    example = "model m() { input x: float[0] output x }"
    way_out = "an axis is a whole number from 1, or a new name for any length"


class AxisDiffers(Diagnostic):
    """An axis has one length wherever it occurs. A type that writes it gives the axis its name, or agrees with it."""

    code = "MG257"
    message = 'the axis "{name}" is {before} elsewhere, and {length} here'
    help = "give one of the two another name"
    example = "model m() { input x: float[place=4] input y: float[place=5] output x output y }"


class OneAxisForTwo(Diagnostic):
    """The inputs of a block or router name two axes, and a use sends the same axis for both. The body would compute
    something else: `(a, b) -> contract` keeps two axes apart, and aligns one that both values have. An axis with a
    number can get another name first, `x -> rename(expert="other")`; an axis of any length cannot."""

    code = "MG306"
    message = "{who} keeps {words} apart, and this use sends the axis {axis} for both"
    help = "{way_out}"
    example = (
        "block pairs() { input a: float[one, 4] input b: float[other, 4] y = (a, b) -> contract output y } "
        "model m() { input x: float[time, 4] y = (x, x) -> pairs output y }"
    )


class SharedWithOtherShapes(Diagnostic):
    """A module, pool or router is shared by all its uses, so each use must give its weights the same shapes."""

    code = "MG304"
    message = '"{name}" is shared, and this use gives "{weight}" the shape {found}, where an earlier one gave {earlier}'
    help = "declare a second one, or make the shapes equal"
    example = (
        "model m() { input a: float[4] input b: float[5] module enc = linear(3) "
        "y = a -> enc z = b -> enc output y output z }"
    )


class SharedWithOtherWeights(Diagnostic):
    """Two ops with one name have one set of weights, so each must have all of them: with a bias, or both without."""

    code = "MG312"
    message = '"{name}" is shared, and this use has the weights {found}, where an earlier one had {earlier}'
    help = "give each a name of its own, or make their settings equal"
    example = (
        'model m() { input x: float[4] y = x -> linear(4, bias=false, name="z") z = x -> linear(4, name="z") '
        "output y output z }"
    )


class LossIsNotNumber(Diagnostic):
    """A loss is one number per example, or one over the batch."""

    code = "MG305"
    message = "a loss is one number, and this is {found}"
    help = "reduce it, for example with: -> mean(axis=-1)"
    example = "model m() { input x: float[4] output x loss x }"
