"""Messages about passes (MG73x)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class NotIncremental(Diagnostic, code="MG730"):
    """A model takes one token after another only if each value reads the tokens up to its own, and a cache can keep
    what it reads of them."""

    message = "the model cannot run token by token, for {what}: {reason}"
    help = "{way_out}"


class NoTokens(Diagnostic, code="MG731"):
    """The incremental form continues an input along an axis of any length, such as the words of a text."""

    message = "model {model} takes no tokens one after another: {reason}"
    help = "an input of any length: input words: token[time, 1000]"
