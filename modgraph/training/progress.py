"""How far a training has come, as plain facts that a checkpoint keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from statistics import mean
from typing import Any

from modgraph.data import TRAIN
from modgraph.metrics.metrics import better, worst
from modgraph.store.checkpoint import Checkpoint
from modgraph.training.sections import EarlyStop, Train


@dataclass(frozen=True)
class Progress:
    """Epochs and steps done in all, where in its course the training is, and those done before the phase there began;
    then of this phase the best value of the metric that is asked for and its step, and epochs since the last better
    one of that which the early stop monitors.
    """

    epoch: int = 0
    step: int = 0
    at: Mapping[str, Any] = field(default_factory=dict)
    epochs_before: int = 0
    steps_before: int = 0
    enough: bool = False
    best: float | None = None
    best_step: int | None = None
    monitored: float | None = None
    waited: int = 0

    def facts(self) -> dict[str, Any]:
        """What a checkpoint keeps besides epoch and step."""
        return {name: value for name, value in asdict(self).items() if name not in ("epoch", "step")}

    @classmethod
    def read(cls, checkpoint: Checkpoint) -> Progress:
        """The progress that a checkpoint tells. Raises `KeyError` or `ValueError` if it cannot be."""
        facts = {**checkpoint.facts, "epoch": checkpoint.epoch, "step": checkpoint.step}
        for name, kinds in KINDS.items():
            if type(facts[name]) not in kinds:
                raise ValueError(f"{name} is {facts[name]!r}")
        return cls(**{name: facts[name] for name in KINDS})

    @property
    def epoch_of_phase(self) -> int:
        """Epochs done in this phase."""
        return self.epoch - self.epochs_before

    @property
    def step_of_phase(self) -> int:
        """Steps done in this phase."""
        return self.step - self.steps_before

    def next_phase(self, at: Mapping[str, Any]) -> Progress:
        """The start of the next phase, which stands there in the course."""
        return Progress(self.epoch, self.step, at, self.epoch, self.step)

    def after_step(self) -> Progress:
        return replace(self, step=self.step + 1)

    def after_epoch(
        self, train: Train, values: Mapping[str, Mapping[str, float]], larger_is_better: Mapping[str, bool]
    ) -> Progress:
        """The next epoch's start, given the metrics of this one by split, and which way those that are asked for
        improve."""
        then = replace(self, epoch=self.epoch + 1)
        if train.best is not None:
            value, larger = lookup(train.best, values), larger_is_better[names_in(train.best)[0]]
            if better(value, worst(larger) if self.best is None else self.best, larger):
                then = replace(then, best=value, best_step=self.step)
        stop = train.early_stop
        return then if stop is None else then._with_early_stop(stop, values, larger_is_better[names_in(stop.metric)[0]])

    def _with_early_stop(self, stop: EarlyStop, values: Mapping[str, Mapping[str, float]], larger: bool) -> Progress:
        value = lookup(stop.metric, values)
        reached = stop.at is not None and (value == stop.at or better(value, stop.at, larger))
        improved = better(value, worst(larger) if self.monitored is None else self.monitored, larger)
        waited = 0 if improved else self.waited + 1
        enough = reached or (stop.patience is not None and waited >= stop.patience)
        return replace(self, monitored=value if improved else self.monitored, waited=waited, enough=enough)


KINDS: dict[str, tuple[type, ...]] = {
    "epoch": (int,),
    "step": (int,),
    "at": (dict,),
    "epochs_before": (int,),
    "steps_before": (int,),
    "enough": (bool,),
    "best": (float, int, type(None)),
    "best_step": (int, type(None)),
    "monitored": (float, int, type(None)),
    "waited": (int,),
}


def names_in(metric: str | tuple[str, ...]) -> tuple[str, ...]:
    """The metrics that a key of a recipe names, one or several."""
    return (metric,) if isinstance(metric, str) else metric


def lookup(metric: str | tuple[str, ...], values: Mapping[str, Mapping[str, float]]) -> float:
    """The value of `split.metric`, or of a metric of the training data; of several their mean."""
    return mean(_of_one(name, values) for name in names_in(metric))


def _of_one(metric: str, values: Mapping[str, Mapping[str, float]]) -> float:
    split, dot, name = metric.partition(".")
    return values[split][name] if dot and split in values else values[TRAIN][metric]
