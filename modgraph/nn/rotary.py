"""Rotary positions.

Axis letters: N tokens, W numbers that rotate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.nn.device import constant
from modgraph.nn.order import exact


class Rotary(nn.Module):
    """Rotates the first `width` numbers of x [..., N, ..., D] by angles that grow along an axis, from 0.

    Number i turns with the one half of `width` later (Su et al., RoFormer, 2021), in Llama's layout.
    """

    def __init__(self, width: int, axis: int, base: float) -> None:
        super().__init__()
        self.width, self.axis = width, axis
        self.speeds = [base ** (-2 * at / width) for at in range(width // 2)]

    def forward(self, x: Tensor) -> Tensor:
        rotation = self.rotation(x)
        if self.width == x.shape[-1]:
            return rotate(x, rotation)
        others = x[..., self.width :]
        return torch.cat((rotate(x[..., : self.width], rotation), others), -1)

    def rotation(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines [N, 1, …, W / 2], which broadcast against halves of x."""
        angle: Any = {"dtype": exact(x), "device": x.device}
        places = torch.arange(x.shape[self.axis], **angle).reshape(-1, *[1] * (-1 - self.axis))
        angles = places * constant(self.speeds, **angle)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


def rotate(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """Rotate number i of x [..., W] with the one half of the numbers later."""
    cos, sin = rotation
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


class ScaledRotary(Rotary):
    """Rotary positions that are `scaled` times as close, for all waves or for slow ones."""

    def __init__(
        self,
        width: int,
        axis: int,
        base: float,
        scaled: float = 1.0,
        trained: int | None = None,
        cycles: Sequence[float] = (1.0, 4.0),
    ) -> None:
        super().__init__(width, axis, base)
        self.speeds = [slow_down(speed, scaled, trained, cycles) for speed in self.speeds]


def slow_down(speed: float, scaled: float, trained: int | None, cycles: Sequence[float]) -> float:
    """The angle from one position to the next with positions `scaled` times as close (YaRN, Peng et al., 2023).

    A wave of many cycles in `trained` positions keeps its speed, one between the two numbers of `cycles` a share.
    """
    if trained is None:
        return speed / scaled
    fewest, most = cycles
    kept = (trained * speed / (2 * math.pi) - fewest) / (most - fewest)
    kept = min(1.0, max(0.0, kept))
    return speed * (kept + (1 - kept) / scaled)
