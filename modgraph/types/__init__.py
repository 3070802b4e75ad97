"""What a value is: its axes, its type, and the patterns that declarations match against it."""

from modgraph.types.pattern import Axes, Misfit, derived
from modgraph.types.tensor import Axis, ModuleAxis, TensorType, floats, shown

__all__ = ["Axes", "Axis", "Misfit", "ModuleAxis", "TensorType", "derived", "floats", "shown"]
