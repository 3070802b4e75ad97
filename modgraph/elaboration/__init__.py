"""Settles what a spec means: from syntax tree to graph."""

from modgraph.elaboration.elaborate import elaborate, read_model
from modgraph.elaboration.former import stored_graph
from modgraph.elaboration.imports import Imports, resolved
from modgraph.elaboration.library import elaborate_blocks
from modgraph.elaboration.moves import moves_in
from modgraph.elaboration.parameters import read_value

__all__ = [
    "Imports",
    "elaborate",
    "elaborate_blocks",
    "moves_in",
    "read_model",
    "read_value",
    "resolved",
    "stored_graph",
]
