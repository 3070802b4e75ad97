"""Detect divergence: a loss, a gradient or a state that is infinite or NaN."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from modgraph.diagnostics import ModgraphError
from modgraph.store.checkpoint import Checkpoint
from modgraph.training.errors import Diverged
from modgraph.training.processes import whole

CHECK_EVERY = 50  # steps: each check waits for the accelerator


@dataclass(frozen=True)
class Seen:
    """Numbers of a step [N] that are not checked yet, and the message for one, by its index and value."""

    step: int
    numbers: Tensor
    say: Callable[[int, float], str]


def _numbers(gradient: Tensor) -> Tensor:
    """The numbers of a gradient; of a sparse one, of its rows."""
    return gradient._values() if gradient.is_sparse else gradient


class FiniteCheck:
    """Checks that the loss and the gradients of every step are finite, and stops a training at the first that is not.

    A check waits for the device. With `every` 1, as on the processor, it comes before the weights move. Otherwise
    numbers stay on the device for `every` steps, or until metrics or a checkpoint are written. Weights that moved since
    are discarded with the training, and no checkpoint has them.
    """

    def __init__(self, every: int) -> None:
        self.every = every
        self.seen: list[Seen] = []

    def loss(self, loss: Tensor, step: int) -> None:
        """Raises `ModgraphError` if a loss is not finite."""
        self.seen.append(Seen(step, loss.reshape(1), lambda _, value: f"the loss is {value}"))
        if self.every == 1:
            self.check()

    def gradients(self, weights: Mapping[str, nn.Parameter], step: int, clip: float | None) -> None:
        """Clip gradients to a norm of `clip`. Raises `ModgraphError` if one is not finite. Where each step is checked,
        the norm over all gradients decides whether single gradients need a check."""
        gradients = {name: _numbers(weight.grad) for name, weight in weights.items() if weight.grad is not None}
        at_once, names = self.every == 1, tuple(gradients)
        norm = whole(nn.utils.get_total_norm(gradients.values())) if clip is not None or at_once else None
        if gradients and not (at_once and norm is not None and math.isfinite(norm.item())):
            largest = whole(torch.stack(torch._foreach_norm(list(gradients.values()), math.inf)))
            self.seen.append(Seen(step, largest, lambda at, _: f"the gradient of {names[at]} is not finite"))
            if clip is not None and norm is not None:
                say = "the norm of the gradient, which clipping needs, is {}"
                self.seen.append(Seen(step, norm.reshape(1), lambda _, value: say.format(value)))
        if clip is not None:
            assert norm is not None
            nn.utils.clip_grads_with_norm_(weights.values(), clip, norm)
        if self.seen and step + 1 - self.seen[0].step >= self.every:
            self.check()

    def check(self) -> None:
        """Check all numbers that are pending. Raises `ModgraphError`."""
        seen, self.seen = self.seen, []
        finite = torch.isfinite(torch.cat([each.numbers.double() for each in seen])).tolist() if seen else []
        if not all(finite):
            places = [(each, at) for each in seen for at in range(len(each.numbers))]
            first, at = places[finite.index(False)]
            what = first.say(at, first.numbers[at].item())
            raise ModgraphError([Diverged(what=what, step=first.step)])


def find_not_finite(checkpoint: Checkpoint) -> str | None:
    """Return the first tensor of a checkpoint that is not finite; integers always are."""
    state = {f"{key}.{name}": each for name, fields in checkpoint.optimizer.items() for key, each in fields.items()}
    tensors = [*checkpoint.weights.items(), *state.items()]
    return next((name for name, each in tensors if not torch.isfinite(each).all()), None)
