"""Parses text into a syntax tree."""

from modgraph.syntax import ast
from modgraph.syntax.parse import keywords, parse, read, read_tokens
