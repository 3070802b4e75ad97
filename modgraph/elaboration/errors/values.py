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

    message = 'unknown type "{name}"'
    help = "{suggestion}"
    example = "model m() { input x: flaot[4] output x }"


class BadAxis(Diagnostic, code="MG303"):
    """An axis of a type is a whole number from 1, or a name that stands for any length."""

    message = "{problem}"
    example = "model m() { input x: float[0] output x }"
    way_out = "write a whole number from 1, or a new name for any length"


class NoNodes(Diagnostic, code="MG308"):
    """Edges join places along axes that values have. The number of nodes follows from such a value, so an input or a
    target needs the axis."""

    message = 'edges "{name}" join places along "{axis}", which no input has'
    help = "{suggestion}"
    example = "model m() { input x: float[node, 4] input link: edge[nodes, nodes] output x }"


class AxisDiffers(Diagnostic, code="MG257"):
    """An axis has one length wherever it occurs. The first type that gives it a length decides."""

    message = 'axis "{name}" is {length} here, but {before} elsewhere'
    help = "rename one of the two"
    example = "model m() { input x: float[place=4] input y: float[place=5] output x output y }"


class OneAxisForTwo(Diagnostic, code="MG306"):
    """The inputs of a block name two axes, and the modules of a pool, which take tokens by themselves, have the same
    axis of tokens for both. The body would compute something else: `(a, b) -> contract` keeps two axes apart, and
    aligns one that both values have."""

    message = "{who} needs two axes for {words}, not {axis} for both"
    example = (
        "block pairs() { input a: float[one, 4] input b: float[other, 4] y = (a, b) -> contract output y } "
        "model m() { input x: float[time, 4] pool p[3] = pairs y = (x, x) -> p output y }"
    )


class NotCausal(Diagnostic, code="MG307"):
    """A spec demands that a value reads no later tokens: `require causal(logits, words)`. Entry t of the value may then
    depend on tokens 0 to t of `words`, in training and in inference. The message names the shortest path from the op
    that reads later tokens.

    Tokens that compete read each other: in a limited capacity, where modules choose tokens, in statistics of the batch.
    The lengths of examples do not count. The axis of tokens is the first one of any length; else the last one of ids,
    the last but one of numbers; or `causal(y, x, axis=-3)` names it.
    """

    message = '"{value}" reads later tokens of "{tokens}"{when}: {path}'
    example = "model m() { input x: float[time, 4] y = x -> attention(2) -> linear(3) output y require causal(y, x) }"


class SharedWithOtherShapes(Diagnostic, code="MG304"):
    """All uses share a module, pool or router, so each must give its weights the same shapes."""

    message = '"{weight}" of the shared "{name}" has shape {found} here, but {earlier} at an earlier use'
    help = "declare a second one, or make the shapes equal"
    example = (
        "model m() { input a: float[4] input b: float[5] module enc = linear(3) "
        "y = a -> enc z = b -> enc output y output z }"
    )


class SharedWithOtherWeights(Diagnostic, code="MG312"):
    """Ops of one name share one set of weights, so each must have all of them: all with a bias, or all without."""

    message = 'the shared "{name}" has weights {found} here, but {earlier} at an earlier use'
    help = "give each another name, or make their settings equal"
    example = (
        'model m() { input x: float[4] y = x -> linear(4, bias=false, name="z") z = x -> linear(4, name="z") '
        "output y output z }"
    )


class LossIsNotNumber(Diagnostic, code="MG305"):
    """A loss is one number per example, or one over the batch."""

    message = "a loss must be one number, not {found}"
    help = "reduce it, for example: -> mean(axis=-1)"
    example = "model m() { input x: float[4] output x loss x }"


class NotConstant(Diagnostic, code="MG213"):
    """Sizes, settings and conditions are known when the model is built. This one would depend on its input."""

    message = "{what} must be a constant, not {found}"
    example = "model m() { input x: float[4] if x { output x } }"
    way_out = "use numbers, strings, lists, parameters or loop variables"


class NotValue(Diagnostic, code="MG214"):
    """This place expects a value of the network."""

    message = "{what} must be a value of the network, not {found}"
    example = "model m() { input x: float[4] y = 3 -> linear(2) output y }"
    way_out = "use an input, or the result of a pipeline"


class Arithmetic(Diagnostic, code="MG215"):
    """These constants cannot be combined: a division by zero, a result that is too large, or kinds that do not go
    together."""

    message = "{problem}"
    example = "model m(k=0) { input x: float[4] y = x -> linear(4 / k) output y }"
    way_out = ""


class TooLarge(Diagnostic, code="MG216"):
    """The graph would exceed the limit in the message."""

    message = "{what}: at most {limit}"
    example = "model m() { input x: float[4] repeat i in 0..10**9 { x = x -> relu } output x }"
    way_out = "lower the number"


class BadIndex(Diagnostic, code="MG219"):
    """The list or family has no such member."""

    message = "{problem}"
    example = "model m(widths=[1, 2]) { input x: float[4] y = x -> linear(widths[2]) output y }"
    way_out = ""


class NamesAndResults(Diagnostic, code="MG220"):
    """A statement binds more or fewer names than its right side yields values."""

    message = "{names} names on the left, {values} values on the right"
    help = "bind one name to each value"
    example = "model m() { input x: float[4] a, b, c = x -> split(2) output a }"


class NoOutput(Diagnostic, code="MG217"):
    """A model, and a block, needs an output."""

    message = "{kind} {name} has no output"
    help = "add a line: output NAME"
    example = "model m() { input x: float[4] }"
    kind = "model"


class OutputReadsTarget(Diagnostic, code="MG264"):
    """An output depends on a target. Inference has no targets, and a model that reads its own label learns nothing
    else. The first operand of `training_or_inference` is for training only, such as the previous label in teacher
    forcing."""

    message = 'output "{output}" reads target "{target}", which inference lacks: {path}'
    example = "model m() { input x: float[4] target t: float[4] y = x + t -> linear(4) output y loss mse(y, t) }"
    way_out = (
        "give inference another value, (WITH_TARGET, WITHOUT) -> training_or_inference, or read the target in a loss"
    )


class NoSuchArray(Diagnostic, code="MG253"):
    """A constant is a number, or nested lists of numbers as long as its type says, the last axis innermost."""

    message = "the numbers do not fit {type}: {problem}"
    help = "for example: constant c: float[2, 3] = [[1, 0, 0], [0, 1, 0]], or one number for all places"
    example = "model m() { input x: float[2, 3] constant c: float[2, 3] = [[1, 0, 0], [0, 1]] y = x * c output y }"


class NoState(Diagnostic, code="MG254"):
    """`next NAME = …` updates a state after a step of training. The same body declares the state before."""

    message = '"{name}" must be a state to have a next value, not {found}'
    help = "declare it first: state {name}: float[4] = zeros"
    example = "model m() { input x: float[4] y = x -> relu next y = x -> batch_mean output y }"


class TwoNexts(Diagnostic, code="MG255"):
    """A state has one update. In a block or module that is used twice it would have two."""

    message = 'state "{name}" has two next values'
    help = "keep one: next NAME = …; for a module that is used twice, at one of its uses"
    example = "model m() { input x: float[4] state s: float[4] = zeros next s = s next s = 2 * s y = x + s output y }"


class MoveInside(Diagnostic, code="MG241"):
    """`moved` uses names of the whole graph, so it belongs in the model's own body, outside of repeats, branches, scans
    and blocks."""

    message = '"moved" must stand at the top of a model'
    help = "put it at the end of the model, with whole names: moved blocks.0.old -> blocks.0.new"
    example = "model m() { input x: float[4] frozen { y = x -> linear(2) moved z -> y } output y }"


class MovedTwice(Diagnostic, code="MG242"):
    """A name moves to one place, and to each place moves one name. Moves may follow each other: `moved a -> b` and
    `moved b -> c`."""

    message = '"{name}" is moved twice'
    help = "keep one; for moves that follow each other write: moved a -> b, and moved b -> c"
    example = "model m() { input x: float[4] y = x -> linear(2) output y moved z -> y moved w -> y }"


class MovedNowhere(Caution, code="MG243"):
    """The new name of a move does not exist. Use names of the graph, as `modgraph show` prints them, or a prefix of
    them; some parameters of a model may have a name that others lack."""

    message = 'unknown name "{name}" in the graph'
    help = "{suggestion}"
    example = "model m() { input x: float[4] first = x -> linear(2) output first moved start -> frist }"


TRAINED = (
    "model m() { input x: float[5, 4] pool p[2] = linear(4) router r = agreement(1) "
    "y = x -> p by r -> mean c = y -> mean(axis=-1) -> batch_mean output y "
)
LOSS = ' loss importance(r, over="example") }'


class GrowthCondition(Diagnostic, code="MG251"):
    """One number decides for a whole batch whether a pool grows. Zero means no."""

    message = "growth needs one number for the batch, not {found}"
    example = f"{TRAINED} grow p by r when y -> mean(axis=-1){LOSS}"


class GrowsByAnother(Diagnostic, code="MG252"):
    """A pool grows by a router that routes through it. The router then gets another output."""

    message = 'router "{router}" routes nothing through pool "{pool}" before it grows'
    help = "grow it by the router of an earlier use: x -> {pool} by {router}"
    example = f"{TRAINED} router s = agreement(1) grow p by s when c > 0{LOSS}"


class GrowsTwice(Diagnostic, code="MG256"):
    """Modules along one axis grow together, so one condition decides for all pools that share it."""

    message = 'the modules of "{pool}" have two conditions to grow'
    help = "combine them, for example: maximum(a > 2, b > 2)"
    example = f"{TRAINED} grow p by r when c > 0 grow p by r when c > 1{LOSS}"
