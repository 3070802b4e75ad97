"""Settles what a spec means: from syntax tree to graph."""

from modgraph.elaboration.elaborate import diagnose, elaborate, elaborate_blocks, read_model, read_value
from modgraph.elaboration.imports import Imports, Standalone, kept_texts, read_standalone, resolved
from modgraph.elaboration.moves import moves_in
