"""torch's image layers for any number of outer axes: [..., C, H, W]."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.layer import Layer
from modgraph.nn.padding import apply_mask
from modgraph.nn.shard import is_sharded, whole_batch_sum


class _Images(nn.Module):
    """Lets a layer of [B, C, H, W] take any outer axes."""

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() == 4:
            plain: Tensor = super().forward(x)
            return plain
        result: Tensor = super().forward(x.reshape(-1, *x.shape[-3:]))
        return result.reshape(*x.shape[:-3], *result.shape[1:])


class Conv2d(_Images, nn.Conv2d):
    """torch's convolution."""


class ConvTranspose2d(_Images, nn.ConvTranspose2d):  # type: ignore[misc]
    """torch's transposed convolution."""


class MaxPool2d(_Images, nn.MaxPool2d):
    """torch's max pooling. Windows that do not overlap are trained faster on a processor, with the same numbers."""

    def forward(self, x: Tensor) -> Tensor:
        learns = self.training and x.requires_grad and not torch.compiler.is_compiling()
        disjoint = self.kernel_size == self.stride and not self.padding
        if not learns or not disjoint or x.device.type != "cpu" or type(x) is not Tensor:
            return super().forward(x)
        images = x.reshape(-1, *x.shape[-3:])
        found: Tensor = _DisjointMaxPool.apply(images, self.kernel_size)  # type: ignore[no-untyped-call]
        return found.reshape(*x.shape[:-2], *found.shape[-2:])


class _DisjointMaxPool(torch.autograd.Function):
    """Max pooling [B, C, H, W] with windows that do not overlap. torch compares channels at once only where they are
    the last in memory, and there it is ten times as fast."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, side: int) -> Tensor:
        found, places = F.max_pool2d(x.contiguous(memory_format=torch.channels_last), side, return_indices=True)
        ctx.save_for_backward(places.contiguous())
        ctx.shape = x.shape
        return found.contiguous()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (places,), (gradient,) = ctx.saved_tensors, gradients
        zeros = gradient.new_zeros(ctx.shape).flatten(2)
        return zeros.scatter_(2, places.flatten(2), gradient.flatten(2)).reshape(ctx.shape), None


class AvgPool2d(_Images, nn.AvgPool2d):
    """torch's mean pooling."""


class Upsample(Layer):
    """Enlarges images [..., C, H, W] to [..., C, height, width]; `mode` is "nearest" or "bilinear"."""

    height: int
    width: int
    mode: str = "nearest"

    def forward(self, x: Tensor) -> Tensor:
        corners = None if self.mode == "nearest" else False
        size = (self.height, self.width)
        found = F.interpolate(x.reshape(-1, *x.shape[-3:]), size, mode=self.mode, align_corners=corners)
        return found.reshape(*x.shape[:-2], *size)


class GroupNorm(_Images, nn.GroupNorm):
    """torch's group norm."""


class BatchNorm2d(_Images, nn.BatchNorm2d):
    """torch's batch norm with a mask. Its momentum is fixed, so it counts no batches."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.num_batches_tracked = None

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x [..., C, H, W]; in training, images outside the mask [..., 1, 1, 1] do not count and give zero."""
        if not self.training or (mask is None and not is_sharded()):
            return super().forward(x)
        rows = x.flatten(0, -4)
        if mask is None:
            return self._normalise_whole_batch(rows).reshape(x.shape)
        there = mask.expand(*x.shape[:-3], 1, 1, 1).flatten(0, -4)
        if is_sharded() or x.device.type != "cpu":  # counting the images would wait for the device
            return self._normalise_whole_batch(rows, there).reshape(x.shape)
        indices = there.flatten().nonzero().squeeze(1)
        if not torch.compiler.is_compiling() and len(indices) == 0:
            return torch.zeros_like(x)
        return torch.zeros_like(rows).index_copy(0, indices, super().forward(rows[indices])).reshape(x.shape)

    def _normalise_whole_batch(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Normalise x [rows, C, H, W] by mean and variance over all processes, of rows in the mask [rows, 1, 1, 1].
        Without rows the running averages stay."""
        assert self.running_mean is not None and self.running_var is not None and self.momentum is not None
        axes, kind, x = (0, 2, 3), x.dtype, x.to(self.running_mean.dtype)  # averages keep their precision
        rows = x.new_full((), len(x)) if mask is None else mask.sum().to(x.dtype)
        count = whole_batch_sum(rows) * (x.shape[-2] * x.shape[-1])
        least = count.clamp(min=1)
        mean = whole_batch_sum(apply_mask(x, mask).sum(axes)) / least
        centred = apply_mask(x - mean[:, None, None], mask)
        variance = whole_batch_sum((centred**2).sum(axes)) / least
        with torch.no_grad():
            share = self.momentum * (count > 0).to(x.dtype)
            self.running_mean.lerp_(mean, share)
            self.running_var.lerp_(variance * count / (count - 1).clamp(min=1), share)
        scaled = centred * torch.rsqrt(variance + self.eps)[:, None, None]
        return apply_mask(scaled * self.weight[:, None, None] + self.bias[:, None, None], mask).to(kind)

    def _load_from_state_dict(self, *arguments: Any, **named: Any) -> None:
        # torch's own method adds a batch count to state dicts without a version, such as those from files
        nn.Module._load_from_state_dict(self, *arguments, **named)


class Tokens(nn.Module):
    """[..., C, H, W] to [..., H·W, C]: one token per position, in row-major order."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(-2).transpose(-1, -2)


class PatchEmbed(Conv2d):
    """[..., C, H, W] to [..., patches, width]."""

    def __init__(self, channels: int, width: int, patch: int) -> None:
        super().__init__(channels, width, patch, stride=patch)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).flatten(-2).transpose(-1, -2)
