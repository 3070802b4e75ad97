"""Messages about passes (MG135)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class CannotStore(Diagnostic, code="MG135"):
    """A stored pool has one tensor for each weight, with a row for each module.

    So its modules must be equal but for the values of their weights, each op must run on such tensors, and all modules
    must learn together.
    """

    message = 'pool "{pool}" cannot be stored: {reason}'
    help = "ask for auto, which stores only pools that can be"
