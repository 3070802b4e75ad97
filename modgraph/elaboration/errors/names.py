"""Messages about names, and about arguments and parameters of ops, routers, blocks and models."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class UnknownName(Diagnostic, code="MG201"):
    """A name is used that nothing before it declares. A value first bound inside `repeat` or `if` is not visible
    outside it."""

    message = 'nothing is called "{name}" here'
    help = "{suggestion}"
    example = "model m() { input image: float[4] y = imgae -> linear(2) output y }"


class BoundInside(UnknownName):
    """The name belongs to a value inside a body that ends above."""

    message = '"{name}" is bound only inside the {body}'
    body: str


class AxisOfAnyLength(Diagnostic, code="MG262"):
    """A name in the type of a block's input stands for an axis of any length. It names that axis, and is no number:
    what is to be one is a parameter. In a router it is one where the routed value has a fixed length there."""

    message = '"{name}" is an axis of any length here, and not a number'
    example = (
        "block b() { input x: float[tokens, dim] y = x -> linear(dim) output y } "
        "model m() { input x: float[5, 4] y = x -> b output y }"
    )


class UnknownOp(Diagnostic, code="MG202"):
    """Right of an arrow stands an op, a named module, or a pool `by` a router; this name is none of them."""

    message = 'there is no {kind} called "{name}"'
    help = "{suggestion}"
    example = "model m() { input x: float[4] y = x -> liner(2) output y }"
    kind = "op, module or pool"


class DuplicateName(Diagnostic, code="MG208"):
    """Two things of one scope have the same name. A value may be bound again with `=`; inputs, targets, modules,
    pools, routers, outputs and losses may not, and two weights never share a name."""

    message = '"{name}" is declared twice'
    example = "model m() { input x: float[4] input x: float[4] output x }"
    way_out = "choose another name"


class NameAcross(Diagnostic, code="MG263"):
    """Names of weights are paths, and no op's lie below another's. An op that `name=` calls as its statement is called
    would stand above the others of that statement."""

    message = '"{name}" and "{other}" cannot both name an op: one lies below the other'
    help = 'choose another word for name="…", or leave it out'
    example = 'model m() { input x: float[4] y = x -> linear(5) -> linear(3, name="y") output y }'


class WrongKind(Diagnostic, code="MG218"):
    """The name is known, but it stands for something else than what is needed here."""

    message = "{needed} is needed here, and {found}"
    example = "model m() { input x: float[4] pool p[2] = linear(3) y = x -> p by p output y }"
    way_out = ""


class NoPart(WrongKind):
    """A dot follows a value that is not a router: `router.name` is a record of a router, and nothing else has parts."""

    message = '{found} has no "{name}": only records of a router follow a dot'


class NotInThatFile(Diagnostic, code="MG224"):
    """An import names a block that the other file does not define."""

    message = 'there is no block "{name}" in "{path}"'
    help = "{suggestion}"


class CircularImport(Diagnostic, code="MG225"):
    """Files import each other in a circle."""

    message = 'importing "{path}" comes back to this file'
    help = "move what both need to a third file"


class NotInRegion(Diagnostic, code="MG226"):
    """A pool's modules are made of ops, blocks, modules, pools and routers of their own, which nothing outside reads. A
    module, pool or router that is declared outside would be shared by all; losses, growth, scans and what must know of
    padding belong to the model."""

    message = "{what} cannot stand inside the modules of a pool"
    example = (
        "model m() { input x: float[4] module shared = linear(4) router r = agreement(1) "
        "pool p[2] = shared y = x -> p by r output y }"
    )
    way_out = "move it outside of the pool"


class UnknownArgument(Diagnostic, code="MG204"):
    """An op or router is given an argument it does not have."""

    message = '{callee} has no argument "{name}"'
    help = "{suggestion}"
    example = "model m() { input x: float[4] y = x -> linear(2, biass=false) output y }"


class MissingArgument(Diagnostic, code="MG205"):
    """An op or router has a setting without a default, and it is not given."""

    message = "{callee} needs {name}: {meaning}"
    help = "write it as {callee}({name}=…)"
    example = "model m() { input x: float[4] y = x -> linear output y }"


class BadSetting(Diagnostic, code="MG206"):
    """A setting has a value of the wrong kind or outside its range."""

    message = "{name} of {callee} {problem}"
    help = "{name}: {meaning}"
    example = "model m() { input x: float[4] y = x -> dropout(1.5) output y }"


class TooManyArguments(Diagnostic, code="MG207"):
    """More positional arguments are given than there are settings."""

    message = "{callee} takes at most {most} arguments"
    help = "its arguments, in order: {names}"
    example = "model m() { input x: float[4] y = x -> relu(3) output y }"


class DuplicateArgument(Diagnostic, code="MG209"):
    """The same argument is given twice."""

    message = '{callee} is given "{name}" twice'
    help = "keep one of them"
    example = "model m() { input x: float[4] y = x -> linear(2, width=3) output y }"


class UnknownStart(Diagnostic, code="MG221"):
    """`init=` says how the first weight of an op starts: `zeros`, `ones`, `normal(deviation)` or `uniform(bound)`."""

    message = "this is not a way a weight can start"
    help = "write zeros, ones, normal(0.02) or uniform(0.1)"
    example = "model m() { input x: float[4] y = x -> linear(2, init=normal) output y }"


class UnknownParameter(Diagnostic, code="MG210"):
    """A parameter is set from outside (`-s name=value`) that the model does not have."""

    message = 'model {model} has no parameter "{name}"'
    help = "{suggestion}"


class BadParameter(Diagnostic, code="MG211"):
    """A parameter is set from outside to a value of another kind than its default."""

    message = 'parameter "{name}" must be {wanted}, not {given}'
    help = "its default is {default}"


class ParameterWithoutValue(Diagnostic, code="MG212"):
    """A model's parameter has no default and is not set."""

    message = 'parameter "{name}" has no value'
    help = "give it a default, {name}=…, or set it with -s {name}=…"
    example = "model m(width) { input x: float[4] y = x -> linear(width) output y }"


class NotRequired(Diagnostic, code="MG250"):
    """A definition requires something of its parameters: `require k >= 1 and mode in ["sum", "mean"]`.

    An argument of a router must be of the kind of its parameter's default besides.
    """

    message = "{name} of {callee} {problem}"
    example = (
        "block b(k=1) { input x: float[4] require k >= 1 y = x -> linear(k) output y } "
        "model m() { input x: float[4] y = x -> b(k=0) output y }"
    )


class RecursiveBlock(Diagnostic, code="MG222"):
    """A block uses itself, directly or through another: it would never end."""

    message = 'block "{name}" uses itself'
    help = "repeat a fixed number of times with: repeat NAME[i] in 0..n {{ … }}"
    example = "block b() { input x: float[4] y = x -> b output y } model m() { input x: float[4] y = x -> b output y }"


class BlockOperands(Diagnostic, code="MG223"):
    """A block is applied to as many values as it has inputs."""

    message = '{kind} "{name}" has {inputs} inputs, not {given}'
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
