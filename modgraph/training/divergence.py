"""Sees that a training has gone astray: a loss, a gradient or a state that is infinite or not a number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from modgraph.diagnostics import ModgraphError
from modgraph.store.checkpoint import Checkpoint
from modgraph.training.errors import Diverged
from modgraph.training.processes import whole

LOOK_EVERY = 50  # steps, where each look would wait for an accelerator


@dataclass(frozen=True)
class Seen:
    """What is kept of a step until it is looked at: its loss; then of each gradient the largest number in magnitude
    [weights], by their names, and the norm over all of them where gradients are clipped."""

    step: int
    loss: Tensor
    names: tuple[str, ...] = ()
    largest: Tensor | None = None
    norm: Tensor | None = None

    @property
    def numbers(self) -> list[Tensor]:
        """The loss, the largest of all gradients, and the norm, as far as they are there."""
        largest = None if self.largest is None else self.largest.amax()
        return [each for each in (self.loss, largest, self.norm) if each is not None]

    def diverged(self) -> ModgraphError:
        """What is no finite number, given that something is not."""
        finite = [] if self.largest is None else torch.isfinite(self.largest).tolist()
        if not math.isfinite(value := self.loss.item()):
            what = f"the loss is {value}"
        elif not all(finite):
            what = f"the gradient of {self.names[finite.index(False)]} is not finite"
        else:
            assert self.norm is not None
            what = f"the norm of the gradient, which clipping needs, is {self.norm.item()}"
        return ModgraphError([Diverged(what=what, step=self.step)])


class FiniteCheck:
    """Looks at the loss and the gradients of every step, and stops a training at the first that is no finite number. A
    look waits for the device. With `every` 1, as on the processor, it is taken before the weights move. Otherwise what
    is looked at stays on the device for so many steps, and until anything is told or kept of them: weights that moved
    since are given up with the training, and no checkpoint has them."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.seen: list[Seen] = []

    def loss(self, loss: Tensor, step: int) -> None:
        """Raises `ModgraphError` if a loss is no finite number."""
        seen = Seen(step, loss)
        if self.every > 1:
            self.seen.append(seen)
        elif not math.isfinite(loss.item()):
            raise seen.diverged()

    def gradients(self, weights: Mapping[str, nn.Parameter], step: int, clip: float | None) -> None:
        """Scale gradients down to a norm of `clip` at most. Raises `ModgraphError` if one is no finite number. Where
        each step is looked at, the norm over all gradients tells whether each has to be."""
        gradients = {name: weight.grad for name, weight in weights.items() if weight.grad is not None}
        at_once = self.every == 1
        norm = whole(nn.utils.get_total_norm(gradients.values())) if clip is not None or at_once else None
        if gradients and not (at_once and norm is not None and math.isfinite(norm.item())):
            largest = whole(torch.stack(torch._foreach_norm(list(gradients.values()), math.inf)))
            loss = torch.zeros(()) if at_once else self.seen[-1].loss
            self.seen[-1:] = [Seen(step, loss, tuple(gradients), largest, norm if clip is not None else None)]
        if clip is not None:
            assert norm is not None
            nn.utils.clip_grads_with_norm_(weights.values(), clip, norm)
        if len(self.seen) >= self.every:
            self.look()

    def look(self) -> None:
        """Look at all that was not looked at. Raises `ModgraphError`."""
        seen, self.seen = self.seen, []
        numbers = [(each, number) for each in seen for number in each.numbers]
        if numbers:
            finite = torch.isfinite(torch.stack([number.double() for _, number in numbers])).tolist()
            if not all(finite):
                raise numbers[finite.index(False)][0].diverged()


def wrong_in(checkpoint: Checkpoint) -> str | None:
    """The first tensor of a checkpoint that holds what is no finite number; whole numbers always are."""
    state = {f"{key}.{name}": each for name, fields in checkpoint.optimizer.items() for key, each in fields.items()}
    tensors = [*checkpoint.weights.items(), *state.items()]
    return next((name for name, each in tensors if not torch.isfinite(each).all()), None)
