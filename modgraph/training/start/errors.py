"""Messages about initial weights (MG5xx)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class CannotStart(Diagnostic, code="MG516"):
    """The weights of another run or file do not fit this spec: shapes differ, tensors are missing or unused."""

    message = 'the weights of "{path}" do not fit: {reason}'


class BadWeightRule(Diagnostic, code="MG530"):
    """A rule of a map of weights has invalid patterns.

    `blocks.*.mlp.*.*: [blocks.*.mlp.*.*, blocks.*.expert.#.ffn.*.*]`: a `*` matches one part of a name between dots, in
    order; a `#` on the right is every number.
    """

    message = '"{source}: {target}" is not a valid rule: {problem}'
    help = "for example: blocks.*.mlp.*.*: blocks.*.expert.#.ffn.*.*"


class NoSuchWeight(Diagnostic, code="MG531"):
    """A rule of a map of weights matches no weight of the model."""

    message = 'unknown weight "{pattern}" of the model'
    help = "{suggestion}"


class MappedTwice(Diagnostic, code="MG532"):
    """Two rules of a map give the same weight."""

    message = 'two rules give weight "{weight}"'
    help = "keep one of them"


class NotMapped(Diagnostic, code="MG533"):
    """A map of weights must give the origin of every weight of the model, or list it under random."""

    message = "no rule gives {weights}"
    help = "add rules, or list the weights under random"


class BadWeightFile(Diagnostic, code="MG534"):
    """A file of weights cannot be read: it is missing, damaged, of another format, or would run code.

    Readable formats are safetensors, an index of its shards (`model.safetensors.index.json`), a folder with one of
    both, and tensors by name from `torch.save`.
    """

    message = 'cannot read weights from "{path}": {reason}'
    help = "give a .safetensors file, an index of its shards, or a state dict that torch saved"


class BadShards(Diagnostic, code="MG537"):
    """An index of shards says which file next to it has which tensor, and all of them must be there. A shard of another
    version, or a download that broke off, would leave weights random."""

    message = 'the shards of "{path}" do not fit: {reason}'
    way_out = "fetch the index and its shards again, all of one version, into one folder"


class BadArrangement(Diagnostic, code="MG535"):
    """`axes` in a map of weights names the axes of a tensor in the file, and the same in the order of the weight.

    `"in out -> out in"` transposes. A `#` on the left is an axis to unstack: each weight takes the slice whose number
    stands for the `#` in its name. Parentheses on the left hold an axis of the weight and one of parts, which the
    weights of `to` take in their order: `"(half out) in -> out in"`, or `(out half)` where they are interleaved.
    """

    message = 'invalid axes "{axes}": {problem}'
    help = 'for example: axes: "# in out -> out in"'


class AxesDoNotFit(Diagnostic, code="MG536"):
    """The right side of `axes` in a map of weights names one axis for each axis of the weight."""

    message = 'weight "{weight}" has {rank} axes, but "{axes}" gives {found}'
    help = "name {rank} axes right of the arrow, and the same with # on the left for a stack"


class NotToMigrate(Diagnostic, code="MG833"):
    """`migrate` continues the run in a folder with a new spec."""

    message = 'expected {wanted}, found a {found}: "{path}"'
    help = "for example: modgraph migrate runs/net --to wider.mod --out runs/wider"


class NothingToCarry(Diagnostic, code="MG834"):
    """The spec has no weight that the run has, so nothing that it learnt would remain."""

    message = '"{spec}" has no weight of "{run}"'
    help = "map renamed weights in the spec, moved OLD -> NEW, or train anew: modgraph train {spec}"


class NoWeightToRenew(Diagnostic, code="MG844"):
    """`start.fresh` of a recipe, and `migrate --fresh`, name weights of the spec that start anew although the run has
    them, or modules and blocks of them."""

    message = 'unknown weight "{name}" of "{spec}"'
    help = "{suggestion}"
