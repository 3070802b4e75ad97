"""Sources, places in them, and the messages that point there."""

from modgraph.diagnostics.diagnostic import (
    Diagnostic,
    ModgraphError,
    Note,
    Report,
    Warning_,
    closest,
    did_you_mean,
)
from modgraph.diagnostics.render import render, render_all
from modgraph.diagnostics.source import Source, Span

__all__ = [
    "Diagnostic",
    "ModgraphError",
    "Note",
    "Report",
    "Source",
    "Span",
    "Warning_",
    "closest",
    "did_you_mean",
    "render",
    "render_all",
]
