"""Messages about arrays and states, growth in training, and names that moved."""

from __future__ import annotations

from modgraph.diagnostics import Caution, Diagnostic


class NoSuchArray(Diagnostic):
    """A constant is a number, or a list of lists of numbers as long as its type says, the last axis innermost."""

    code = "MG253"
    message = "the numbers of this constant are not those of {type}: {problem}"
    help = "for example: constant c: float[2, 3] = [[1, 0, 0], [0, 1, 0]]; or one number for all places"
    example = "model m() { input x: float[2, 3] constant c: float[2, 3] = [[1, 0, 0], [0, 1]] y = x * c output y }"


class NoState(Diagnostic):
    """`next NAME = …` says what a state is after a step of training; the state is declared before, in the same body."""

    code = "MG254"
    message = '"{name}" is no state that could have a next value: it is {found}'
    help = "declare it first: state {name}: float[4] = zeros"
    example = "model m() { input x: float[4] y = x -> relu next y = x -> batch_mean output y }"


class TwoNexts(Diagnostic):
    """A state has one rule. In a block or module that is used twice it would have two."""

    code = "MG255"
    message = 'the state "{name}" has a next value already'
    help = "say once what it becomes; of a module that is used at several places, at one of them"
    example = "model m() { input x: float[4] state s: float[4] = zeros next s = s next s = 2 * s y = x + s output y }"


class MoveInside(Diagnostic):
    """What has moved is told with the names that the whole model's graph has, so it stands in the model's own body,
    outside of repeats, branches, scans and blocks."""

    code = "MG241"
    message = '"moved" stands at the top of a model'
    help = "put it at the end of the model's body, with the whole names: moved blocks.0.old -> blocks.0.new"
    example = "model m() { input x: float[4] frozen { y = x -> linear(2) moved z -> y } output y }"


class MovedTwice(Diagnostic):
    """A name has moved to one place, and to a place one name has moved. Moves may follow each other: `moved a -> b`
    and `moved b -> c`."""

    code = "MG242"
    message = '"{name}" is moved twice'
    help = "keep one of them; of moves that follow each other write: moved a -> b, and moved b -> c"
    example = "model m() { input x: float[4] y = x -> linear(2) output y moved z -> y moved w -> y }"


class MovedNowhere(Caution):
    """The new name of something that has moved is not there. Names are those of the graph, as `modgraph show` prints
    them, or what these lie below; some parameters of a model may have a name that others lack."""

    code = "MG243"
    message = 'nothing is called "{name}" in the graph'
    help = "{suggestion}"
    example = "model m() { input x: float[4] first = x -> linear(2) output first moved start -> frist }"


SENT = (
    "model m() { input x: float[5, 4] pool p[2] = linear(4) router r = agreement(1) "
    "y = x -> p by r -> mean c = y -> mean(axis=-1) -> batch_mean output y "
)
LOSS = ' loss importance(r, over="example") }'


class GrowthCondition(Diagnostic):
    """Whether a pool grows is decided for a whole batch by one number, which says no where it is zero."""

    code = "MG251"
    message = "growth is decided by one number for the whole batch, and this is {found}"
    help = "{way_out}"
    example = f"{SENT} grow p by r when y -> mean(axis=-1){LOSS}"


class GrowsByAnother(Diagnostic):
    """A pool grows by a router that sends through it, which then gets an output more."""

    code = "MG252"
    message = 'router "{router}" sends nothing through pool "{pool}" before it grows'
    help = "let it grow by the router that it is used by, behind: x -> {pool} by {router}"
    example = f"{SENT} router s = agreement(1) grow p by s when c > 0{LOSS}"


class GrowsTwice(Diagnostic):
    """Modules along one axis grow together, so one condition decides for all pools that share it."""

    code = "MG256"
    message = 'it is said twice when the modules of "{pool}" grow'
    help = "make one condition of both, for example: maximum(a > 2, b > 2)"
    example = f"{SENT} grow p by r when c > 0 grow p by r when c > 1{LOSS}"
