"""Sources, places in them, and the messages that point there."""

from modgraph.diagnostics.diagnostic import Caution, Diagnostic, Note, Report
from modgraph.diagnostics.render import ModgraphError, render, render_all
from modgraph.diagnostics.source import Source, Span
from modgraph.diagnostics.suggest import closest, did_you_mean, listed, nearest

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
    "nearest",
    "render",
    "render_all",
]
