"""Optimizers and schedules as sections of a recipe."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from typing import Any, ClassVar

from modgraph.declare import Registry, setting
from modgraph.recipes.schema import Named


class Optimizer(Named):
    """Base of optimizers: how a gradient updates the weights."""

    registry: ClassVar[Registry[Optimizer]] = Registry("optimizer")
    torch: ClassVar[str]

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the torch optimizer's constructor."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @property
    def numbers_per_weight(self) -> tuple[int, int]:
        """Numbers for each element of a weight: kept from step to step, and temporary during its update."""
        return 2, 2

    @property
    def takes_sparse(self) -> bool:
        """Whether a sparse gradient moves only its rows, as a dense one of mostly zeros would."""
        return False


class SGD(Optimizer, name="sgd"):
    """Stochastic gradient descent, with momentum if given."""

    torch = "torch.optim.SGD"
    lr: float = setting(0.01, min=0, doc="learning rate")
    momentum: float = setting(0.0, min=0, below=1, doc="share of the last update that is kept")
    weight_decay: float = setting(0.0, min=0, doc="weight decay, as a part of the gradient")
    nesterov: bool = setting(False, doc="use Nesterov momentum")

    @property
    def numbers_per_weight(self) -> tuple[int, int]:
        return int(bool(self.momentum)), int(bool(self.weight_decay or self.nesterov))

    @property
    def takes_sparse(self) -> bool:
        return not self.momentum and not self.weight_decay

    def contradiction(self) -> str | None:
        return "has nesterov, which needs momentum" if self.nesterov and not self.momentum else None


class Adam(Optimizer, name="adam"):
    """Adam (Kingma and Ba, 2015)."""

    torch = "torch.optim.Adam"
    lr: float = setting(0.001, min=0, doc="learning rate")
    beta1: float = setting(0.9, min=0, below=1, doc="decay of the gradient's moving average")
    beta2: float = setting(0.999, min=0, below=1, doc="decay of the squared gradient's moving average")
    eps: float = setting(1e-8, min=0, doc="added to the denominator")
    weight_decay: float = setting(0.0, min=0, doc="weight decay, as a part of the gradient")

    def arguments(self) -> dict[str, Any]:
        arguments = super().arguments()
        arguments["betas"] = (arguments.pop("beta1"), arguments.pop("beta2"))
        return {**arguments, "fused": True}  # one call for all weights, without temporaries

    @property
    def numbers_per_weight(self) -> tuple[int, int]:
        return 2, 0


class AdamW(Adam, name="adamw"):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019)."""

    torch = "torch.optim.AdamW"
    weight_decay: float = setting(0.01, min=0, doc="weight decay, apart from the gradient")


class Schedule(Named):
    """The factor of the learning rate, or of a state's initial value, as a function of the step."""

    registry: ClassVar[Registry[Schedule]] = Registry("schedule")
    warmup: int = setting(0, min=0, doc="steps over which the rate rises to its full value")

    def share(self, step: int, steps: int, steps_per_epoch: int) -> float:
        """Return the factor at a step (from 0) of `steps`."""
        if step < self.warmup:
            return (step + 1) / self.warmup
        done = (step - self.warmup) / max(1, steps - self.warmup)
        return self.decay(done, step // steps_per_epoch)

    @abstractmethod
    def decay(self, done: float, epoch: int) -> float:
        """Return the factor after warmup; `done` is the share of the remaining steps, from 0 to below 1."""


class Constant(Schedule, name="constant"):
    """The full rate throughout."""

    def decay(self, done: float, epoch: int) -> float:
        return 1.0


class Cosine(Schedule, name="cosine"):
    """Cosine decay from the full rate to `floor` (Loshchilov and Hutter, 2017)."""

    floor: float = setting(0.0, min=0, max=1, doc="final rate, as a share of the full one")

    def decay(self, done: float, epoch: int) -> float:
        return self.floor + (1 - self.floor) * 0.5 * (1 + math.cos(math.pi * done))


class Linear(Schedule, name="linear"):
    """Linear decay from the full rate to `floor`."""

    floor: float = setting(0.0, min=0, max=1, doc="final rate, as a share of the full one")

    def decay(self, done: float, epoch: int) -> float:
        return 1 - (1 - self.floor) * done


class Stairs(Schedule, name="stairs"):
    """Step decay: the rate times `factor` after every so many epochs."""

    every: int = setting(min=1, doc="epochs between decays")
    factor: float = setting(0.1, min=0, max=1, doc="factor of each decay")
    floor: float = setting(0.0, min=0, max=1, doc="smallest rate, as a share of the full one")

    def decay(self, done: float, epoch: int) -> float:
        return max(self.floor, self.factor ** (epoch // self.every))
