"""Sources, places in them, and the messages that point there."""

from modgraph.diagnostics.diagnostic import (
    Caution,
    Diagnostic,
    ModgraphError,
    Note,
    Report,
    closest,
    did_you_mean,
    listed,
)
from modgraph.diagnostics.render import render, render_all
from modgraph.diagnostics.source import Source, Span

__all__ = [
    "Caution",
    "Diagnostic",
    "ModgraphError",
    "Note",
    "Report",
    "Source",
    "Span",
    "closest",
    "did_you_mean",
    "listed",
    "render",
    "render_all",
]
