"""Caches that grow in place: room is left behind them, so that a further token copies none of those before it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from modgraph.nn.on_arrays import Array

LEAST = 64  # places that are added at least


class Room:
    """An array with the tokens of a cache, and room for as many again.

    Caches are values: what follows two copies of one differs. So each place is given away once, and who comes second
    makes room elsewhere.
    """

    def __init__(self, before: Array, axis: int) -> None:
        shape, size = [*before.shape], before.shape[axis]
        shape[axis] += max(LEAST, size)
        self.axis, self.last = axis, shape[axis]
        self.tokens = np.empty(shape, before.dtype).swapaxes(axis, 0)
        self.tokens[:size] = before.swapaxes(axis, 0)
        self.free: list[int] = [size]

    def take(self, place: int) -> bool:
        """Take a place if it is free; of several threads one gets it."""
        try:
            found = self.free.pop()
        except IndexError:
            return False
        is_free: bool = found == place < self.last
        self.free.append(place + 1 if is_free else found)
        return is_free

    def write(self, place: int, x: Array) -> Tensor:
        """Write a token, and give all up to it."""
        self.tokens[place] = x.swapaxes(self.axis, 0)[0]
        found = torch.from_numpy(self.tokens[: place + 1].swapaxes(0, self.axis))
        found.room = self  # type: ignore[attr-defined]
        return found


def append(axis: int, before: Tensor, x: Tensor) -> Tensor:
    """The tokens before, and the token x behind them along an axis, counted from the last."""
    place, room = before.shape[axis], getattr(before, "room", None)
    if room is None or not room.take(place):
        room = Room(before.numpy(), axis)
        room.take(place)
    found: Tensor = room.write(place, x.numpy())
    return found
