"""Copies host memory to the device without waiting for it.

A copy from pageable memory waits until the device has run all queued work; a copy from pinned memory is queued.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor


def to_device(x: Tensor, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """Copy a tensor to a device, and convert it to `dtype` if that is given."""
    x = x if dtype is None else x.to(dtype=dtype)  # first: a converting copy would not read pinned memory
    if device.type != "cuda" or x.device.type != "cpu":
        return x.to(device)
    return x.pin_memory().to(device, non_blocking=True)


def constant(values: Sequence[float], dtype: torch.dtype, device: torch.device) -> Tensor:
    """A tensor [n] of constant numbers."""
    if device.type != "cuda" or torch.compiler.is_compiling():  # a compiled graph stores them as constants
        return torch.tensor(values, dtype=dtype, device=device)
    return to_device(torch.tensor(values, dtype=dtype), device)


def seed_draws(seed: int) -> None:
    """Seed the default generators. Without an accelerator, `torch.manual_seed` formats a stack for each kind that might
    be there, which takes longer than a small training step."""
    (torch.manual_seed if _has_accelerator() else torch.default_generator.manual_seed)(seed)


@cache
def _has_accelerator() -> bool:
    return torch.accelerator.is_available()


@dataclass(frozen=True)
class Transfer:
    """Tensors that are being copied to a device; the event `done` marks the end of the copy."""

    tensors: Mapping[str, Tensor]
    done: Any = None

    def wait(self) -> dict[str, Tensor]:
        """Let the current stream wait for the copy, and return the tensors."""
        if self.done is not None:
            stream = torch.cuda.current_stream()
            stream.wait_event(self.done)
            for each in self.tensors.values():
                each.record_stream(stream)  # the allocator must not reuse their memory before this stream is done
        return dict(self.tensors)


class Uploader:
    """Copies tensors to a device on a stream of its own, while the device computes."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream: Any = None
        if device.type == "cuda":
            self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def send(self, tensors: Mapping[str, Tensor]) -> Transfer:
        """Start the copy of host tensors; any thread may call this."""
        if self.stream is None:
            return Transfer({name: to_device(each, self.device) for name, each in tensors.items()})
        with torch.cuda.stream(self.stream):
            found = {name: to_device(each, self.device) for name, each in tensors.items()}
            return Transfer(found, self.stream.record_event())
