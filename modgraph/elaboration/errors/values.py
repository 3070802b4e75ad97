"""Messages about types, values and constants, arrays and states, growth in training, and names that moved."""

from __future__ import annotations

from modgraph.diagnostics import Caution, Diagnostic


class DoesNotFit(Diagnostic, code="MG301"):
    """The types of the operands do not fit an op, a router or a pool."""

    message = "{who}: {reason}"
    example = "model m() { input x: float[4] y = x -> conv(8) output y }"
    way_out = ""


class UnknownType(Diagnostic, code="MG302"):
    """A type is `float[axes…]`, `token[axes…, vocabulary]` or `class[axes…, classes]`."""

    message = 'there is no type "{name}"'
    help = "{suggestion}"
    example = "model m() { input x: flaot[4] output x }"


class BadAxis(Diagnostic, code="MG303"):
    """An axis of a type is a whole number from 1, or a name that stands for any length."""

    message = "{problem}"
    example = "model m() { input x: float[0] output x }"
    way_out = "an axis is a whole number from 1, or a new name for any length"


class AxisDiffers(Diagnostic, code="MG257"):
    """An axis has one length wherever it occurs. A type that writes it gives the axis its name, or agrees with it."""

    message = 'the axis "{name}" is {before} elsewhere, and {length} here'
    help = "give one of the two another name"
    example = "model m() { input x: float[place=4] input y: float[place=5] output x output y }"


class OneAxisForTwo(Diagnostic, code="MG306"):
    """The inputs of a block or router name two axes, and a use sends the same axis for both. The body would compute
    something else: `(a, b) -> contract` keeps two axes apart, and aligns one that both values have. An axis with a
    number can get another name first, `x -> rename(expert="other")`; an axis of any length cannot."""

    message = "{who} keeps {words} apart, and this use sends the axis {axis} for both"
    example = (
        "block pairs() { input a: float[one, 4] input b: float[other, 4] y = (a, b) -> contract output y } "
        "model m() { input x: float[time, 4] y = (x, x) -> pairs output y }"
    )


class SharedWithOtherShapes(Diagnostic, code="MG304"):
    """A module, pool or router is shared by all its uses, so each use must give its weights the same shapes."""

    message = '"{name}" is shared, and this use gives "{weight}" the shape {found}, where an earlier one gave {earlier}'
    help = "declare a second one, or make the shapes equal"
    example = (
        "model m() { input a: float[4] input b: float[5] module enc = linear(3) "
        "y = a -> enc z = b -> enc output y output z }"
    )


class SharedWithOtherWeights(Diagnostic, code="MG312"):
    """Two ops with one name have one set of weights, so each must have all of them: with a bias, or both without."""

    message = '"{name}" is shared, and this use has the weights {found}, where an earlier one had {earlier}'
    help = "give each a name of its own, or make their settings equal"
    example = (
        'model m() { input x: float[4] y = x -> linear(4, bias=false, name="z") z = x -> linear(4, name="z") '
        "output y output z }"
    )


class LossIsNotNumber(Diagnostic, code="MG305"):
    """A loss is one number per example, or one over the batch."""

    message = "a loss is one number, and this is {found}"
    help = "reduce it, for example with: -> mean(axis=-1)"
    example = "model m() { input x: float[4] output x loss x }"


class NotConstant(Diagnostic, code="MG213"):
    """Sizes, settings and conditions are known when the model is built; this one would depend on its input."""

    message = "{what} must be a constant, and this is {found}"
    example = "model m() { input x: float[4] if x { output x } }"
    way_out = "constants are numbers, strings, lists, parameters and loop variables"


class NotValue(Diagnostic, code="MG214"):
    """A value of the network is needed here, and something else stands there."""

    message = "{what} must be a value of the network, and this is {found}"
    example = "model m() { input x: float[4] y = 3 -> linear(2) output y }"
    way_out = "a value is an input, or what a pipeline yields"


class Arithmetic(Diagnostic, code="MG215"):
    """Constants cannot be combined so: a division by zero, a result beyond any size, kinds that do not go together."""

    message = "{problem}"
    example = "model m(k=0) { input x: float[4] y = x -> linear(4 / k) output y }"
    way_out = ""


class TooLarge(Diagnostic, code="MG216"):
    """The graph would become larger than the limit that the message states."""

    message = "{what}: at most {limit}"
    example = "model m() { input x: float[4] repeat i in 0..10**9 { x = x -> relu } output x }"
    way_out = "lower the number"


class BadIndex(Diagnostic, code="MG219"):
    """A list or family has no such member."""

    message = "{problem}"
    example = "model m(widths=[1, 2]) { input x: float[4] y = x -> linear(widths[2]) output y }"
    way_out = ""


class NamesAndResults(Diagnostic, code="MG220"):
    """A statement binds another number of names than its right side yields values."""

    message = "{names} names on the left, {values} values on the right"
    help = "bind one name to each value"
    example = "model m() { input x: float[4] a, b, c = x -> split(2) output a }"


class NoOutput(Diagnostic, code="MG217"):
    """A model, and a block, must say what it yields."""

    message = "{kind} {name} has no output"
    help = "add a line: output NAME"
    example = "model m() { input x: float[4] }"
    kind = "model"


class OutputReadsTarget(Diagnostic, code="MG264"):
    """An output depends on a target. Inference has no targets, and a model that reads its own label learns nothing
    else. Values for training alone are the first operand of `training_or_inference`, such as the previous label in
    teacher forcing."""

    message = 'output "{output}" reads the target "{target}" in inference, where there is none: {path}'
    example = "model m() { input x: float[4] target t: float[4] y = x + t -> linear(4) output y loss mse(y, t) }"
    way_out = "give inference another value, (WITH_TARGET, WITHOUT) -> training_or_inference, or read it in a loss"


class NoSuchArray(Diagnostic, code="MG253"):
    """A constant is a number, or a list of lists of numbers as long as its type says, the last axis innermost."""

    message = "the numbers of this constant are not those of {type}: {problem}"
    help = "for example: constant c: float[2, 3] = [[1, 0, 0], [0, 1, 0]]; or one number for all places"
    example = "model m() { input x: float[2, 3] constant c: float[2, 3] = [[1, 0, 0], [0, 1]] y = x * c output y }"


class NoState(Diagnostic, code="MG254"):
    """`next NAME = …` says what a state is after a step of training; the state is declared before, in the same body."""

    message = '"{name}" is no state that could have a next value: it is {found}'
    help = "declare it first: state {name}: float[4] = zeros"
    example = "model m() { input x: float[4] y = x -> relu next y = x -> batch_mean output y }"


class TwoNexts(Diagnostic, code="MG255"):
    """A state has one rule. In a block or module that is used twice it would have two."""

    message = 'the state "{name}" has a next value already'
    help = "say once what it becomes; of a module that is used at several places, at one of them"
    example = "model m() { input x: float[4] state s: float[4] = zeros next s = s next s = 2 * s y = x + s output y }"


class MoveInside(Diagnostic, code="MG241"):
    """What has moved is told with the names that the whole model's graph has, so it stands in the model's own body,
    outside of repeats, branches, scans and blocks."""

    message = '"moved" stands at the top of a model'
    help = "put it at the end of the model's body, with the whole names: moved blocks.0.old -> blocks.0.new"
    example = "model m() { input x: float[4] frozen { y = x -> linear(2) moved z -> y } output y }"


class MovedTwice(Diagnostic, code="MG242"):
    """A name has moved to one place, and to a place one name has moved. Moves may follow each other: `moved a -> b`
    and `moved b -> c`."""

    message = '"{name}" is moved twice'
    help = "keep one of them; of moves that follow each other write: moved a -> b, and moved b -> c"
    example = "model m() { input x: float[4] y = x -> linear(2) output y moved z -> y moved w -> y }"


class MovedNowhere(Caution, code="MG243"):
    """The new name of something that has moved is not there. Names are those of the graph, as `modgraph show` prints
    them, or what these lie below; some parameters of a model may have a name that others lack."""

    message = 'nothing is called "{name}" in the graph'
    help = "{suggestion}"
    example = "model m() { input x: float[4] first = x -> linear(2) output first moved start -> frist }"


TRAINED = (
    "model m() { input x: float[5, 4] pool p[2] = linear(4) router r = agreement(1) "
    "y = x -> p by r -> mean c = y -> mean(axis=-1) -> batch_mean output y "
)
LOSS = ' loss importance(r, over="example") }'


class GrowthCondition(Diagnostic, code="MG251"):
    """Whether a pool grows is decided for a whole batch by one number, which says no where it is zero."""

    message = "growth needs one number for the whole batch, and this is {found}"
    example = f"{TRAINED} grow p by r when y -> mean(axis=-1){LOSS}"


class GrowsByAnother(Diagnostic, code="MG252"):
    """A pool grows by a router that sends through it, which then gets an output more."""

    message = 'router "{router}" sends nothing through pool "{pool}" before it grows'
    help = "let it grow by the router that it is used by, behind: x -> {pool} by {router}"
    example = f"{TRAINED} router s = agreement(1) grow p by s when c > 0{LOSS}"


class GrowsTwice(Diagnostic, code="MG256"):
    """Modules along one axis grow together, so one condition decides for all pools that share it."""

    message = 'it is said twice when the modules of "{pool}" grow'
    help = "make one condition of both, for example: maximum(a > 2, b > 2)"
    example = f"{TRAINED} grow p by r when c > 0 grow p by r when c > 1{LOSS}"
