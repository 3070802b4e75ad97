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
Step = Callable[[Tensors, Tensors], tuple[Tensors, Tensors]]


def scan(step: Step, sequences: Tensors, states: Tensors, length: Tensor | None = None) -> list[Tensor]:
    """Results [B, T, ...] of a step, which takes slices [B, ...] of sequences and states to the next states and results
    [B, ...].

    At and beyond an example's `length`, states stay as they are and results are zero.
    """
    steps, device = sequences[0].shape[1], sequences[0].device
    real = None if length is None else torch.arange(steps, device=device) < length.to(device).unsqueeze(-1)
    if torch.compiler.is_exporting():
        return _exported(step, sequences, states, real)
    if steps == 0:
        ones = [each.new_zeros(each.shape[0], 1, *each.shape[2:]) for each in sequences]
        return [result[:, :0] for result in _looped(step, ones, states, None)]
    return _looped(step, sequences, states, real)


def _looped(step: Step, sequences: Tensors, states: Tensors, real: Tensor | None) -> list[Tensor]:
    found = []
    for time, slices in enumerate(zip(*(each.unbind(1) for each in sequences), strict=True)):
        states, results = _masked(step, slices, states, None if real is None else real[:, time])
        found.append(results)
    return [torch.stack(list(each), dim=1) for each in zip(*found, strict=True)]


def _exported(step: Step, sequences: Tensors, states: Tensors, real: Tensor | None) -> list[Tensor]:
    """The same as one node of a traced graph, since a traced loop would keep the length of its example.

    That node wants at least one state, and that nothing which goes in or out shares memory.
    """
    slices = [each.movedim(1, 0).clone() for each in (*sequences, real) if each is not None]
    carried = [state.clone(memory_format=torch.contiguous_format) for state in states]

    def combined(carry: list[Tensor], given: list[Tensor]) -> Any:
        at, known = given[: len(sequences)], given[len(sequences) :]
        following, results = _masked(step, at, carry[: len(states)], known[0] if known else None)
        return [each.clone() for each in (following or carry)], [each.clone() for each in results]

    _, found = exported_scan(combined, carried or [sequences[0].new_zeros(1)], slices)
    return [each.movedim(0, 1) for each in found]


def _masked(step: Step, slices: Tensors, states: Tensors, real: Tensor | None) -> tuple[Tensors, Tensors]:
    """One step, without effect on examples that have ended: real [B]."""
    following, results = step(slices, states)
    if real is None:
        return following, results
    following = [torch.where(_beside(real, new), new, old) for new, old in zip(following, states, strict=True)]
    return following, [result.masked_fill(~_beside(real, result), 0) for result in results]


def _beside(real: Tensor, x: Tensor) -> Tensor:
    return real.reshape(-1, *[1] * (x.dim() - 1))
