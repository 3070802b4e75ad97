"""Messages about names, and about arguments and parameters of ops, routers, blocks and models."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class UnknownName(Diagnostic, code="MG201"):
    """Nothing above declares this name. A value first bound inside `repeat` or `if` is not visible outside it."""

    message = 'unknown name "{name}"'
    help = "{suggestion}"
    example = "model m() { input image: float[4] y = imgae -> linear(2) output y }"


class BoundInside(UnknownName):
    """The name belongs to a value inside a body that ends above."""

    message = '"{name}" is bound only inside the {body}'
    body: str


class AxisOfAnyLength(Diagnostic, code="MG262"):
    """A name in the type of a block's or router's input is a number where the operand has a fixed length along it. Here
    it has not."""

    message = '"{name}" is an axis of any length, not a number'
    example = (
        "block b() { input x: float[tokens, dim] y = x -> linear(tokens) output y } "
        "model m() { input x: float[time, 4] y = x -> b output y }"
    )


class UnknownOp(Diagnostic, code="MG202"):
    """An op, a named module, or a pool `by` a router stands right of an arrow. This name is none of them."""

    message = 'unknown {kind} "{name}"'
    help = "{suggestion}"
    example = "model m() { input x: float[4] y = x -> liner(2) output y }"
    kind = "op, module or pool"


class DuplicateName(Diagnostic, code="MG208"):
    """Two declarations of one scope have the same name. A value may be bound again with `=`; inputs, targets, modules,
    pools, routers, outputs and losses may not. Two weights never share a name."""

    message = '"{name}" is declared twice'
    example = "model m() { input x: float[4] input x: float[4] output x }"
    way_out = "choose another name"


class NameAcross(Diagnostic, code="MG263"):
    """Names of weights are paths, and no op's path lies below another's. `name=` gives this op the path of its
    statement, above the other ops of that statement."""

    message = '"{name}" and "{other}" cannot both name an op: one lies below the other'
    help = 'choose another name="…", or leave it out'
    example = 'model m() { input x: float[4] y = x -> linear(5) -> linear(3, name="y") output y }'


class WrongKind(Diagnostic, code="MG218"):
    """The name is known, but it stands for another kind of thing than this place expects."""

    message = "expected {needed}, found {found}"
    example = "model m() { input x: float[4] pool p[2] = linear(3) y = x -> p by p output y }"
    way_out = ""


class NoOp(WrongKind):
    """A name stands in the place of an op, and the spec declares it as something else."""

    message = '"{name}" is {found}, not an op'
    needed = "an op"


class NoPart(WrongKind):
    """`router.name` is a record of a router. Nothing else has parts."""

    message = '{found} has no "{name}": only a router has parts, its records'


class NotInThatFile(Diagnostic, code="MG224"):
    """The imported file does not define this block."""

    message = 'unknown block "{name}" in "{path}"'
    help = "{suggestion}"


class CircularImport(Diagnostic, code="MG225"):
    """Files import each other in a cycle."""

    message = 'importing "{path}" leads back to this file'
    help = "move the shared blocks to a third file"


class NotInRegion(Diagnostic, code="MG226"):
    """A pool builds its modules from ops, blocks, and modules, pools and routers of their own, which nothing outside
    reads. All modules would share a module, pool or router from outside. Losses, growth, scans and ops that need the
    padding belong to the model."""

    message = "{what} cannot stand inside the modules of a pool"
    example = (
        "model m() { input x: float[4] module shared = linear(4) router r = agreement(1) "
        "pool p[2] = shared y = x -> p by r output y }"
    )
    way_out = "move it outside of the pool"


class UnknownArgument(Diagnostic, code="MG204"):
    """The op or router has no argument of this name."""

    message = 'unknown argument "{name}" of {callee}'
    help = "{suggestion}"
    example = "model m() { input x: float[4] y = x -> linear(2, biass=false) output y }"


class TorchArguments(UnknownArgument):
    """The call has the arguments of torch's layer. An op here takes no size that its operand has already."""

    message = "{difference}"


class MissingArgument(Diagnostic, code="MG205"):
    """A setting without a default has no value."""

    message = "{callee} needs {name}: {meaning}"
    help = "write it as {callee}({name}=…)"
    example = "model m() { input x: float[4] y = x -> linear output y }"


class BadSetting(Diagnostic, code="MG206"):
    """A setting has a value of the wrong kind or out of range."""

    message = "{name} of {callee} {problem}"
    help = "{name}: {meaning}"
    example = "model m() { input x: float[4] y = x -> dropout(1.5) output y }"


class TooManyArguments(Diagnostic, code="MG207"):
    """There are more positional arguments than settings."""

    message = "{callee} takes at most {most} arguments"
    help = "the arguments of {callee}, in order: {names}"
    example = "model m() { input x: float[4] y = x -> relu(3) output y }"


class DuplicateArgument(Diagnostic, code="MG209"):
    """The same argument occurs twice."""

    message = '{callee} gets "{name}" twice'
    help = "keep one of them"
    example = "model m() { input x: float[4] y = x -> linear(2, width=3) output y }"


class UnknownStart(Diagnostic, code="MG221"):
    """`init=` sets the initial values of an op's first weight: `zeros`, `ones`, `constant(number)`,
    `normal(deviation)`, `uniform(bound)`, or with a gain, 1 if not given, `orthogonal`, `xavier_normal` or
    `xavier_uniform` (Glorot's)."""

    message = "unknown initialiser of a weight"
    help = "write zeros, ones, normal(0.02), uniform(0.1), orthogonal, xavier_normal or xavier_uniform"
    example = "model m() { input x: float[4] y = x -> linear(2, init=normal) output y }"


class UnknownParameter(Diagnostic, code="MG210"):
    """`-s name=value` sets a parameter that the model does not have."""

    message = 'unknown parameter "{name}" of model {model}'
    help = "{suggestion}"


class BadParameter(Diagnostic, code="MG211"):
    """`-s name=value` sets a parameter to a value of another kind than its default."""

    message = 'parameter "{name}" must be {wanted}, not {given}'
    help = "its default is {default}"


class ParameterWithoutValue(Diagnostic, code="MG212"):
    """A parameter of the model has no default and no value."""

    message = 'parameter "{name}" has no value'
    help = "give it a default, {name}=…, or set it: -s {name}=…"
    example = "model m(width) { input x: float[4] y = x -> linear(width) output y }"


class NotRequired(Diagnostic, code="MG250"):
    """A definition checks its parameters: `require k >= 1 and mode in ["sum", "mean"]`.

    An argument of a router must also have the kind of its parameter's default.
    """

    message = "{name} of {callee} {problem}"
    example = (
        "block b(k=1) { input x: float[4] require k >= 1 y = x -> linear(k) output y } "
        "model m() { input x: float[4] y = x -> b(k=0) output y }"
    )


class RecursiveBlock(Diagnostic, code="MG222"):
    """A block uses itself, directly or through another, so it would never end."""

    message = 'block "{name}" uses itself'
    help = "repeat a fixed number of times: repeat NAME[i] in 0..n {{ … }}"
    example = "block b() { input x: float[4] y = x -> b output y } model m() { input x: float[4] y = x -> b output y }"


class BlockOperands(Diagnostic, code="MG223"):
    """A block takes as many values as it has inputs."""

    message = '{kind} "{name}" takes {inputs} inputs, not {given}'
    example = "block b() { input x: float[4] output x } model m() { input x: float[4] y = (x, x) -> b output y }"
    name: str
    kind = "block"

    @property
    def way_out(self) -> str:
        return (
            f"write (a, b) -> {self.name} for two"
            if self.kind == "block"
            else "the value left of the arrow is the first: by r(b)"
        )
