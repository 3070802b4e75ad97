"""Scenes as pictures: SVG, graphviz, Mermaid."""

from modgraph.inspect.drawing.formats import dot_of, mermaid_of
from modgraph.inspect.drawing.svg import svg_of

__all__ = ["dot_of", "mermaid_of", "svg_of"]
