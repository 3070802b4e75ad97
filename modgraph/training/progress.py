"""How far a training has come, as plain facts that a checkpoint keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from modgraph.data import TRAIN
from modgraph.metrics.metrics import better, worst
from modgraph.store.checkpoint import Checkpoint
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
        facts = {**asdict(cls()), **checkpoint.facts, "epoch": checkpoint.epoch, "step": checkpoint.step}
        for name, kinds in KINDS.items():
            if type(facts[name]) not in kinds:
                raise ValueError(f"{name} is {facts[name]!r}")
        return cls(**{name: facts[name] for name in KINDS})

    def after_step(self) -> Progress:
        return replace(self, step=self.step + 1)

    def after_epoch(self, train: Train, values: Mapping[str, Mapping[str, float]]) -> Progress:
        """The next epoch's start, given the metrics of this one by split."""
        then = replace(self, epoch=self.epoch + 1)
        if train.best is not None:
            value = lookup(train.best, values)
            if better(train.best, value, worst(train.best) if self.best is None else self.best):
                then = replace(then, best=value, best_step=self.step)
        return then._with_early_stop(train, values)

    def _with_early_stop(self, train: Train, values: Mapping[str, Mapping[str, float]]) -> Progress:
        stop = train.early_stop
        if stop is None:
            return self
        value = lookup(stop.metric, values)
        reached = stop.at is not None and (value == stop.at or better(stop.metric, value, stop.at))
        improved = better(stop.metric, value, worst(stop.metric) if self.watched is None else self.watched)
        waited = 0 if improved else self.waited + 1
        enough = reached or (stop.patience is not None and waited >= stop.patience)
        return replace(self, watched=value if improved else self.watched, waited=waited, enough=enough)


KINDS: dict[str, tuple[type, ...]] = {
    "epoch": (int,),
    "step": (int,),
    "enough": (bool,),
    "best": (float, int, type(None)),
    "best_step": (int, type(None)),
    "watched": (float, int, type(None)),
    "waited": (int,),
}


def lookup(metric: str, values: Mapping[str, Mapping[str, float]]) -> float:
    """The value of `split.metric`, or of a metric of the training data."""
    split, dot, name = metric.partition(".")
    return values[split][name] if dot and split in values else values[TRAIN][metric]
