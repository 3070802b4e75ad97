"""Noise and random choices in training."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.along_axis import AlongAxis
from modgraph.nn.layer import Layer
from modgraph.nn.padding import apply_mask
from modgraph.nn.shard import standard_gumbel, standard_normal

DRAW = -1  # among forced places: sample this one


class NormalNoise(Layer):
    """Normal noise in training. The deviation is a number or an operand; the number zero samples nothing."""

    deviation: float | None = None

    def forward(self, x: Tensor, deviation: Tensor | None = None) -> Tensor:
        """x of any shape, and a deviation of the same, give that shape."""
        if not self.training or self.deviation == 0:
            return torch.zeros_like(x)
        return standard_normal(x) * (deviation if self.deviation is None else self.deviation)  # type: ignore[operator]


class GumbelNoise(nn.Module):
    """Standard Gumbel noise in training."""

    def forward(self, x: Tensor) -> Tensor:
        return standard_gumbel(x) if self.training else torch.zeros_like(x)


class Draw(AlongAxis):
    """A one-hot choice along an axis: sampled from the softmax of logits in training, otherwise the argmax."""

    def forward(
        self,
        x: Tensor,
        taken: Tensor | None = None,
        forced: Tensor | None = None,
        mask: tuple[Tensor | None, ...] = (None,),
    ) -> Tensor:
        """x of any shape gives the same shape.

        `taken`, in training, and `forced`, always, hold places or `DRAW`. Their shape is that of x without the axis;
        axes of size 1 may be missing too. The choice never falls on padding, and is zero where all is padding.
        """
        forced = taken if self.training and forced is None else forced
        scores = apply_mask(x.detach(), mask[0], -torch.inf)
        scores = scores if self.axis == -1 else scores.movedim(self.axis, -1)
        if forced is not None:
            forced = (apply_mask(forced, mask[1]) if len(mask) > 1 else forced).reshape(scores.shape[:-1])
        choice = F.one_hot(sample_place(scores, forced, self.training), scores.shape[-1]).to(x.dtype)
        return apply_mask(choice if self.axis == -1 else choice.movedim(-1, self.axis), mask[0])


def sample_place(scores: Tensor, forced: Tensor | None, training: bool) -> Tensor:
    """The place [...] along the last axis of scores [..., M]: `forced`, but sampled where that is `DRAW`.

    Without `forced`, sample in training and take the argmax otherwise.
    """
    if forced is None:
        return (scores + standard_gumbel(scores) if training else scores).argmax(-1)
    forced = forced.long()
    is_readable = forced.device.type == "cpu" and not torch.compiler.is_compiling()  # elsewhere a read waits, or fails
    if is_readable and not (forced == DRAW).any():
        return forced
    return torch.where(forced == DRAW, (scores + standard_gumbel(scores)).argmax(-1), forced)
