"""Linear maps, modulated linear maps (Hu et al., ICLR 2024, equations 12 and 13), and a learned scale.

Axes: D input width, V output width, C code width, M modules, E messages; `...` any outer axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.grouped import SortedRows, Weights, run_linear, spread_rows

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "tanh": torch.tanh,
    "silu": F.silu,
}


class Linear(nn.Linear):
    """torch's linear map."""

    def run_rows(self, weights: Weights, rank: int, x: Tensor) -> Tensor:
        """Apply map r to row r of x [..., R, message], or all maps to x [..., 1, message]."""
        weight_RVD, bias_RV = weights["weight"], weights.get("bias")
        axis = x.dim() - rank - 1
        if x.shape[axis] == 1 and axis:  # all maps take it: one product for all
            bias = None if bias_RV is None else bias_RV.flatten()
            y = F.linear(x.squeeze(axis), weight_RVD.flatten(0, 1), bias)
            y = y.reshape(*y.shape[:-1], *weight_RVD.shape[:2])
            return y if rank == 1 else y.movedim(-2, axis)
        rows = x.movedim(axis, 0) if axis else x
        flat = rows.unsqueeze(1) if rows.dim() == 2 else rows.flatten(1, -2)
        y = torch.bmm(flat, weight_RVD.transpose(1, 2))
        y = y if bias_RV is None else y + bias_RV.unsqueeze(1)
        y = y.squeeze(1) if rows.dim() == 2 else y.reshape(*rows.shape[:-1], -1)
        return y.movedim(0, axis) if axis else y

    def run_sorted(self, weights: Weights, rows: SortedRows, x: Tensor) -> Tensor:
        """Apply the maps to rows [E, ..., D] sorted by module."""
        return run_linear(weights, rows, x)


class ModulatedMap(nn.Module):
    """y = W (x ⊙ LayerNorm(Wc c)) + b for a code c. The modules of a pool share W, Wc and b."""

    def __init__(self, width_in: int, width: int, code_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, width_in))
        self.bias = nn.Parameter(torch.zeros(width))
        self.code_weight = nn.Parameter(torch.empty(width_in, code_width))

    def forward(self, x: Tensor, code: Tensor) -> Tensor:
        """x [..., D] and codes [..., C] that broadcast against it give [..., V]."""
        gain = F.layer_norm(F.linear(code, self.code_weight), self.code_weight.shape[:1])
        return F.linear(x * gain, self.weight, self.bias)


class ModulatedLayers(nn.ModuleList):
    """Modulated maps, with an activation between them, that share one code."""

    def __init__(self, width_in: int, widths: Sequence[int], code_width: int, activation: str = "relu") -> None:
        before = (width_in, *widths[:-1])
        super().__init__(ModulatedMap(a, b, code_width) for a, b in zip(before, widths, strict=True))
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor, code: Tensor) -> Tensor:
        """x [..., D] and codes [..., C] that broadcast against it give [..., last width]."""
        for index, layer in enumerate(self):
            x = layer(x if index == 0 else self.activation(x), code)
        return x


class Coded(nn.Module):
    """One module of a pool whose modules share a modulated map; it owns a code [C]."""

    def __init__(self, shared: nn.Module, code_width: int) -> None:
        super().__init__()
        self.code = nn.Parameter(torch.empty(code_width))
        self._shared = (shared,)  # in a tuple, so that only the pool registers it

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self._shared[0](x, self.code)
        return result

    def run_rows(self, weights: Weights, rank: int, x: Tensor) -> Tensor:
        """Apply code r to row r of x [..., R, message]."""
        result: Tensor = self._shared[0](x, spread_rows(weights["code"], rank))
        return result


class ModulatedLinear(ModulatedMap):
    """A modulated map with its own code. A pool has one `Shared`, and an `Own` for each module."""

    Shared = ModulatedMap
    Own = Coded

    def __init__(self, width_in: int, width: int, code_width: int) -> None:
        super().__init__(width_in, width, code_width)
        self.code = nn.Parameter(torch.empty(code_width))

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """x [..., D] gives [..., V]."""
        return super().forward(x, self.code)


class ModulatedMLP(ModulatedLayers):
    """Modulated layers with their own code. A pool has one `Shared`, and an `Own` for each module."""

    Shared = ModulatedLayers
    Own = Coded

    def __init__(self, width_in: int, widths: Sequence[int], code_width: int, activation: str = "relu") -> None:
        super().__init__(width_in, widths, code_width, activation)
        self.code = nn.Parameter(torch.empty(code_width))

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """x [..., D] gives [..., last width]."""
        return super().forward(x, self.code)


class Scale(nn.Module):
    """x ⊙ w along the last axis."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight

    def run_rows(self, weights: Weights, rank: int, x: Tensor) -> Tensor:
        """Apply scale r to row r of x [..., R, message]."""
        return x * spread_rows(weights["weight"], rank)
