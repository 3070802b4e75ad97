"""What a value is: its axes, its type, and the patterns that declarations match against it."""

from modgraph.types.axis import (
    Axis,
    Shape,
    broadcast,
    laid,
    may_meet,
    met,
    met_shapes,
    repeated,
    shape_of,
    shapes_meet,
    shown,
)
from modgraph.types.names import is_key, is_path, is_word, word_like, word_problem
from modgraph.types.pattern import Axes, Misfit, derived, once_each, replaced
from modgraph.types.tensor import TensorType, floats

__all__ = [
    "Axes",
    "Axis",
    "Misfit",
    "Shape",
    "TensorType",
    "broadcast",
    "derived",
    "floats",
    "is_key",
    "is_path",
    "is_word",
    "laid",
    "may_meet",
    "met",
    "met_shapes",
    "once_each",
    "repeated",
    "replaced",
    "shape_of",
    "shapes_meet",
    "shown",
    "word_like",
    "word_problem",
]
