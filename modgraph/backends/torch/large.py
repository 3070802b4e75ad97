"""Large pools: stored weights under names of their own, `expert.*.linear.weight`, for a million names are too many."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from modgraph.backends.torch.construct import Namespace
from modgraph.backends.torch.regions import CompiledPool
from modgraph.backends.torch.stored import StoredPool
from modgraph.ir import EACH
from modgraph.nn.grouped import Stack


class LargePool(StoredPool):
    """A stored pool whose state dict has the stored weights themselves. `pool.expert(17)` is one module, on their rows.

    With `sparse`, a route by ids gives a weight a gradient of the rows that it read, for optimizers that move only
    these.
    """

    storage = Namespace
    holder = EACH
    sparse = False

    def stacks(self) -> dict[str, Stack]:
        found = super().stacks()
        return {op: SparseStack(each.module, each.weights) for op, each in found.items()} if self.sparse else found

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        return CompiledPool.state_dict(self, *args, destination=destination, prefix=prefix, keep_vars=keep_vars)

    def _load_from_state_dict(self, *args: Any) -> None:
        CompiledPool._load_from_state_dict(self, *args)


class SparseStack(Stack):
    """Stacked weights whose rows have sparse gradients."""

    def take_rows(self, module_E: Tensor) -> dict[str, Tensor]:
        found = super().take_rows(module_E)
        for name, weight in self.weights.items():
            if weight.is_leaf and weight.requires_grad:
                found[name] = _SparseRows.apply(weight, module_E)  # type: ignore[no-untyped-call]
        return found


class _SparseRows(torch.autograd.Function):
    """Rows of a weight [M, ...] by index [E]."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.shape = weight.shape
        return weight.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (index,) = ctx.saved_tensors
        return torch.sparse_coo_tensor(index.unsqueeze(0), gradient, ctx.shape, check_invariants=False), None
