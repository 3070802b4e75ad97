"""What is drawn in training: noise, and choices by chance."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.along_axis import AlongAxis
from modgraph.nn.layer import Layer
from modgraph.nn.padding import cleared
from modgraph.nn.shard import standard_gumbel, standard_normal

DRAW = -1  # in the place of a number: draw it


class NormalNoise(Layer):
    """Normal noise of a deviation, a number or a value, in training; nothing is drawn where that is the number zero."""

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
    """One place along an axis, drawn from the softmax of logits in training, the most probable otherwise."""

    def forward(
        self,
        x: Tensor,
        taken: Tensor | None = None,
        told: Tensor | None = None,
        real: tuple[Tensor | None, ...] = (None,),
    ) -> Tensor:
        """x of any shape gives the same shape.

        `taken` in training, and `told` always, hold places, or `DRAW`; they lack the axis, perhaps others of one place
        too. Padding is never chosen; where all is, the choice is zero.
        """
        told = taken if self.training and told is None else told
        scores = cleared(x.detach(), real[0], -torch.inf)
        scores = scores if self.axis == -1 else scores.movedim(self.axis, -1)
        if told is not None:
            told = (cleared(told, real[1]) if len(real) > 1 else told).reshape(scores.shape[:-1])
        choice = F.one_hot(drawn_place(scores, told, self.training), scores.shape[-1]).to(x.dtype)
        return cleared(choice if self.axis == -1 else choice.movedim(-1, self.axis), real[0])


def drawn_place(scores: Tensor, told: Tensor | None, training: bool) -> Tensor:
    """The place that is taken of the last axis: what is told, drawn where that is `DRAW`; without it drawn in training,
    the most probable otherwise."""
    if told is None:
        return (scores + standard_gumbel(scores) if training else scores).argmax(-1)
    told = told.long()
    seen = told.device.type == "cpu" and not torch.compiler.is_compiling()  # elsewhere to look costs more, or cannot be
    if seen and not (told == DRAW).any():
        return told
    return torch.where(told == DRAW, (scores + standard_gumbel(scores)).argmax(-1), told)
