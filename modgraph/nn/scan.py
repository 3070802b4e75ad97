"""One step after another along the first axis of a sequence, its weights the same at each.

B is the batch axis, T that of the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._higher_order_ops import scan as exported_scan

Tensors = Sequence[Tensor]
Step = Callable[[Tensor, Tensors], tuple[Tensors, Tensors]]


def scan(step: Step, sequence: Tensor, states: Tensors, length: Tensor | None = None) -> list[Tensor]:
    """Results [B, T, ...] of a step, which takes a slice [B, ...] and states to the next states and results [B, ...].

    At and beyond an example's `length`, states stay as they are and results are zero.
    """
    places = torch.arange(sequence.shape[1], device=sequence.device)
    real = None if length is None else places < length.to(places.device).unsqueeze(-1)
    if torch.compiler.is_exporting():
        return _exported(step, sequence, states, real)
    if sequence.shape[1] == 0:
        one = sequence.new_zeros(sequence.shape[0], 1, *sequence.shape[2:])
        return [result[:, :0] for result in _looped(step, one, states, None)]
    return _looped(step, sequence, states, real)


def _looped(step: Step, sequence: Tensor, states: Tensors, real: Tensor | None) -> list[Tensor]:
    found = []
    for time, x in enumerate(sequence.unbind(1)):
        states, results = _kept(step, x, states, None if real is None else real[:, time])
        found.append(results)
    return [torch.stack(list(each), dim=1) for each in zip(*found, strict=True)]


def _exported(step: Step, sequence: Tensor, states: Tensors, real: Tensor | None) -> list[Tensor]:
    """The same as one node of a traced graph, since a traced loop would keep the length of its example.

    That node wants at least one state, and that nothing which goes in or out shares memory.
    """
    slices = [each.movedim(1, 0).clone() for each in (sequence, real) if each is not None]
    carried = [state.clone(memory_format=torch.contiguous_format) for state in states]

    def combined(carry: list[Tensor], given: list[Tensor]) -> Any:
        x, *known = given
        following, results = _kept(step, x, carry[: len(states)], known[0] if known else None)
        return [each.clone() for each in (following or carry)], [each.clone() for each in results]

    _, found = exported_scan(combined, carried or [sequence.new_zeros(1)], slices)
    return [each.movedim(0, 1) for each in found]


def _kept(step: Step, x: Tensor, states: Tensors, real: Tensor | None) -> tuple[Tensors, Tensors]:
    """One step, without effect on examples that have ended: real [B]."""
    following, results = step(x, states)
    if real is None:
        return following, results
    kept = [torch.where(_beside(real, new), new, old) for new, old in zip(following, states, strict=True)]
    return kept, [result.masked_fill(~_beside(real, result), 0) for result in results]


def _beside(real: Tensor, x: Tensor) -> Tensor:
    return real.reshape(-1, *[1] * (x.dim() - 1))
