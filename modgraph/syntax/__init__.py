"""From text to syntax tree."""

from modgraph.syntax import ast
from modgraph.syntax.parse import keywords, parse, read, words_of
