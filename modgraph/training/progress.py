"""How far a training has come, as plain facts that a checkpoint keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from modgraph.training.checkpoint import Checkpoint
from modgraph.training.data import TRAIN
from modgraph.training.metrics import better
from modgraph.training.recipe import Train


@dataclass(frozen=True)
class Progress:
    """Epochs and steps done; the best value of the watched metric, its step, and epochs since the last better one."""

    epoch: int = 0
    step: int = 0
    enough: bool = False
    best: float | None = None
    best_step: int | None = None
    watched: float | None = None
    waited: int = 0

    def facts(self) -> dict[str, Any]:
        """What a checkpoint keeps besides epoch and step."""
        return {name: value for name, value in asdict(self).items() if name not in ("epoch", "step")}

    @classmethod
    def read(cls, checkpoint: Checkpoint) -> Progress:
        """The progress that a checkpoint tells. Raises `ValueError` if it cannot be."""
        known = {field.name for field in fields(cls)}
        facts = {name: value for name, value in checkpoint.facts.items() if name in known}
        for name, value in {"epoch": checkpoint.epoch, "step": checkpoint.step, **facts}.items():
            if not (value is None or isinstance(value, int | float)):
                raise ValueError(f"{name} is {value!r}")
        return cls(**{**facts, "epoch": checkpoint.epoch, "step": checkpoint.step})

    def after_step(self) -> Progress:
        return replace(self, step=self.step + 1)

    def after_epoch(self, train: Train, values: Mapping[str, Mapping[str, float]]) -> Progress:
        """The next epoch's start, given the metrics of this one by split."""
        then = replace(self, epoch=self.epoch + 1)
        if train.best is not None:
            value = lookup(train.best, values)
            if self.best is None or better(train.best, value, self.best):
                then = replace(then, best=value, best_step=self.step)
        return then._with_early_stop(train, values)

    def _with_early_stop(self, train: Train, values: Mapping[str, Mapping[str, float]]) -> Progress:
        stop = train.early_stop
        if stop is None:
            return self
        value = lookup(stop.metric, values)
        reached = stop.at is not None and (value == stop.at or better(stop.metric, value, stop.at))
        improved = self.watched is None or better(stop.metric, value, self.watched)
        waited = 0 if improved else self.waited + 1
        enough = reached or (stop.patience is not None and waited >= stop.patience)
        return replace(self, watched=value if improved else self.watched, waited=waited, enough=enough)


def lookup(metric: str, values: Mapping[str, Mapping[str, float]]) -> float:
    """The value of `split.metric`, or of a metric of the training data."""
    split, dot, name = metric.partition(".")
    return values[split][name] if dot and split in values else values[TRAIN][metric]
