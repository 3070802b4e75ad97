"""What a value is: its axes, its type, and the patterns that declarations match against it."""

from modgraph.types.axis import (
    Axis,
    Shape,
    TensorType,
    broadcast,
    floats,
    laid,
    may_meet,
    met,
    met_shapes,
    repeated,
    shapes_meet,
    shown,
)
from modgraph.types.names import is_key, is_path, is_word, word_like, word_problem
from modgraph.types.pattern import Axes, Misfit, derived, once_each, replaced
