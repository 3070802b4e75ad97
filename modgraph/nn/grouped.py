"""Runs all modules of one kind at once, on stacked weights: one tensor [M, ...] for each weight of a module.

A kind has a method `run_rows(weights, rank, *values)`, which applies row r of each weight [R, ...] to row r of values
[..., R, message], where a message has `rank` axes. It may have `run_sorted(weights, rows, *values)` for rows sorted by
module. Both read the weights given to them, never those of the module itself.

Shape suffixes: E rows, M modules, R rows with weights of their own, D input width, V output width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

Weights = Mapping[str, Tensor]  # by their names in one module


@dataclass(frozen=True, eq=False)
class SortedRows:
    """The module of each row [E], sorted, and the number of rows of each module [M]."""

    module: Tensor
    counts: Tensor
    _known: dict[str, list[int]] = field(default_factory=dict)

    @property
    def sizes(self) -> list[int]:
        """The counts as numbers, for which the first call waits for the device."""
        if "sizes" not in self._known:
            self._known["sizes"] = self.counts.tolist()
        return self._known["sizes"]


GroupedFunction = Callable[..., Tensor]  # SortedRows and messages [E, ...] to results [E, ...]


@dataclass(frozen=True, eq=False)
class Stack:
    """M modules of one kind: one of them, for its settings, and the stacked weights of all."""

    module: Any
    weights: Weights

    @classmethod
    def from_modules(cls, column: Sequence[Any]) -> Stack:
        """Stack the weights of modules."""
        each = [weights_of(module) for module in column]
        return cls(column[0], {name: torch.stack([own[name] for own in each]) for name in each[0]})

    def run_rows(self, ranks: Sequence[int], *values: Tensor) -> Any:
        """Apply module j to row j of values [..., M, message], or all modules to values [..., 1, message].

        `ranks` are the numbers of axes of messages.
        """
        if self.weights:
            return find_rows(self.module)(self.weights, ranks[0], *values)
        axes = [-rank - 1 for rank in ranks]
        most = max(x.shape[axis] for x, axis in zip(values, axes, strict=True))
        pairs = zip(values, axes, strict=True)
        return self.module(*(x if x.shape[axis] == most else expand_axis(x, axis, most) for x, axis in pairs))

    def run_indexed(self, module_E: Tensor, *values: Tensor) -> Any:
        """Apply the modules of an index [E] to values [E, ...]."""
        return Stack(self.module, self.take_rows(module_E)).run_rows([x.dim() - 1 for x in values], *values)

    def take_rows(self, module_E: Tensor) -> dict[str, Tensor]:
        """The weights of the modules of an index [E]."""
        return {name: weight.index_select(0, module_E) for name, weight in self.weights.items()}

    def run_sorted(self, rows: SortedRows, *values: Tensor) -> Any:
        """Apply the modules to values [E, ...] sorted by module."""
        run = getattr(self.module, "run_sorted", None) if self.weights else None
        return self.run_indexed(rows.module, *values) if run is None else run(self.weights, rows, *values)


def expand_axis(x: Tensor, axis: int, size: int) -> Tensor:
    """Expand an axis of length one."""
    return x.expand([size if at == axis % x.dim() else -1 for at in range(x.dim())])


def weights_of(module: Any) -> dict[str, Tensor]:
    """The weights of a module by name; of a learned array, the array."""
    return dict(module.named_parameters()) if isinstance(module, nn.Module) else {"": module.weight}


def can_stack(module: Any) -> bool:
    """Whether modules of this kind can run on stacked weights; all without weights can."""
    return not weights_of(module) or find_rows(module) is not None


def find_rows(module: Any) -> Any:
    """The method `run_rows` of a module; None if its kind has none."""
    own = _run_norm if isinstance(module, nn.LayerNorm | nn.RMSNorm) else None
    return getattr(module, "run_rows", None) if own is None else lambda *given: own(module, *given)


def _run_norm(norm: Any, weights: Weights, rank: int, x: Tensor) -> Tensor:
    """Normalise each vector; apply each row's scale, and its shift if it has one."""
    function = F.layer_norm if isinstance(norm, nn.LayerNorm) else F.rms_norm
    y = function(x, norm.normalized_shape, eps=norm.eps) * spread_rows(weights["weight"], rank)
    return y + spread_rows(weights["bias"], rank) if "bias" in weights else y


def spread_rows(own_RC: Tensor, rank: int) -> Tensor:
    """Reshape vectors [R, C] so that they broadcast against values [..., R, message], whose messages have `rank`
    axes."""
    return own_RC.reshape(own_RC.shape[0], *[1] * (rank - 1), own_RC.shape[-1])


def run_linear(weights: Weights, rows: SortedRows, x: Tensor) -> Tensor:
    """Apply linear maps to rows [E, ..., D] sorted by module: as one grouped product where there is one for them."""
    weight_MVD, bias_MV = weights["weight"], weights.get("bias")
    if not has_product(x, weight_MVD) or not len(x):
        return _run_each(weight_MVD, bias_MV, torch.split(x, rows.sizes))
    each = x[0, ..., 0].numel()  # vectors per message
    kind = type_of_product(x)
    flat, ends_M = x.reshape(-1, x.shape[-1]).to(kind), rows.counts.cumsum(0) * each
    y = F.grouped_mm(flat, weight_MVD.transpose(1, 2).to(kind), offs=ends_M.to(torch.int32))
    if y.requires_grad:
        y.register_hook(Tensor.contiguous)  # type: ignore[no-untyped-call]  # grouped_mm refuses an expanded gradient
    y = y.reshape(*x.shape[:-1], -1)
    return y if bias_MV is None else y + spread_rows(bias_MV[rows.module], x.dim() - 1).to(kind)


def _run_each(weight_MVD: Tensor, bias_MV: Tensor | None, parts: Sequence[Tensor]) -> Tensor:
    """Apply each linear map to its part; a traced graph cannot ask which parts are empty."""
    bias = [None] * len(parts) if bias_MV is None else bias_MV.unbind(0)
    maps = [*zip(parts, weight_MVD.unbind(0), bias, strict=True)]
    some = maps if is_traced(parts[0]) else [each for each in maps if len(each[0])]
    return torch.cat([F.linear(*each) for each in some or maps[:1]])


GROUPED = {"cpu": (torch.float32, torch.bfloat16), "cuda": (torch.bfloat16,)}  # dtypes of grouped products, by device
ALIGNED = 16  # bytes: those of a row of a grouped product must be a multiple


def type_of_product(x: Tensor) -> torch.dtype:
    """The dtype in which a product with x is computed."""
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype


def has_product(x: Tensor, *weights: Tensor) -> bool:
    """Whether torch has a grouped product of x with matrices [..., V, D]: on the processor or in 16 bits, aligned."""
    known = GROUPED.get(x.device.type, ())
    is_unknown = is_traced(x) and (torch.compiler.is_compiling() or x.device.type == "cpu")
    if not known or is_unknown or type_of_product(x) not in known:
        return False
    lengths = (size * type_of_product(x).itemsize for weight in weights for size in weight.shape[-2:])
    return all(each % ALIGNED == 0 for each in lengths)


def pays(x: Tensor, module: nn.Module) -> bool:
    """Whether stacking the weights of separate modules is faster than running each: on an accelerator, if there is a
    grouped product. Elsewhere it costs a copy of the weights."""
    matrices = (weight for weight in module.parameters() if weight.dim() == 2)
    return x.device.type == "cuda" and len(x) > 0 and has_product(x, *matrices)


def is_traced(x: Tensor) -> bool:
    """Whether a graph is traced, or x is one of torch's fake tensors, which have no numbers."""
    return torch.compiler.is_compiling() or hasattr(x, "fake_mode")


def can_read(x: Tensor) -> bool:
    """Whether numbers of x may decide what to run: on the processor, without gradients."""
    return not (torch.is_grad_enabled() or is_traced(x)) and x.device.type == "cpu"


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
