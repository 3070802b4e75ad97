"""Weights in parts: each part is a parameter of its own, and a call of the model puts them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class WeightInParts:
    """A weight of a module, in parts that are cut along an axis. The module has it only within a call of the
    model; at other times a tensor without numbers says its shape."""

    module: nn.Module
    name: str
    axis: int
    parts: nn.ParameterList
    empty: Tensor

    @classmethod
    def cut(cls, module: nn.Module, name: str, axis: int, parts: Sequence[nn.Parameter]) -> WeightInParts:
        """Put parts in the place of a weight."""
        empty = torch.empty_like(getattr(module, name).detach(), device="meta")
        delattr(module, name)
        found = nn.ParameterList(parts)
        module.register_module(f"{name} in parts", found)
        weight = cls(module, name, axis, found, empty)
        weight.part()
        return weight

    def join(self) -> None:
        """Give the module its weight."""
        setattr(self.module, self.name, torch.cat(tuple(self.parts), self.axis))

    def part(self) -> None:
        """Take it away, so that nothing keeps what a call has computed."""
        setattr(self.module, self.name, self.empty)
