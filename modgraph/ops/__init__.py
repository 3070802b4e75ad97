"""The ops of the language: one declaration each, without torch."""

from modgraph.ops import activation, image, linear, loss, normalisation, sequence, shape
from modgraph.ops.axes import Axes, Misfit, derived
from modgraph.ops.declaration import (
    ONES,
    ZEROS,
    Declaration,
    Initial,
    Operand,
    Setting,
    Signature,
    TorchModule,
    Weight,
    constant,
    normal,
    setting,
    shown_briefly,
    shown_value,
    uniform,
)
from modgraph.ops.op import Op
from modgraph.ops.types import Axis, ModuleAxis, TensorType, floats

__all__ = [
    "ONES",
    "ZEROS",
    "Axes",
    "Axis",
    "Declaration",
    "Initial",
    "Misfit",
    "ModuleAxis",
    "Op",
    "Operand",
    "Setting",
    "Signature",
    "TensorType",
    "TorchModule",
    "Weight",
    "activation",
    "constant",
    "derived",
    "floats",
    "image",
    "linear",
    "loss",
    "normal",
    "normalisation",
    "sequence",
    "setting",
    "shape",
    "shown_briefly",
    "shown_value",
    "uniform",
]
