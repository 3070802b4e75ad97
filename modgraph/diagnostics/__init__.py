"""Sources, spans in them, and the diagnostics that point there."""

from modgraph.diagnostics.diagnostic import Caution, Diagnostic, Note, Report, Source, Span
from modgraph.diagnostics.render import ModgraphError, render, render_all
from modgraph.diagnostics.suggest import closest, did_you_mean, list_names, nearest
