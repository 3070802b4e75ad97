"""Linear maps, modulated linear maps (Hu et al., ICLR 2024, equations 12 and 13), and a learned scale.

Axes: D input width, V output width, C code width, M modules, E messages; `...` any outer axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

StackedFunction = Callable[..., Tensor]  # module indices [E] and messages [E, ...] to results [E, ...]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "tanh": torch.tanh,
    "silu": F.silu,
}


class Linear(nn.Linear):
    """torch's linear map."""

    @staticmethod
    def stack_weights(modules: Sequence[nn.Linear]) -> StackedFunction:
        """Stack M maps into one function of module indices [E] and messages [E, ..., D]."""
        weight_MVD = torch.stack(tuple(module.weight for module in modules))
        biases = tuple(module.bias for module in modules if module.bias is not None)
        bias_MV = torch.stack(biases) if biases else None

        def linear(module_E: Tensor, x: Tensor) -> Tensor:
            rows = x.unsqueeze(1) if x.dim() == 2 else x.flatten(1, -2)
            y = torch.bmm(rows, weight_MVD[module_E].transpose(1, 2))
            y = y if bias_MV is None else y + bias_MV[module_E].unsqueeze(1)
            return y.squeeze(1) if x.dim() == 2 else y.reshape(*x.shape[:-1], -1)

        return linear


def broadcast_rows(own_E: Tensor, x: Tensor) -> Tensor:
    """Reshape vectors [E, C] to [E, 1, ..., C], which broadcasts against messages x [E, ..., D]."""
    return own_E.reshape(-1, *[1] * (x.dim() - 2), own_E.shape[-1])


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

    @staticmethod
    def rows(modules: Sequence[Any], x: Tensor) -> Tensor:
        """Apply module j to row j of x [..., M, D] in one product: [..., M, V]."""
        codes = torch.stack([module.code for module in modules])
        result: Tensor = modules[0]._shared[0](x, codes)
        return result

    @staticmethod
    def stack_weights(modules: Sequence[Any]) -> StackedFunction:
        """Stack M codes into one function of module indices [E] and messages [E, ..., D]."""
        codes_MC = torch.stack([module.code for module in modules])
        return lambda module_E, x: modules[0]._shared[0](x, broadcast_rows(codes_MC[module_E], x))


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

    @staticmethod
    def stack_weights(modules: Sequence[Any]) -> StackedFunction:
        """Stack M scales into one function of module indices [E] and messages [E, ..., D]."""
        weight_MD = torch.stack([module.weight for module in modules])
        return lambda module_E, x: x * broadcast_rows(weight_MD[module_E], x)
