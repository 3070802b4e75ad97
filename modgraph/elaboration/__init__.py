"""Settles what a spec means: from syntax tree to graph."""

from modgraph.elaboration.elaborate import elaborate, elaborate_blocks, read_model
from modgraph.elaboration.imports import Imports, kept_texts, resolved
from modgraph.elaboration.moves import moves_in
from modgraph.elaboration.parameters import read_value
from modgraph.elaboration.standalone import Standalone, read_standalone

__all__ = [
    "Imports",
    "Standalone",
    "elaborate",
    "elaborate_blocks",
    "kept_texts",
    "moves_in",
    "read_model",
    "read_standalone",
    "read_value",
    "resolved",
]
