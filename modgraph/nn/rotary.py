"""Rotary positions.

Axis letters: N tokens, W numbers that rotate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.nn.arithmetic import broadcast
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
        self.known: dict[Any, tuple[Tensor, Tensor]] = {}  # the rotation of the last length

    def forward(self, x: Tensor, places: Tensor | None = None) -> Tensor:
        rotation = self.rotation(x, places)
        if self.width == x.shape[-1]:
            return rotate(x, rotation)
        others = x[..., self.width :]
        return torch.cat((rotate(x[..., : self.width], rotation), others), -1)

    def rotation(self, x: Tensor, places: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Cosines and signed sines, which broadcast against x, for positions [..., 1] or those along the axis."""
        is_plain = places is None and type(x) is Tensor and not torch.compiler.is_compiling()
        if not is_plain or torch.is_inference_mode_enabled():
            return self._compute_rotation(x, places)
        key = x.shape[self.axis], x.dtype, x.device
        if key not in self.known:
            self.known = {key: self._compute_rotation(x)}
        return self.known[key]

    def _compute_rotation(self, x: Tensor, places: Tensor | None = None) -> tuple[Tensor, Tensor]:
        angle: Any = {"dtype": exact(x), "device": x.device}
        if places is None:
            places = torch.arange(x.shape[self.axis], **angle).reshape(-1, *[1] * (-1 - self.axis))
        angles = places * constant(self.speeds, **angle)
        cos, sin = angles.cos(), angles.sin()
        return torch.cat((cos, cos), -1).to(x.dtype), torch.cat((-sin, sin), -1).to(x.dtype)


def rotate(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """Rotate number i of x [..., W] with the one half of the numbers later."""
    cos, sin = rotation
    return x * cos + x.roll(x.shape[-1] // 2, -1) * sin


class ScaledRotary(Rotary):
    """Rotary positions that are `scaled` times as close, for all waves or for slow ones.

    `lacks` and `order` say how given positions broadcast: the axes of x before the last that they lack, and the order
    of their own.
    """

    def __init__(
        self,
        width: int,
        axis: int,
        base: float,
        scaled: float = 1.0,
        trained: int | None = None,
        cycles: Sequence[float] = (1.0, 4.0),
        fade: str = "linear",
        lacks: tuple[int, ...] = (),
        order: tuple[int, ...] = (),
    ) -> None:
        super().__init__(width, axis, base)
        self.lacks, self.order = lacks, order
        self.speeds = [slow_down(speed, scaled, trained, cycles, fade) for speed in self.speeds]

    def rotation(self, x: Tensor, places: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if places is None:
            return super().rotation(x)
        if type(places) is not Tensor or torch.compiler.is_compiling():
            return self._compute_rotation(x, self._spread(x, places))
        known, key = vars(places).setdefault("rotations", {}), (*self.speeds, *self.lacks, *self.order, x.dtype)
        if key not in known:  # all layers turn by the same angles
            known[key] = self._compute_rotation(x, self._spread(x, places))
        found: tuple[Tensor, Tensor] = known[key]
        return found

    def _spread(self, x: Tensor, places: Tensor) -> Tensor:
        found: Tensor = broadcast(places.to(exact(x)), self.lacks, self.order).unsqueeze(-1)
        return found


def slow_down(speed: float, scaled: float, trained: int | None, cycles: Sequence[float], fade: str) -> float:
    """The angle from one position to the next with positions `scaled` times as close (YaRN, Peng et al., 2023).

    A wave of many cycles in `trained` positions keeps its speed, one between the two numbers of `cycles` a share.
    """
    if trained is None:
        return speed / scaled
    measure = math.log if fade == "logarithmic" else float
    own, fewest, most = map(measure, (trained * speed / (2 * math.pi), *cycles))
    kept = (own - fewest) / (most - fewest)
    kept = min(1.0, max(0.0, kept))
    return speed * (kept + (1 - kept) / scaled)
