"""Sees that a training has gone astray: a loss, a gradient or a state that is infinite or not a number."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from modgraph.diagnostics import ModgraphError
from modgraph.store.checkpoint import Checkpoint
from modgraph.training.errors import Diverged


def check_loss(loss: Tensor, step: int) -> None:
    """Raises `ModgraphError` if a loss is no finite number."""
    value = loss.item()
    if not math.isfinite(value):
        raise ModgraphError([Diverged(what=f"the loss is {value}", step=step)])


def check_gradients(weights: Mapping[str, nn.Parameter], step: int, clip: float | None) -> None:
    """Scale gradients down to a norm of `clip` at most. Raises `ModgraphError` if one is no finite number.

    The norm over all of them, which clipping needs anyway, is looked at; only where it is no number, each by itself.
    """
    gradients = {name: weight.grad for name, weight in weights.items() if weight.grad is not None}
    norm = nn.utils.get_total_norm(gradients.values())
    if not math.isfinite(norm.item()):
        wrong = first_not_finite(gradients)
        if wrong is not None:
            raise ModgraphError([Diverged(what=f"the gradient of {wrong} is not finite", step=step)])
        if clip is not None:
            raise ModgraphError(
                [Diverged(what=f"the norm of the gradient, which clipping needs, is {norm}", step=step)]
            )
    if clip is not None:
        nn.utils.clip_grads_with_norm_(weights.values(), clip, norm)


def first_not_finite(tensors: Mapping[str, Tensor]) -> str | None:
    """The first tensor that holds what is no finite number; whole numbers always are."""
    return next((name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()), None)


def wrong_in(checkpoint: Checkpoint) -> str | None:
    """The first tensor of a checkpoint that holds what is no finite number."""
    state = {f"{key}.{name}": each for name, fields in checkpoint.optimizer.items() for key, each in fields.items()}
    return first_not_finite(checkpoint.weights) or first_not_finite(state)
