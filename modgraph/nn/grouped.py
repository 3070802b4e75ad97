"""Modules of one kind on rows that are sorted by module, all at once: maps as one grouped product of matrices.

Shape suffixes: E rows, M modules, D and V the widths that a map takes and gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.linear import Linear, beside


@dataclass(frozen=True, eq=False)
class SortedRows:
    """The module of each row [E], in the order of modules, and where each module's rows end [M]."""

    module: Tensor
    ends: Tensor


Together = Callable[..., Tensor]  # sorted rows, and messages [E, ...], to results [E, ...]


def taken_by_index(column: Sequence[nn.Module]) -> Callable[..., Tensor]:
    """One function for modules of one kind: of modules [E] and messages [E, ...]; their weights are stacked here.

    A class says how it is done (`gathered`); modules without weights are all the same.
    """
    gathered = getattr(type(column[0]), "gathered", None)
    if gathered is not None:
        function: Callable[..., Tensor] = gathered(column)
        return function
    assert not any(True for _ in column[0].parameters()), f"no form by index for {type(column[0]).__name__}"
    return lambda module_E, *values: column[0](*values)


def together(column: Sequence[nn.Module]) -> Together | None:
    """One function for modules of one kind, whose weights are stacked here; None where nothing says how."""
    kind = type(column[0])
    if kind in GROUPED:
        return GROUPED[kind](column)
    if not hasattr(kind, "gathered") and any(True for _ in column[0].parameters()):
        return None
    taken = taken_by_index(column)
    return lambda rows, *values: taken(rows.module, *values)


def _linear(modules: Sequence[Any]) -> Together:
    weight_MDV = torch.stack([module.weight for module in modules]).transpose(1, 2)
    bias_MV = None if modules[0].bias is None else torch.stack([module.bias for module in modules])

    def linear(rows: SortedRows, x: Tensor) -> Tensor:
        each = x[0, ..., 0].numel()  # vectors of a message
        kind = torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type) else x.dtype
        flat = x.reshape(-1, x.shape[-1]).to(kind)
        y = F.grouped_mm(flat, weight_MDV.to(kind), offs=(rows.ends * each).to(torch.int32))
        if y.requires_grad:
            y.register_hook(Tensor.contiguous)  # type: ignore[no-untyped-call]  # an expanded one is refused
        y = y.reshape(*x.shape[:-1], -1)
        return y if bias_MV is None else y + beside(bias_MV[rows.module], y).to(kind)

    return linear


def _norm(modules: Sequence[Any]) -> Together:
    """A norm of each vector, and of each module a scale and a shift, where it has them."""
    first = modules[0]
    norm = F.layer_norm if isinstance(first, nn.LayerNorm) else F.rms_norm
    scale_MD, shift_MD = (
        None if getattr(first, name, None) is None else torch.stack([getattr(each, name) for each in modules])
        for name in ("weight", "bias")
    )

    def normed(rows: SortedRows, x: Tensor) -> Tensor:
        y = norm(x, first.normalized_shape, eps=first.eps)
        y = y if scale_MD is None else y * beside(scale_MD[rows.module], y)
        return y if shift_MD is None else y + beside(shift_MD[rows.module], y)

    return normed


GROUPED: dict[type[nn.Module], Callable[[Sequence[Any]], Together]] = {
    Linear: _linear,
    nn.LayerNorm: _norm,
    nn.RMSNorm: _norm,
}
ALIGNED = 8  # numbers of two bytes that the rows of an accelerator's grouped product are whole multiples of


def pays(x: Tensor, modules: nn.Module) -> bool:
    """Whether some modules are quicker all at once on rows: on an accelerator, in the precision of its grouped product.
    Elsewhere each by itself is, whose weights need not be copied."""
    device = x.device.type
    if device != "cuda" or not len(x):
        return False
    kind = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
    matrices = (weight for weight in modules.parameters() if weight.dim() == 2)
    return kind == torch.bfloat16 and all(size % ALIGNED == 0 for weight in matrices for size in weight.shape)
