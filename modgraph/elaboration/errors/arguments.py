"""Messages about arguments and parameters of ops, routers, blocks and models."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class UnknownArgument(Diagnostic):
    """An op or router is given an argument it does not have."""

    code = "MG204"
    message = '{callee} has no argument "{name}"'
    help = "{suggestion}"
    example = "model m() { input x: float[4] y = x -> linear(2, biass=false) output y }"


class MissingArgument(Diagnostic):
    """An op or router has a setting without a default, and it is not given."""

    code = "MG205"
    message = "{callee} needs {name}: {meaning}"
    help = "write it as {callee}({name}=…)"
    example = "model m() { input x: float[4] y = x -> linear output y }"


class BadSetting(Diagnostic):
    """A setting has a value of the wrong kind or outside its range."""

    code = "MG206"
    message = "{name} of {callee} {problem}"
    help = "{name}: {meaning}"
    example = "model m() { input x: float[4] y = x -> dropout(1.5) output y }"


class TooManyArguments(Diagnostic):
    """More positional arguments are given than there are settings."""

    code = "MG207"
    message = "{callee} takes at most {most} arguments"
    help = "its arguments, in order: {names}"
    example = "model m() { input x: float[4] y = x -> relu(3) output y }"


class DuplicateArgument(Diagnostic):
    """The same argument is given twice."""

    code = "MG209"
    message = '{callee} is given "{name}" twice'
    help = "keep one of them"
    example = "model m() { input x: float[4] y = x -> linear(2, width=3) output y }"


class UnknownStart(Diagnostic):
    """`init=` says how the first weight of an op starts: `zeros`, `ones`, `normal(deviation)` or `uniform(bound)`."""

    code = "MG221"
    message = "this is not a way a weight can start"
    help = "write zeros, ones, normal(0.02) or uniform(0.1)"
    example = "model m() { input x: float[4] y = x -> linear(2, init=normal) output y }"


class UnknownParameter(Diagnostic):
    """A parameter is set from outside (`-s name=value`) that the model does not have."""

    code = "MG210"
    message = 'model {model} has no parameter "{name}"'
    help = "{suggestion}"


class BadParameter(Diagnostic):
    """A parameter is set from outside to a value of another kind than its default."""

    code = "MG211"
    message = 'parameter "{name}" must be {wanted}, not {given}'
    help = "its default is {default}"


class ParameterWithoutValue(Diagnostic):
    """A model's parameter has no default and is not set."""

    code = "MG212"
    message = 'parameter "{name}" has no value'
    help = "give it a default, {name}=…, or set it with -s {name}=…"
    example = "model m(width) { input x: float[4] y = x -> linear(width) output y }"


class NotRequired(Diagnostic):
    """A definition requires something of its parameters: `require k >= 1 and mode in ["sum", "mean"]`.

    An argument of a router must be of the kind of its parameter's default besides.
    """

    code = "MG250"
    message = "{name} of {callee} {problem}"
    help = "{way_out}"
    example = (
        "block b(k=1) { input x: float[4] require k >= 1 y = x -> linear(k) output y } "
        "model m() { input x: float[4] y = x -> b(k=0) output y }"
    )


class RecursiveBlock(Diagnostic):
    """A block uses itself, directly or through another: it would never end."""

    code = "MG222"
    message = 'block "{name}" uses itself'
    help = "repeat a fixed number of times with: repeat NAME[i] in 0..n {{ … }}"
    example = "block b() { input x: float[4] y = x -> b output y } model m() { input x: float[4] y = x -> b output y }"


class BlockOperands(Diagnostic):
    """A block is applied to as many values as it has inputs."""

    code = "MG223"
    message = '{kind} "{name}" has {inputs} inputs, not {given}'
    help = "{way_out}"
    example = "block b() { input x: float[4] output x } model m() { input x: float[4] y = (x, x) -> b output y }"
    name: str
    kind = "block"

    @property
    def way_out(self) -> str:
        return f"write (a, b) -> {self.name} for two" if self.kind == "block" else "the first is what is sent: by r(b)"
