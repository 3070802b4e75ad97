"""Messages of what Python programs ask for (MG87x)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class NoSuchBlock(Diagnostic, code="MG870"):
    """`modgraph.block` builds a block or a router of a file by its name; a model is built by `load`."""

    message = 'there is no block and no router "{name}" in {place}'
    help = "{suggestion}"


class NoSuchArgument(Diagnostic, code="MG871"):
    """`modgraph.block` takes a block's parameters and the types of its inputs, and the pools of a router."""

    message = '"{block}" has no parameter and no input "{name}"'
    help = "{suggestion}"


class NeedsParameters(Diagnostic, code="MG876"):
    """Parameters of a block that have no default are given by name."""

    message = '"{block}" needs values for its parameters: {names}'
    help = 'for example: modgraph.block(PATH, "{block}", {example})'


class NeedsPool(Diagnostic, code="MG872"):
    """A router sends tokens to the modules of a pool: `modgraph.block` takes what they are made of by the router's word
    for the pool, and how many."""

    message = 'the router "{router}" routes to a pool "{pool}", which is not given'
    help = 'for example: modgraph.block(PATH, "{router}", {pool}="linear(64)", modules=4)'


class NeedsTypes(Diagnostic, code="MG873"):
    """The weights of a block depend on sizes that neither its parameters nor the types of its inputs tell."""

    message = '"{block}" cannot be built while the sizes of {inputs} are open'
    help = (
        'give the type, {input}="float[tokens, 64]", or an example with the batch first: {input}=torch.zeros(1, 9, 64)'
    )


class NothingToLearnFrom(Diagnostic, code="MG874"):
    """A program that was read from a string has no recipe next to it, which would name its data."""

    message = 'there are no data to train "{name}" on: it was read from a string, and has no recipe next to it'
    help = "give data, modgraph.train(program, data=dict(train=dataset)), or a recipe, modgraph.train(program, PATH)"
