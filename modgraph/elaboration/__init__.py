"""Settles what a spec means: from syntax tree to graph."""

from modgraph.elaboration.elaborate import diagnose, elaborate, elaborate_blocks, read_model, read_value
from modgraph.elaboration.findings import moves_in
from modgraph.elaboration.imports import Imports, Standalone, kept_texts, read_standalone, resolved
