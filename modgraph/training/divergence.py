"""Sees that a training has gone astray: a loss, a gradient or a state that is infinite or not a number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from modgraph.diagnostics import ModgraphError
from modgraph.store.checkpoint import Checkpoint
from modgraph.training.divided import whole
from modgraph.training.errors import Diverged

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
        return [self.loss, *(each for each in (largest, self.norm) if each is not None)]

    def wrong(self) -> str:
        """What is no finite number, given that something is not."""
        value = self.loss.item()
        if not math.isfinite(value):
            return _of_loss(value)
        finite = [] if self.largest is None else torch.isfinite(self.largest).tolist()
        if not all(finite):
            return _of_gradient(self.names[finite.index(False)])
        assert self.norm is not None
        return _of_norm(self.norm)


class FiniteCheck:
    """Looks at the loss and the gradients of every step, and stops a training at the first that is no finite number.

    A look waits for the device. With `every` 1, as on the processor, it is taken before the weights move. Otherwise
    what is looked at stays on the device for so many steps, and until anything is told or kept of them: weights that
    moved since are given up with the training, and no checkpoint has them.
    """

    def __init__(self, every: int) -> None:
        self.every = every
        self.seen: list[Seen] = []

    @classmethod
    def on(cls, device: torch.device) -> FiniteCheck:
        """As often as it costs little there."""
        return cls(1 if device.type == "cpu" else LOOK_EVERY)

    def loss(self, loss: Tensor, step: int) -> None:
        """Raises `ModgraphError` if a loss is no finite number."""
        if self.every == 1:
            value = loss.item()
            if not math.isfinite(value):
                raise ModgraphError([Diverged(what=_of_loss(value), step=step)])
        else:
            self.seen.append(Seen(step, loss))

    def gradients(self, weights: Mapping[str, nn.Parameter], step: int, clip: float | None) -> None:
        """Scale gradients down to a norm of `clip` at most. Raises `ModgraphError` if one is no finite number."""
        gradients = {name: weight.grad for name, weight in weights.items() if weight.grad is not None}
        norm = whole(nn.utils.get_total_norm(gradients.values())) if clip is not None or self.every == 1 else None
        if self.every == 1:
            assert norm is not None
            _check_now(gradients, norm, step, clip)
        elif gradients:
            largest = whole(torch.stack(torch._foreach_norm(list(gradients.values()), math.inf)))
            self.seen[-1] = Seen(step, self.seen[-1].loss, tuple(gradients), largest, norm)
        if clip is not None:
            assert norm is not None
            nn.utils.clip_grads_with_norm_(weights.values(), clip, norm)
        if len(self.seen) >= self.every:
            self.look()

    def look(self) -> None:
        """Look at all that was not looked at. Raises `ModgraphError`."""
        seen, self.seen = self.seen, []
        numbers = [(each, number) for each in seen for number in each.numbers]
        if not numbers:
            return
        finite = torch.isfinite(torch.stack([number.double() for _, number in numbers])).tolist()
        if not all(finite):
            first = numbers[finite.index(False)][0]
            raise ModgraphError([Diverged(what=first.wrong(), step=first.step)])


def _check_now(gradients: Mapping[str, Tensor], norm: Tensor, step: int, clip: float | None) -> None:
    """The norm over all of them, which clipping needs anyway; only where it is no number, each by itself."""
    if math.isfinite(norm.item()):
        return
    wrong = first_not_finite({name: whole(each) for name, each in gradients.items()})
    if wrong is not None:
        raise ModgraphError([Diverged(what=_of_gradient(wrong), step=step)])
    if clip is not None:
        raise ModgraphError([Diverged(what=_of_norm(norm), step=step)])


def _of_loss(value: float) -> str:
    return f"the loss is {value}"


def _of_gradient(name: str) -> str:
    return f"the gradient of {name} is not finite"


def _of_norm(norm: Tensor) -> str:
    return f"the norm of the gradient, which clipping needs, is {norm.item()}"


def first_not_finite(tensors: Mapping[str, Tensor]) -> str | None:
    """The first tensor that holds what is no finite number; whole numbers always are."""
    return next((name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()), None)


def wrong_in(checkpoint: Checkpoint) -> str | None:
    """The first tensor of a checkpoint that holds what is no finite number."""
    state = {f"{key}.{name}": each for name, fields in checkpoint.optimizer.items() for key, each in fields.items()}
    return first_not_finite(checkpoint.weights) or first_not_finite(state)
