"""Limits that bound the time to parse any text. Diagnostics state them."""

from __future__ import annotations

SOURCE_BYTES = 2 * 2**20
BRACKET_DEPTH = 100
TREE_DEPTH = 100
PARSER_STACK = 2000  # grammar symbols on the stack
TOKENS = 100_000
ITEMS = 4096  # in one list, tuple, call, type or row of parameters
LETTERS = 255  # in one name
INTEGER = 2**53
REPORTED_SYNTAX_ERRORS = 20
