"""Messages about values and constants: what can be computed, and how large it may become."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class NotConstant(Diagnostic):
    """Sizes, settings and conditions are known when the model is built; this one would depend on its input."""

    code = "MG213"
    message = "{what} must be a constant, and this is {found}"
    help = "{way_out}"
    example = "model m() { input x: float[4] if x { output x } }"
    way_out = "constants are numbers, strings, lists, parameters and loop variables"


class NotValue(Diagnostic):
    """A value of the network is needed here, and something else stands there."""

    code = "MG214"
    message = "{what} must be a value of the network, and this is {found}"
    help = "{way_out}"
    example = "model m() { input x: float[4] y = 3 -> linear(2) output y }"
    way_out = "a value is an input, or what a pipeline yields"


class Arithmetic(Diagnostic):
    """Constants cannot be combined so: a division by zero, a result beyond any size, kinds that do not go together."""

    code = "MG215"
    message = "{problem}"
    help = "{way_out}"
    example = "model m(k=0) { input x: float[4] y = x -> linear(4 / k) output y }"
    way_out = ""


class TooLarge(Diagnostic):
    """The graph would become larger than the limit that the message states."""

    code = "MG216"
    message = "{what}: at most {limit}"
    help = "{way_out}"
    example = "model m() { input x: float[4] repeat i in 0..10**9 { x = x -> relu } output x }"
    way_out = "lower the number"


class BadIndex(Diagnostic):
    """A list or family has no such member."""

    code = "MG219"
    message = "{problem}"
    help = "{way_out}"
    example = "model m(widths=[1, 2]) { input x: float[4] y = x -> linear(widths[2]) output y }"
    way_out = ""


class NamesAndResults(Diagnostic):
    """A statement binds another number of names than its right side yields values."""

    code = "MG220"
    message = "{names} names on the left, {values} values on the right"
    help = "bind one name to each value"
    example = "model m() { input x: float[4] a, b, c = x -> split(2) output a }"


class NoOutput(Diagnostic):
    """A model, and a block, must say what it yields."""

    code = "MG217"
    message = "{kind} {name} has no output"
    help = "add a line: output NAME"
    example = "model m() { input x: float[4] }"
    kind = "model"


class OutputReadsTarget(Diagnostic):
    """An output depends on a target. Inference has no targets, and a model that reads its own label learns nothing
    else. Values for training alone are the first operand of `training_or_inference`, such as the previous label in
    teacher forcing."""

    code = "MG264"
    message = 'output "{output}" reads the target "{target}" in inference, where there is none: {path}'
    help = "{way_out}"
    example = "model m() { input x: float[4] target t: float[4] y = x + t -> linear(4) output y loss mse(y, t) }"
    way_out = "give inference another value, (WITH_TARGET, WITHOUT) -> training_or_inference, or read it in a loss"
