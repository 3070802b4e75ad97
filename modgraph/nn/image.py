"""Image layers of torch, for any number of outer axes: [..., C, H, W]."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


class _Images(nn.Module):
    """Lets a layer that knows [B, C, H, W] take any outer axes."""

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() == 4:
            plain: Tensor = super().forward(x)
            return plain
        result: Tensor = super().forward(x.reshape(-1, *x.shape[-3:]))
        return result.reshape(*x.shape[:-3], *result.shape[1:])


class Conv2d(_Images, nn.Conv2d):
    """torch's convolution."""


class MaxPool2d(_Images, nn.MaxPool2d):
    """torch's max pooling."""


class AvgPool2d(_Images, nn.AvgPool2d):
    """torch's mean pooling."""


class GroupNorm(_Images, nn.GroupNorm):
    """torch's group norm."""


class BatchNorm2d(_Images, nn.BatchNorm2d):
    """torch's batch norm; it counts no batches, since its momentum is fixed."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.num_batches_tracked = None

    def _load_from_state_dict(self, *arguments: Any, **named: Any) -> None:
        # torch's own version adds a count of batches to state dicts that carry no version, as files do
        nn.Module._load_from_state_dict(self, *arguments, **named)


class Tokens(nn.Module):
    """[..., C, H, W] to [..., H·W, C]: one token per position, row by row."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(-2).transpose(-1, -2)


class PatchEmbed(Conv2d):
    """[..., C, H, W] to [..., patches, width]."""

    def __init__(self, channels: int, width: int, patch: int) -> None:
        super().__init__(channels, width, patch, stride=patch)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).flatten(-2).transpose(-1, -2)
