"""Weights in parts. Each part is a parameter of its own; a call of the model joins them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class WeightInParts:
    """A weight of a module that is cut along an axis into parts. The module has the joined weight only within a call of
    the model; otherwise a meta tensor gives its shape."""

    module: nn.Module
    name: str
    axis: int
    parts: nn.ParameterList
    empty: Tensor

    @classmethod
    def cut(cls, module: nn.Module, name: str, axis: int, parts: Sequence[nn.Parameter]) -> WeightInParts:
        """Replace the weight by parts."""
        empty = torch.empty_like(getattr(module, name).detach(), device="meta")
        delattr(module, name)
        found = nn.ParameterList(parts)
        module.register_module(f"{name} in parts", found)
        weight = cls(module, name, axis, found, empty)
        weight.part()
        return weight

    def join(self) -> None:
        """Set the module's weight to the joined parts."""
        setattr(self.module, self.name, torch.cat(tuple(self.parts), self.axis))

    def part(self) -> None:
        """Remove the joined weight, so that nothing retains the graph of a call."""
        setattr(self.module, self.name, self.empty)
