"""A scan: one step function applied along the first axis of a sequence. B is the batch axis, T the axis of steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._guards import detect_fake_mode
from torch._higher_order_ops.scan import scan_op
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map_only

Tensors = Sequence[Tensor]
Step = Callable[[Tensors, Tensors], tuple[Tensors, Tensors]]


def scan(step: Step, sequences: Tensors, states: Tensors, length: Tensor | None = None) -> list[Tensor]:
    """Apply a step along sequences [B, T, ...], and stack its results: [B, T, ...].

    The step takes slices [B, ...] and states [B, ...], and returns the next states and results [B, ...]. From an
    example's `length` [B] on, its states stay as they are and its results are zero.
    """
    steps, device = sequences[0].shape[1], sequences[0].device
    mask = None if length is None else torch.arange(steps, device=device) < length.to(device).unsqueeze(-1)
    if torch.compiler.is_exporting():
        return _export(step, sequences, states, mask)
    if steps == 0:
        ones = [each.new_zeros(each.shape[0], 1, *each.shape[2:]) for each in sequences]
        return [result[:, :0] for result in _loop(step, ones, states, None)]
    return _loop(step, sequences, states, mask)


def _loop(step: Step, sequences: Tensors, states: Tensors, mask: Tensor | None) -> list[Tensor]:
    found = []
    for time, slices in enumerate(zip(*(each.unbind(1) for each in sequences), strict=True)):
        states, results = _run_step(step, slices, states, None if mask is None else mask[:, time])
        found.append(results)
    return [torch.stack(list(each), dim=1) for each in zip(*found, strict=True)]


def _export(step: Step, sequences: Tensors, states: Tensors, mask: Tensor | None) -> list[Tensor]:
    """Trace the scan as one node, since a traced loop would keep the length of its example.

    That node needs at least one state, every captured tensor as an operand, and operands and results that share no
    memory. torch finds captured tensors by compiling the step, which takes most of an export; `Outside` is fast.
    """
    slices = [each.movedim(1, 0).clone() for each in (*sequences, mask) if each is not None]
    carried = [state.clone(memory_format=torch.contiguous_format) for state in states]
    carried = carried or [sequences[0].new_zeros(1)]

    def combine(*given: Tensor) -> list[Tensor]:
        carry, rest = given[: len(carried)], given[len(carried) :]
        at, known = rest[: len(sequences)], rest[len(sequences) : len(slices)]
        following, results = _run_step(step, at, carry[: len(states)], known[0] if known else None)
        return [each.clone() for each in (*(following or carry), *results)]

    fake: Any = detect_fake_mode([*carried, *slices])
    with (
        disable_proxy_modes_tracing(),
        fake.shape_env.ignore_fresh_unbacked_symbols(),
        Outside([*carried, *slices]) as outside,
    ):
        combine(*carried, *(each[0] for each in slices))

    def combine_lifted(*given: Tensor) -> list[Tensor]:
        own, taken = given[: len(carried) + len(slices)], given[len(carried) + len(slices) :]
        with Replaced(outside.tensors, taken):
            return combine(*own)

    found = scan_op(combine_lifted, carried, slices, additional_inputs=tuple(outside.tensors))
    return [each.movedim(0, 1) for each in found[len(carried) :]]


def _run_step(step: Step, slices: Tensors, states: Tensors, mask: Tensor | None) -> tuple[Tensors, Tensors]:
    """Run one step; examples outside the mask [B] keep their states and give zero."""
    following, results = step(slices, states)
    if mask is None:
        return following, results
    masks = [mask.reshape(-1, *[1] * (each.dim() - 1)) for each in (*following, *results)]
    kept = [torch.where(own, new, old) for own, new, old in zip(masks, following, states, strict=False)]
    return kept, [each.masked_fill(~own, 0) for own, each in zip(masks[len(kept) :], results, strict=True)]


class Outside(TorchFunctionMode):
    """A mode that collects the captured tensors of torch calls: neither `arguments` nor computed from them."""

    def __init__(self, arguments: Sequence[Tensor]) -> None:
        super().__init__()
        self.known = {id(each): each for each in arguments}
        self.tensors: list[Tensor] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        self.tensors += {id(each): each for each in given if id(each) not in self.known}.values()
        result = function(*args, **(kwargs or {}))
        made = [each for each in tree_leaves(result) if isinstance(each, Tensor)]
        self.known |= {id(each): each for each in (*given, *made)}
        return result


class Replaced(TorchFunctionMode):
    """A mode in which torch calls take `others` in place of `tensors`."""

    def __init__(self, tensors: Sequence[Tensor], others: Sequence[Tensor]) -> None:
        super().__init__()
        self.others = {id(old): new for old, new in zip(tensors, others, strict=True)}

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = tree_map_only(Tensor, lambda each: self.others.get(id(each), each), (args, kwargs or {}))
        return function(*args, **kwargs)
