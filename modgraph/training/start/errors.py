"""Messages about initial weights (MG5xx)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class CannotStart(Diagnostic, code="MG516"):
    """The weights of another run or file do not fit this spec: shapes differ, tensors are missing or have no use."""

    message = 'the weights of "{path}" do not fit: {reason}'


class BadWeightRule(Diagnostic, code="MG530"):
    """A rule of a map of weights has invalid patterns.

    `blocks.*.mlp.*.*: [blocks.*.mlp.*.*, blocks.*.expert.#.ffn.*.*]`: a `*` is one part of a name between dots, taken
    over in order; a `#` on the right is every number.
    """

    message = '"{source}: {target}" is no rule: {problem}'
    help = "for example: blocks.*.mlp.*.*: blocks.*.expert.#.ffn.*.*"


class NoSuchWeight(Diagnostic, code="MG531"):
    """A rule of a map of weights matches nothing in the model: no weight has any of the names on the right."""

    message = 'the model has no weight "{pattern}"'
    help = "{suggestion}"


class MappedTwice(Diagnostic, code="MG532"):
    """Two rules of a map give the same weight."""

    message = 'two rules give the weight "{weight}"'
    help = "keep one of them"


class NotMapped(Diagnostic, code="MG533"):
    """A map of weights must give the origin of every weight of the model, or list it under random."""

    message = "no rule gives {weights}"
    help = "add rules, or list weights without one under random"


class BadWeightFile(Diagnostic, code="MG534"):
    """A file of weights cannot be read: it is missing, damaged, of another format, or would run code.

    Readable formats are safetensors, and tensors by name from `torch.save`.
    """

    message = 'cannot read weights from "{path}": {reason}'
    help = "give a .safetensors file, or a state dict saved by torch"


class BadArrangement(Diagnostic, code="MG535"):
    """`axes` in a map of weights names the axes of a tensor in the file, and the same in the order of the weight's.

    `"in out -> out in"` transposes. A `#` on the left is an axis to unstack: each weight takes the slice whose number
    stands for the `#` in its name.
    """

    message = '"{axes}" says nothing of axes: {problem}'
    help = 'for example: axes: "# in out -> out in"'


class AxesDoNotFit(Diagnostic, code="MG536"):
    """A rule of a map of weights names as many axes on the right of its `axes` as the weights of the model have."""

    message = 'the weight "{weight}" has so many axes: {rank}; "{axes}" gives it {found}'
    help = "name {rank} axes on the right of the arrow, and the same with # on its left where there is a stack"


class NotToMigrate(Diagnostic, code="MG833"):
    """`migrate` takes a run's folder, and goes on with it as a spec says."""

    message = '"{path}" is a {found}, and {wanted} is needed'
    help = "for example: modgraph migrate runs/net --to wider.mod --out runs/wider"


class NothingToCarry(Diagnostic, code="MG834"):
    """The spec has no weight that the run has: nothing of what it learnt would be left."""

    message = 'no weight of "{run}" is one of "{spec}"'
    help = "say in the spec what is called otherwise (moved OLD -> NEW), or begin anew: modgraph train {spec}"


class NoWeightToRenew(Diagnostic, code="MG844"):
    """`migrate --fresh` names weights of the new spec that are to begin anew, or modules and blocks of them."""

    message = '"{spec}" has no weight called "{name}", and none of anything called so'
    help = "{suggestion}"
