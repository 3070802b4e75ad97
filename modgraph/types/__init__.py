"""Axes and types of values, and the axis patterns of declarations."""

from modgraph.types.alignment import Joined, align_axes, broadcast, join_axes, place_axes
from modgraph.types.axis import (
    Axis,
    Shape,
    TensorType,
    count_shared_axes,
    edges,
    find_repeated,
    floats,
    format_shape,
    may_meet,
    meet_axes,
    meet_shapes,
    shapes_meet,
)
from modgraph.types.names import explain_word_problem, is_key, is_path, is_word, word_like
from modgraph.types.pattern import Axes, Misfit, infer_axis, replace_axes, require_distinct
