"""Messages about what a spec means (MG2xx names and arguments, MG3xx types and shapes, MG4xx warnings)."""

from __future__ import annotations

from modgraph.diagnostics import Caution, Diagnostic


class UnknownName(Diagnostic):
    """A name is used that nothing before it declares. A value first bound inside `repeat` or `if` is not visible
    outside it."""

    code = "MG201"
    message = 'nothing is called "{name}" here'
    help = "{suggestion}"
    example = "model m() { input image: float[4] y = imgae -> linear(2) output y }"
    name: str
    suggestion: str


class UnknownOp(Diagnostic):
    """Right of an arrow stands an op, a named module, or a pool `by` a router; this name is none of them."""

    code = "MG202"
    message = 'there is no op, module or pool called "{name}"'
    help = "{suggestion}"
    example = "model m() { input x: float[4] y = x -> liner(2) output y }"
    name: str
    suggestion: str


class SelectsTooMany(Diagnostic):
    """A router sends each token to more modules than the pool has."""

    code = "MG203"
    message = 'router "{router}" selects k={k} of a pool of {size}'
    help = 'lower k, or raise the size of "{pool}"'
    example = (
        "model m() { input x: float[5, 4] pool p[2] = linear(4) router r = noisy_top_k(k=3) y = x -> p by r output y }"
    )
    router: str
    k: int
    pool: str
    size: int


class UnknownArgument(Diagnostic):
    """An op or router is given an argument it does not have."""

    code = "MG204"
    message = '{callee} has no argument "{name}"'
    help = "{suggestion}"
    example = "model m() { input x: float[4] y = x -> linear(2, biass=false) output y }"
    callee: str
    name: str
    suggestion: str


class MissingArgument(Diagnostic):
    """An op or router has a setting without a default, and it is not given."""

    code = "MG205"
    message = "{callee} needs {name}: {meaning}"
    help = "write it as {callee}({name}=…)"
    example = "model m() { input x: float[4] y = x -> linear output y }"
    callee: str
    name: str
    meaning: str


class BadSetting(Diagnostic):
    """A setting has a value of the wrong kind or outside its range."""

    code = "MG206"
    message = "{name} of {callee} {problem}"
    help = "{name}: {meaning}"
    example = "model m() { input x: float[4] y = x -> dropout(1.5) output y }"
    callee: str
    name: str
    problem: str
    meaning: str


class TooManyArguments(Diagnostic):
    """More positional arguments are given than there are settings."""

    code = "MG207"
    message = "{callee} takes at most {most} arguments"
    help = "its arguments, in order: {names}"
    example = "model m() { input x: float[4] y = x -> relu(3) output y }"
    callee: str
    most: int
    names: str


class DuplicateName(Diagnostic):
    """Two things of one scope have the same name. A value may be bound again with `=`; inputs, targets, modules,
    pools, routers, outputs and losses may not, and two weights never share a name."""

    code = "MG208"
    message = '"{name}" is declared twice'
    help = "{way_out}"
    example = "model m() { input x: float[4] input x: float[4] output x }"
    name: str
    way_out: str = "choose another name"


class DuplicateArgument(Diagnostic):
    """The same argument is given twice."""

    code = "MG209"
    message = '{callee} is given "{name}" twice'
    help = "keep one of them"
    example = "model m() { input x: float[4] y = x -> linear(2, width=3) output y }"
    callee: str
    name: str


class UnknownParameter(Diagnostic):
    """A parameter is set from outside (`-s name=value`) that the model does not have."""

    code = "MG210"
    message = 'model {model} has no parameter "{name}"'
    help = "{suggestion}"
    model: str
    name: str
    suggestion: str


class BadParameter(Diagnostic):
    """A parameter is set from outside to a value of another kind than its default."""

    code = "MG211"
    message = 'parameter "{name}" must be {wanted}, not {given}'
    help = "its default is {default}"
    name: str
    wanted: str
    given: str
    default: str


class ParameterWithoutValue(Diagnostic):
    """A model's parameter has no default and is not set."""

    code = "MG212"
    message = 'parameter "{name}" has no value'
    help = "give it a default, {name}=…, or set it with -s {name}=…"
    example = "model m(width) { input x: float[4] y = x -> linear(width) output y }"
    name: str


class NotConstant(Diagnostic):
    """Sizes, settings and conditions are known when the model is built; this one would depend on its input."""

    code = "MG213"
    message = "{what} must be a constant, and this is {found}"
    help = "constants are numbers, strings, lists, parameters and loop variables"
    example = "model m() { input x: float[4] if x { output x } }"
    what: str
    found: str


class NotValue(Diagnostic):
    """A value of the network is needed here, and something else stands there."""

    code = "MG214"
    message = "{what} must be a value of the network, and this is {found}"
    help = "{way_out}"
    example = "model m() { input x: float[4] y = 3 -> linear(2) output y }"
    what: str
    found: str
    way_out: str = "a value is an input, or what a pipeline yields"


class Arithmetic(Diagnostic):
    """Constants cannot be combined so: a division by zero, a result beyond any size, kinds that do not go together."""

    code = "MG215"
    message = "{problem}"
    help = "{way_out}"
    example = "model m(k=0) { input x: float[4] y = x -> linear(4 / k) output y }"
    problem: str
    way_out: str = ""


class TooLarge(Diagnostic):
    """The graph would become larger than the limit that the message states."""

    code = "MG216"
    message = "{what}: at most {limit}"
    help = "{way_out}"
    example = "model m() { input x: float[4] repeat i in 0..10**9 { x = x -> relu } output x }"
    what: str
    limit: int
    way_out: str = "lower the number"


class NoOutput(Diagnostic):
    """A model must say what it yields."""

    code = "MG217"
    message = "model {model} has no output"
    help = "add a line: output NAME"
    example = "model m() { input x: float[4] }"
    model: str


class WrongKind(Diagnostic):
    """The name is known, but it stands for something else than what is needed here."""

    code = "MG218"
    message = "{needed} is needed here, and {found}"
    help = "{way_out}"
    example = "model m() { input x: float[4] pool p[2] = linear(3) y = x -> p by x output y }"
    needed: str
    found: str
    way_out: str = ""


class BadIndex(Diagnostic):
    """A list or family has no such member."""

    code = "MG219"
    message = "{problem}"
    help = "{way_out}"
    example = "model m(widths=[1, 2]) { input x: float[4] y = x -> linear(widths[2]) output y }"
    problem: str
    way_out: str = ""


class NamesAndResults(Diagnostic):
    """A statement binds another number of names than its right side yields values."""

    code = "MG220"
    message = "{names} names on the left, {values} values on the right"
    help = "bind one name to each value"
    example = "model m() { input x: float[4] a, b, c = x -> split(2) output a }"
    names: int
    values: int


class UnknownStart(Diagnostic):
    """`init=` says how the first weight of an op starts: `zeros`, `ones`, `normal(deviation)` or `uniform(bound)`."""

    code = "MG221"
    message = "this is not a way a weight can start"
    help = "write zeros, ones, normal(0.02) or uniform(0.1)"
    example = "model m() { input x: float[4] y = x -> linear(2, init=normal) output y }"


class RecursiveBlock(Diagnostic):
    """A block uses itself, directly or through another: it would never end."""

    code = "MG222"
    message = 'block "{name}" uses itself'
    help = "repeat a fixed number of times with: repeat NAME[i] in 0..n {{ … }}"
    example = "block b() { input x: float[4] y = x -> b output y } model m() { input x: float[4] y = x -> b output y }"
    name: str


class BlockOperands(Diagnostic):
    """A block is applied to as many values as it has inputs."""

    code = "MG223"
    message = 'block "{name}" has {inputs} inputs, and {given} values are given'
    help = "write (a, b) -> {name} for two"
    example = "block b() { input x: float[4] output x } model m() { input x: float[4] y = (x, x) -> b output y }"
    name: str
    inputs: int
    given: int


class PoolWithoutSize(Diagnostic):
    """A pool of modules of one kind says how many there are; a list of unlike modules says it by its length."""

    code = "MG227"
    message = 'pool "{name}" does not say how many modules it has'
    help = "write pool {name}[4] = …, or list unlike modules: pool {name} = [ …, … ]"
    example = "model m() { input x: float[4] pool p = linear(3) output x }"
    name: str


class CannotGrow(Diagnostic):
    """`grow pool[2]` adds modules to a pool of modules of one kind, before the pool is first used."""

    code = "MG228"
    message = 'pool "{pool}" cannot grow here: {reason}'
    help = "{way_out}"
    example = "model m() { input x: float[4] pool p[2] = linear(3) y = x -> p -> mean grow p[1] output y }"
    pool: str
    reason: str
    way_out: str


class NotInThatFile(Diagnostic):
    """An import names a block that the other file does not define."""

    code = "MG224"
    message = 'there is no block "{name}" in "{path}"'
    help = "{suggestion}"
    name: str
    path: str
    suggestion: str


class CircularImport(Diagnostic):
    """Files import each other in a circle."""

    code = "MG225"
    message = 'importing "{path}" comes back to this file'
    help = "move what both need to a third file"
    path: str


class NotInRegion(Diagnostic):
    """A pool's modules are made of ops, blocks and modules of their own."""

    code = "MG226"
    message = "{what} cannot stand inside the modules of a pool"
    help = "{way_out}"
    example = (
        "model m() { input x: float[4] module shared = linear(4) router r = agreement(1) "
        "pool p[2] = shared y = x -> p by r output y }"
    )
    what: str
    way_out: str = "move it outside of the pool"


class YieldOutsideScan(Diagnostic):
    """`yield` says what each step of a scan gives; it stands in the scan's own body, not in a block that it uses."""

    code = "MG230"
    message = "this yield stands in no scan"
    help = "a model or block gives a value with: output NAME"
    example = "model m() { input x: float[5, 4] yield x output x }"


class NoYield(Diagnostic):
    """A scan gives what its steps yield, joined along the first axis; nothing else of it is seen outside."""

    code = "MG231"
    message = "this scan yields nothing"
    help = "add to its body: yield NAME"
    example = "model m() { input x: float[5, 4] scan x as v with h: float[4] { h = h + v } as y output x }"


class YieldsAndNames(Diagnostic):
    """A scan names after `as` what its steps yield: as many names as values, in the order of its yields."""

    code = "MG232"
    message = 'each step yields {values} values, and {names} names follow "as"'
    help = "write one name for each value that is yielded"
    example = "model m() { input x: float[5, 4] scan x as v { yield v } as y, z output y }"
    values: int
    names: int


class NotInScan(Diagnostic):
    """The body of a scan is one step, which runs many times: what there is once for a model stands outside."""

    code = "MG233"
    message = "{what} cannot stand inside a scan"
    help = "{way_out}"
    example = "model m() { input x: float[5, 4] scan x as v { yield v loss v -> mean(axis=-1) } as y output y }"
    what: str
    way_out: str


class NotAState(Diagnostic):
    """The body of a scan reads values bound outside, and they stay the same at every step. A value that changes from
    step to step is a state, declared with its type."""

    code = "MG234"
    message = '"{name}" is bound outside this scan and is no state of it: binding it again would change nothing there'
    help = "carry it from step to step, … with {name}: float[…] = {name} {{ … }}, or choose another name"
    example = "model m() { input x: float[5, 4] t = x -> mean scan x as v { t = t + v yield t } as y output y }"
    name: str


class DoesNotFit(Diagnostic):
    """The types of the operands do not fit an op, a router or a pool."""

    code = "MG301"
    message = "{who}: {reason}"
    help = "{way_out}"
    example = "model m() { input x: float[4] y = x -> conv(8) output y }"
    who: str
    reason: str
    way_out: str = ""


class UnknownType(Diagnostic):
    """A type is `float[axes…]`, `token[axes…, vocabulary]` or `class[axes…, classes]`."""

    code = "MG302"
    message = 'there is no type "{name}"'
    help = "{suggestion}"
    example = "model m() { input x: flaot[4] output x }"
    name: str
    suggestion: str


class BadAxis(Diagnostic):
    """An axis of a type is a whole number from 1, or a name that stands for any length."""

    code = "MG303"
    message = "{problem}"
    help = "{way_out}"
    example = "model m() { input x: float[0] output x }"
    problem: str
    way_out: str = "an axis is a whole number from 1, or a new name for any length"


class SharedWithOtherShapes(Diagnostic):
    """A module, pool or router is shared by all its uses, so each use must give its weights the same shapes."""

    code = "MG304"
    message = '"{name}" is shared, and this use gives "{weight}" the shape {found}, where an earlier one gave {earlier}'
    help = "declare a second one, or make the shapes equal"
    example = (
        "model m() { input a: float[4] input b: float[5] module enc = linear(3) "
        "y = a -> enc z = b -> enc output y output z }"
    )
    name: str
    weight: str
    found: str
    earlier: str


class SharedWithOtherWeights(Diagnostic):
    """Two ops with one name have one set of weights, so each must have all of them: with a bias, or both without."""

    code = "MG312"
    message = '"{name}" is shared, and this use has the weights {found}, where an earlier one had {earlier}'
    help = "give each a name of its own, or make their settings equal"
    example = (
        'model m() { input x: float[4] y = x -> linear(4, bias=false, name="z") z = x -> linear(4, name="z") '
        "output y output z }"
    )
    name: str
    found: str
    earlier: str


class LossIsNotNumber(Diagnostic):
    """A loss is one number per example, or one over the batch."""

    code = "MG305"
    message = "a loss is one number, and this is {found}"
    help = "reduce it, for example with: -> mean(axis=-1)"
    example = "model m() { input x: float[4] output x loss x }"
    found: str


class NoTimeAxis(Diagnostic):
    """A scan runs over the first axis of a value, one step for each place along it."""

    code = "MG310"
    message = "a scan runs over the first axis of a value, and this is {found}"
    help = "{way_out}"
    example = "model m() { input x: float scan x as v { yield v } as y output y }"
    found: str
    way_out: str = "scan a value that has an axis, such as float[time, 8]"


class StateType(Diagnostic):
    """A state of a scan has one type: float, of fixed lengths. It starts with it, and each step gives it a value of
    that type."""

    code = "MG311"
    message = 'state "{name}" is {declared}, and {found}'
    help = "{way_out}"
    example = (
        "model m() { input x: float[5, 4] scan x as v with h: float[3] { h = (h, v) -> concat yield h } as y output y }"
    )
    name: str
    declared: str
    found: str
    way_out: str = "make the two equal"


class Unused(Caution):
    """Something is declared and never used, so it is left out of the graph."""

    code = "MG401"
    message = '{what} "{name}" is never used: it is left out'
    help = "use it or delete its line"
    example = "model m() { input x: float[4] pool p[2] = linear(3) output x }"
    what: str
    name: str


class OutsideProject(Caution):
    """An import reads a file outside the folder of the spec: said, so that no spec reads files unnoticed."""

    code = "MG403"
    message = '"{path}" lies outside the folder of the spec'
    help = "copy it beside the spec, or go on if this is meant"
    path: str


class Dead(Caution):
    """Weights are made that no output or loss depends on."""

    code = "MG404"
    message = 'the weights of "{name}" reach no output and no loss'
    help = "use the value, or delete the statement"
    example = "model m() { input x: float[4] y = x -> linear(2) output x }"
    name: str


class SingleModule(Caution):
    """A router chooses among one module, so there is nothing to choose."""

    code = "MG405"
    message = 'router "{router}" routes to a pool of one module'
    help = "raise the pool's size"
    example = "model m() { input x: float[4] pool p[1] = linear(4) router r = agreement(1) y = x -> p by r output y }"
    router: str


class SelectsAll(Caution):
    """A router that chooses modules is set to choose all of them: each token is computed by every module."""

    code = "MG408"
    message = 'router "{router}" selects all {size} modules of "{pool}"'
    help = "lower k, or take a router that mixes all modules"
    example = (
        "model m() { input x: float[5, 4] pool p[2] = linear(4) router r = noisy_top_k(k=2) y = x -> p by r output y }"
    )
    router: str
    pool: str
    size: int


class NoBalance(Caution):
    """A router that may come to use few of its modules has no loss that keeps their use in balance, in a model that
    is trained."""

    code = "MG407"
    message = 'nothing keeps router "{router}" from using few of its modules'
    help = "add a loss such as: loss 0.01 * importance({router})"
    example = (
        "model m() { input x: float[5, 4] pool p[2] = linear(4) router r = agreement(1) "
        "y = x -> p by r -> mean output y loss mse(y, y) }"
    )
    router: str


class NamesWouldShift(Caution):
    """A name is bound twice in one scope by statements with weights of their own: the second's are numbered, and a
    statement inserted between would rename them, so that a checkpoint no longer fits."""

    code = "MG406"
    message = 'weights stand under "{name}", a number that an inserted statement would shift'
    help = 'name the op: name="…"'
    example = "model m() { input x: float[4] x = x -> linear(4) x = x -> linear(4) output x }"
    name: str


class StateStays(Caution):
    """The body of a scan never binds a state anew, so that it keeps the value it starts with."""

    code = "MG410"
    message = 'nothing updates state "{name}": it stays as it starts'
    help = "bind it in the body, {name} = …, or read a value from outside instead"
    example = "model m() { input x: float[5, 4] scan x as v with h: float[4] { yield v + h } as y output y }"
    name: str


class EmptyFamily(Caution):
    """A statistic runs over a family without members; it counts as zero."""

    code = "MG402"
    message = 'no router called "{name}" was declared: {statistic} of none is 0'
    help = "{way_out}"
    name: str
    statistic: str
    way_out: str = "check the condition under which it is declared"
