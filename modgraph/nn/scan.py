"""One step after another along the first axis of a sequence, its weights the same at each.

B is the batch axis, T that of the steps.
"""

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

    That node wants at least one state, to be given all that a step takes, and that nothing which goes in or out shares
    memory. torch finds what a step takes from outside by compiling it, which takes most of an export.
    """
    slices = [each.movedim(1, 0).clone() for each in (*sequences, real) if each is not None]
    carried = [state.clone(memory_format=torch.contiguous_format) for state in states]
    carried = carried or [sequences[0].new_zeros(1)]

    def combined(*given: Tensor) -> list[Tensor]:
        carry, rest = given[: len(carried)], given[len(carried) :]
        at, known = rest[: len(sequences)], rest[len(sequences) : len(slices)]
        following, results = _masked(step, at, carry[: len(states)], known[0] if known else None)
        return [each.clone() for each in (*(following or carry), *results)]

    fake: Any = detect_fake_mode([*carried, *slices])
    with (
        disable_proxy_modes_tracing(),
        fake.shape_env.ignore_fresh_unbacked_symbols(),
        Outside([*carried, *slices]) as outside,
    ):
        combined(*carried, *(each[0] for each in slices))

    def closed(*given: Tensor) -> list[Tensor]:
        own, taken = given[: len(carried) + len(slices)], given[len(carried) + len(slices) :]
        with Replaced(outside.tensors, taken):
            return combined(*own)

    found = scan_op(closed, carried, slices, additional_inputs=tuple(outside.tensors))
    return [each.movedim(0, 1) for each in found[len(carried) :]]


def _masked(step: Step, slices: Tensors, states: Tensors, real: Tensor | None) -> tuple[Tensors, Tensors]:
    """One step, without effect on examples that have ended: real [B]."""
    following, results = step(slices, states)
    if real is None:
        return following, results
    masks = [real.reshape(-1, *[1] * (each.dim() - 1)) for each in (*following, *results)]
    moved = [torch.where(mask, new, old) for mask, new, old in zip(masks, following, states, strict=False)]
    return moved, [each.masked_fill(~mask, 0) for mask, each in zip(masks[len(moved) :], results, strict=True)]


class Outside(TorchFunctionMode):
    """Within it, tensors are kept that torch's functions take, and that are neither `arguments` nor made by them."""

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
    """Within it, torch's functions take others in place of some tensors."""

    def __init__(self, tensors: Sequence[Tensor], others: Sequence[Tensor]) -> None:
        super().__init__()
        self.others = {id(old): new for old, new in zip(tensors, others, strict=True)}

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = tree_map_only(Tensor, lambda each: self.others.get(id(each), each), (args, kwargs or {}))
        return function(*args, **kwargs)
