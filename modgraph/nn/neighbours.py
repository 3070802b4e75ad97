"""Shift, flip and one-dimensional convolution along an axis. A `mask` is false in padding."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.along_axis import AlongAxis
from modgraph.nn.padding import apply_mask


class Shift(AlongAxis):
    """Moves values by n places along an axis, and fills with zeros. A mask is needed where n is negative."""

    n: int

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        after = [0, 0] * (-1 - self.axis)
        zeros = (self.n, 0) if self.n > 0 else (0, -self.n)
        return F.pad(apply_mask(x, mask), (*after, *zeros)).narrow(self.axis, zeros[1], x.shape[self.axis])


class Flip(AlongAxis):
    """Reverses an axis up to its length; padding gives zeros."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None:
            return x.flip(self.axis)
        last = mask.sum(self.axis, keepdim=True) - 1
        steps = torch.arange(x.shape[self.axis], device=x.device).reshape(-1, *[1] * (-1 - self.axis))
        return apply_mask(x.gather(self.axis, (last - steps).clamp(min=0).expand_as(x)), mask)


class Conv1d(nn.Module):
    """Convolves x [..., N, ..., D] along an axis, over the numbers D: [..., N', ..., width].

    The weight has the layout of torch's Conv1d, [width, D / groups, kernel].
    """

    def __init__(
        self,
        channels: int,
        width: int,
        kernel: int,
        axis: int,
        stride: int = 1,
        padding: int | str = 0,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.axis, self.stride, self.dilation, self.groups = axis, stride, dilation, groups
        reach = dilation * (kernel - 1)
        known = {"causal": (reach, 0), "same": (reach // 2, reach - reach // 2)}
        self.zeros = (padding, padding) if isinstance(padding, int) else known[padding]
        self.weight = nn.Parameter(torch.empty(width, channels // groups, kernel))
        self.bias = nn.Parameter(torch.empty(width)) if bias else None

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = apply_mask(x, mask).movedim(self.axis, -1)  # [..., D, N]
        if x.shape[-1] == 0:
            return x.new_zeros(*x.shape[:-2], len(self.weight), 0).movedim(-1, self.axis)
        rows = F.pad(x.reshape(-1, *x.shape[-2:]), self.zeros)
        y = F.conv1d(rows, self.weight, self.bias, self.stride, dilation=self.dilation, groups=self.groups)
        return y.reshape(*x.shape[:-2], *y.shape[-2:]).movedim(-1, self.axis)
