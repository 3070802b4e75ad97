"""Runs all modules of one kind at once on rows sorted by module: linear maps as one grouped matrix product.

Shape suffixes: E rows, M modules, D input width, V output width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.linear import Linear, broadcast_rows


@dataclass(frozen=True, eq=False)
class SortedRows:
    """The module of each row [E], sorted, and the end of each module's rows [M]."""

    module: Tensor
    ends: Tensor


GroupedFunction = Callable[..., Tensor]  # SortedRows and messages [E, ...] to results [E, ...]


def stack_modules(column: Sequence[nn.Module]) -> Callable[..., Tensor]:
    """Stack the weights of modules of one kind into one function of module indices [E] and messages [E, ...].

    The class stacks them with its static method `stack_weights`; modules without weights are equal.
    """
    stack = getattr(type(column[0]), "stack_weights", None)
    if stack is not None:
        function: Callable[..., Tensor] = stack(column)
        return function
    assert not any(True for _ in column[0].parameters()), f"{type(column[0]).__name__} has no stack_weights"
    return lambda module_E, *values: column[0](*values)


def group_modules(column: Sequence[nn.Module]) -> GroupedFunction | None:
    """Stack the weights of modules of one kind into one function of sorted rows; None if the kind has no such form."""
    kind = type(column[0])
    if kind in GROUPED:
        return GROUPED[kind](column)
    if not hasattr(kind, "stack_weights") and any(True for _ in column[0].parameters()):
        return None
    function = stack_modules(column)
    return lambda rows, *values: function(rows.module, *values)


def _linear(modules: Sequence[Any]) -> GroupedFunction:
    weight_MDV = torch.stack([module.weight for module in modules]).transpose(1, 2)
    bias_MV = None if modules[0].bias is None else torch.stack([module.bias for module in modules])

    def linear(rows: SortedRows, x: Tensor) -> Tensor:
        each = x[0, ..., 0].numel()  # vectors per message
        kind = torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type) else x.dtype
        flat = x.reshape(-1, x.shape[-1]).to(kind)
        y = F.grouped_mm(flat, weight_MDV.to(kind), offs=(rows.ends * each).to(torch.int32))
        if y.requires_grad:
            y.register_hook(Tensor.contiguous)  # type: ignore[no-untyped-call]  # grouped_mm refuses an expanded gradient
        y = y.reshape(*x.shape[:-1], -1)
        return y if bias_MV is None else y + broadcast_rows(bias_MV[rows.module], y).to(kind)

    return linear


def _norm(modules: Sequence[Any]) -> GroupedFunction:
    """Normalise each vector; apply each module's scale and shift if it has them."""
    first = modules[0]
    norm = F.layer_norm if isinstance(first, nn.LayerNorm) else F.rms_norm
    scale_MD, shift_MD = (
        None if getattr(first, name, None) is None else torch.stack([getattr(each, name) for each in modules])
        for name in ("weight", "bias")
    )

    def apply_norm(rows: SortedRows, x: Tensor) -> Tensor:
        y = norm(x, first.normalized_shape, eps=first.eps)
        y = y if scale_MD is None else y * broadcast_rows(scale_MD[rows.module], y)
        return y if shift_MD is None else y + broadcast_rows(shift_MD[rows.module], y)

    return apply_norm


GROUPED: dict[type[nn.Module], Callable[[Sequence[Any]], GroupedFunction]] = {
    Linear: _linear,
    nn.LayerNorm: _norm,
    nn.RMSNorm: _norm,
}
ALIGNED = 8  # row lengths of grouped_mm in bfloat16 must be multiples of this


def pays(x: Tensor, modules: nn.Module) -> bool:
    """Whether grouping modules is faster than running each: on an accelerator, in bfloat16, with aligned matrices.

    Elsewhere it costs a copy of the weights.
    """
    device = x.device.type
    if device != "cuda" or not len(x):
        return False
    kind = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
    matrices = (weight for weight in modules.parameters() if weight.dim() == 2)
    return kind == torch.bfloat16 and all(size % ALIGNED == 0 for weight in matrices for size in weight.shape)


def slices(x: Tensor, counts: Tensor) -> Sequence[Tensor]:
    """Split the rows of x [E, ...] into consecutive parts of lengths counts [M], which add up to E."""
    if torch.compiler.is_exporting():
        parts: Sequence[Tensor] = slices_op(x, counts, counts.shape[0])
        torch._check(sum(part.shape[0] for part in parts) == x.shape[0])  # type: ignore[no-untyped-call]
        return parts
    return torch.split(x, counts.tolist())


@torch.library.custom_op("modgraph::slices", mutates_args=())
def slices_op(x: Tensor, counts: Tensor, parts: int) -> list[Tensor]:
    """`slices` as one op of a traced graph: torch's own split would read each size from a tensor."""
    return [part.clone() for part in torch.split(x, counts.tolist())]


@slices_op.register_fake
def make_fake_parts(x: Tensor, counts: Tensor, parts: int) -> list[Tensor]:
    sizes = [torch.library.get_ctx().new_dynamic_size() for _ in range(parts)]
    return [x.new_empty(size, *x.shape[1:]) for size in sizes]
