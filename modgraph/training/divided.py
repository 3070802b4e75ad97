"""Weights that are divided among processes (FSDP): each has a part of each, of its gradient and its optimizer's state.

What is kept or compared is whole, in every process; making it so is done by all of them at once. A weight that is a
single number is divided as an array of one, of which one process has all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.backends.torch.instance import units


def whole(x: Tensor, shape: Sequence[int] | None = None) -> Tensor:
    """A tensor with what all processes have of it; one that is divided in the shape of the weight that it is of."""
    full = getattr(x, "full_tensor", None)
    found: Tensor = x if full is None else full()
    return found if full is None or shape is None else found.reshape(shape)


def divided_as(x: Tensor, like: Tensor) -> Tensor:
    """This process's part of a whole tensor, as another of its shape is divided; whole where that is."""
    mesh = getattr(like, "device_mesh", None)
    x = x if mesh is None or x.dim() else x.reshape(1)
    if mesh is None or x.shape != like.shape:
        return x
    from torch.distributed.tensor import distribute_tensor

    placed: Any = like
    return distribute_tensor(x.to(like.device), mesh, placed.placements, src_data_rank=None)


def divide(module: nn.Module, device: torch.device) -> nn.Module:
    """Divide the weights of a module among all processes, those of each round or block by themselves; they are whole
    while it computes, and while gradients flow back through it."""
    from torch.distributed import get_world_size
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    for owner in module.modules():
        for name, weight in [*owner.named_parameters(recurse=False)]:
            if not weight.dim():  # which torch does not divide
                owner.register_parameter(name, nn.Parameter(weight.detach().reshape(1), weight.requires_grad))
    mesh = init_device_mesh(device.type, (get_world_size(),))
    for part in [*(unit for unit in units(module) if any(True for _ in unit.parameters())), module]:
        fully_shard(part, mesh=mesh)
    return module


@contextmanager
def made_whole(module: Any) -> Iterator[None]:
    """Within it the weights of a module are whole, for whoever does not call the module itself."""
    inner: Any = getattr(module, "module", module)
    if not hasattr(inner, "unshard"):
        yield
        return
    inner.unshard()
    try:
        yield
    finally:
        inner.reshard()
