"""The ops of the language: one declaration each, without torch."""

from modgraph.ops import (
    activation,
    along_axis,
    arithmetic,
    axes,
    choice,
    compared,
    contraction,
    elementwise,
    image,
    linear,
    loss,
    normalisation,
    order,
    parameter,
    sequence,
    shape,
    situation,
)
from modgraph.ops.op import Op

__all__ = [
    "Op",
    "activation",
    "along_axis",
    "arithmetic",
    "axes",
    "choice",
    "compared",
    "contraction",
    "elementwise",
    "image",
    "linear",
    "loss",
    "normalisation",
    "order",
    "parameter",
    "sequence",
    "shape",
    "situation",
]
