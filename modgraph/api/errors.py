"""Messages of what Python programs ask for (MG87x)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class NoSuchBlock(Diagnostic, code="MG870"):
    """`modgraph.block` builds a block or a router of a file by its name; `load` builds a model."""

    message = 'unknown block or router "{name}" in {place}'
    help = "{suggestion}"


class NoSuchArgument(Diagnostic, code="MG871"):
    """`modgraph.block` takes a block's parameters and the types of its inputs, and the pools of a router."""

    message = 'unknown parameter or input "{name}" of "{block}"'
    help = "{suggestion}"


class NeedsParameters(Diagnostic, code="MG876"):
    """Parameters of a block that have no default are given by name."""

    message = '"{block}" needs values for its parameters: {names}'
    help = 'for example: modgraph.block(PATH, "{block}", {call})'


class NeedsPool(Diagnostic, code="MG872"):
    """A router sends tokens to the modules of a pool. `modgraph.block` takes their text by the router's name for the
    pool, and their number."""

    message = 'router "{router}" needs modules for its pool "{pool}"'
    help = 'for example: modgraph.block(PATH, "{router}", {pool}="linear(64)", modules=4)'


class NeedsTypes(Diagnostic, code="MG873"):
    """The weights of a block depend on sizes that its parameters and the types of its inputs do not give."""

    message = '"{block}" needs the sizes of {inputs}'
    help = (
        'give the type, {input}="float[tokens, 64]", or an example with the batch first: {input}=torch.zeros(1, 9, 64)'
    )


class NothingToLearnFrom(Diagnostic, code="MG874"):
    """A program that was read from a string has no recipe next to it, which would name its data."""

    message = 'no data to train "{name}": it was read from a string, so it has no recipe'
    help = "give data, modgraph.train(program, data=dict(train=dataset)), or a recipe, modgraph.train(program, PATH)"


class NeedsSpecFile(Diagnostic, code="MG877"):
    """A sweep trains in processes of its own, which read the spec from a file."""

    message = 'a sweep needs a spec in a file, and the program "{name}" was read from a string'
    help = "write the text to a file and name that: modgraph.sweep(PATH, …)"
