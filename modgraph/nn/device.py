"""Values of the processor's memory on the device that computes, without waiting for it.

A copy from memory that may be paged out waits until all that was asked of the device is done; one from pinned memory is
done in its turn.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def sent(x: Tensor, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """A tensor on a device, of another type where one is named."""
    x = x if dtype is None else x.to(dtype=dtype)  # first: a copy that converts is not from pinned memory
    if device.type != "cuda" or x.device.type != "cpu":
        return x.to(device)
    return x.pin_memory().to(device, non_blocking=True)


def constant(values: Sequence[float], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Given numbers [n] as a tensor."""
    if device.type != "cuda" or torch.compiler.is_compiling():  # a compiled model holds them
        return torch.tensor(values, dtype=dtype, device=device)
    return sent(torch.tensor(values, dtype=dtype), device)
