"""Detect divergence: a loss, a gradient or a state that is infinite or NaN."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from modgraph.diagnostics import ModgraphError
from modgraph.store.checkpoint import Checkpoint
from modgraph.training.errors import Diverged
from modgraph.training.experts import Experts, select
from modgraph.training.processes import whole

CHECK_EVERY = 50  # steps: each check waits for the accelerator


@dataclass(frozen=True)
class Seen:
    """Numbers of a step [N] that are not checked yet, and the message for one, by its index and value."""

    step: int
    numbers: Tensor
    say: Callable[[int, float], str]
    of_process: bool = False  # whether other processes have other numbers


def _numbers(gradient: Tensor) -> Tensor:
    """The numbers of a gradient; of a sparse one, of its rows."""
    return gradient._values() if gradient.is_sparse else gradient


class FiniteCheck:
    """Checks that the loss and the gradients of every step are finite, and stops a training at the first that is not.

    A check waits for the device. With `every` 1, as on the processor, it comes before the weights move. Otherwise
    numbers stay on the device for `every` steps, or until metrics or a checkpoint are written. Weights that moved since
    are discarded with the training, and no checkpoint has them. Where processes divide pools (`experts`), all stop if
    one does.
    """

    def __init__(self, every: int, experts: Experts | None = None) -> None:
        self.every = every
        self.experts = experts
        self.seen: list[Seen] = []

    def loss(self, loss: Tensor, step: int) -> None:
        """Raises `ModgraphError` if a loss is not finite."""
        self.seen.append(Seen(step, loss.reshape(1), lambda _, value: f"the loss is {value}"))
        if self.every == 1:
            self.check()

    def gradients(
        self,
        weights: Mapping[str, nn.Parameter],
        step: int,
        clip: float | None,
        of_modules: Collection[str] = (),
        needs_norm: bool = False,
    ) -> Tensor | None:
        """Clip gradients to a norm of `clip`, and return their norm before if it is known or needed. Raises
        `ModgraphError` if one is not finite. Where each step is checked, the norm over all gradients decides whether
        single gradients need a check. Weights `of_modules` are those that other processes do not hold."""
        gradients = {name: _numbers(weight.grad) for name, weight in weights.items() if weight.grad is not None}
        parts = [some for some in select(gradients, of_modules) if some]
        at_once, names = self.every == 1, [name for some in parts for name in some]
        norm = self._norm(gradients, of_modules) if clip is not None or at_once or needs_norm else None
        if (gradients or self.experts) and not (at_once and norm is not None and math.isfinite(norm.item())):
            norms = [whole(torch.stack(torch._foreach_norm(list(some.values()), math.inf))) for some in parts]
            say_which: Callable[[int, float], str] = lambda at, _: f"the gradient of {names[at]} is not finite"  # noqa: E731
            largest = torch.cat(norms or [torch.zeros(0)])
            self.seen.append(Seen(step, largest, say_which, of_process=self.experts is not None))
            if clip is not None and norm is not None:
                say = "the norm of the gradient, which clipping needs, is {}"
                self.seen.append(Seen(step, norm.reshape(1), lambda _, value: say.format(value)))
        if clip is not None:
            assert norm is not None
            for some in select(weights, of_modules):
                nn.utils.clip_grads_with_norm_(some.values(), clip, norm)
        if self.seen and step + 1 - self.seen[0].step >= self.every:
            self.check()
        return norm

    def check(self) -> None:
        """Check all numbers that are pending. Raises `ModgraphError`."""
        seen, self.seen = self.seen, []
        finite = torch.isfinite(torch.cat([each.numbers.double() for each in seen])).tolist() if seen else []
        wrong: tuple[int, str, int] | None = None  # the number of the check, the message, the step
        if not all(finite):
            places = [(number, each, at) for number, each in enumerate(seen) for at in range(len(each.numbers))]
            number, first, at = places[finite.index(False)]
            wrong = number, first.say(at, first.numbers[at].item()), first.step
        if self.experts is not None and any(each.of_process for each in seen):
            wrong = self.experts.first(wrong)
        if wrong is not None:
            raise ModgraphError([Diverged(what=wrong[1], step=wrong[2])])

    def _norm(self, gradients: Mapping[str, Tensor], of_modules: Collection[str]) -> Tensor:
        """Return the norm over all gradients, those that other processes hold too."""
        if self.experts is None:
            return whole(nn.utils.get_total_norm(gradients.values()))
        own, rest = (list(some.values()) for some in select(gradients, of_modules))
        device = next(iter(gradients.values()), torch.empty(0)).device
        common = whole(nn.utils.get_total_norm(rest)) if rest else torch.zeros((), device=device)
        return torch.hypot(common.double(), self.experts.norm(own, device))


def find_not_finite(checkpoint: Checkpoint) -> str | None:
    """Return the first tensor of a checkpoint that is not finite; integers always are."""
    state = {f"{key}.{name}": each for name, fields in checkpoint.optimizer.items() for key, each in fields.items()}
    tensors = [*checkpoint.weights.items(), *state.items()]
    return next((name for name, each in tensors if not torch.isfinite(each).all()), None)
