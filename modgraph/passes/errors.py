"""Messages about passes (MG135, MG730, MG731)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class CannotStore(Diagnostic, code="MG135"):
    """A stored pool has one tensor for each weight, with a row for each module.

    So its modules must be equal but for the values of their weights, each op must run on such tensors, and all modules
    must learn together.
    """

    message = 'pool "{pool}" cannot be stored: {reason}'
    help = "ask for auto, which stores only pools that can be"


class NotIncremental(Diagnostic, code="MG730"):
    """A model takes one token after another only if each value reads the tokens up to its own, and a cache can keep
    what it reads of them."""

    message = "the model cannot run token by token, for {what}: {reason}"
    help = "{way_out}"


class NoTokens(Diagnostic, code="MG731"):
    """The incremental form continues an input along an axis of any length, such as the words of a text."""

    message = "model {model} takes no tokens one after another: {reason}"
    help = "an input of any length: input words: token[time, 1000]"
