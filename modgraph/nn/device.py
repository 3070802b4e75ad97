"""Values of the processor's memory on the device that computes, without waiting for it.

A copy from memory that may be paged out waits until all that was asked of the device is done; one from pinned memory is
done in its turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Sent:
    """Tensors on their way to a device; `done` tells it when they are there."""

    tensors: Mapping[str, Tensor]
    done: Any = None

    def received(self) -> dict[str, Tensor]:
        """The tensors, for what is computed from here on."""
        if self.done is not None:
            stream = torch.cuda.current_stream()
            stream.wait_event(self.done)
            for each in self.tensors.values():
                each.record_stream(stream)  # their memory is not given to others before that is done with them
        return dict(self.tensors)


class Sender:
    """Sends tensors to a device while it computes."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream: Any = None
        if device.type == "cuda":
            self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def send(self, tensors: Mapping[str, Tensor]) -> Sent:
        """Send tensors of the processor's memory, from any thread."""
        if self.stream is None:
            return Sent({name: sent(each, self.device) for name, each in tensors.items()})
        with torch.cuda.stream(self.stream):
            found = {name: sent(each, self.device) for name, each in tensors.items()}
            return Sent(found, self.stream.record_event())
