"""Elaborates a syntax tree into a graph."""

from modgraph.elaboration.elaborate import diagnose, elaborate, elaborate_blocks, read_model, read_value
from modgraph.elaboration.findings import find_moves
from modgraph.elaboration.imports import Imports, Standalone, parse_kept_texts, read_standalone, resolve_path
