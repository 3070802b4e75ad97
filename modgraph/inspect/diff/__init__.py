"""Differences between two architectures, with costs and trained weights. Needs no torch."""

from modgraph.inspect.diff.architecture_diff import Comparison, Fate, Side, Weight, compare_sides, list_weights_after
from modgraph.inspect.diff.graph_diff import apply_diff, compare
from modgraph.inspect.diff.report_json import as_json
from modgraph.inspect.diff.text import text_of
