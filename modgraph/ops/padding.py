"""Padding as a value: what stands behind the end of an example."""

from __future__ import annotations

from modgraph.ops.op import Op


class MaskPadding(Op, name="mask_padding"):
    """x, zero in padding: what stands there reaches neither values nor gradients."""

    masks = "..."
    affine = True
    keeps_zeros = True
    narrows = "x"
