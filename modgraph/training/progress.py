"""The progress of a training, as plain facts for checkpoints, and its log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from statistics import mean
from typing import Any

from tqdm import tqdm

from modgraph.data import TRAIN
from modgraph.extras import find_missing
from modgraph.files import writing
from modgraph.log import log, terminal
from modgraph.metrics.metrics import better
from modgraph.store.checkpoint import Checkpoint
from modgraph.store.journal import Journal
from modgraph.store.run_directory import RunDirectory
from modgraph.store.seconds import Segment
from modgraph.training.algorithms.algorithm import Place
from modgraph.training.sections import Train, names_in

BAR = "{desc}  {percentage:3.0f}%|{bar:20}|  {rate_noinv_fmt}  {remaining} left"
# without smoothing, so that the time left includes that of measurements between epochs
STYLE: dict[str, Any] = {"bar_format": BAR, "unit": " steps", "smoothing": 0}
BAR_EVERY, LINE_EVERY = 0.2, 20.0  # seconds
NUMBER = (float, int, type(None))
KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("epoch", "step", "epochs_before", "steps_before", "waited"), (int,)),
    **{"at": (dict,), "enough": (bool,), "best": NUMBER, "best_step": (int, type(None)), "monitored": NUMBER},
}


@dataclass(frozen=True)
class Progress(Place):
    """A place, and the epochs and steps done before its phase; of this phase the best value of the recipe's metric and
    its step, and the number of epochs since the monitored metric of early stopping improved."""

    epochs_before: int = 0
    steps_before: int = 0
    enough: bool = False
    best: float | None = None
    best_step: int | None = None
    monitored: float | None = None
    waited: int = 0

    def facts(self) -> dict[str, Any]:
        """Return the facts that a checkpoint keeps in addition to epoch and step."""
        return {name: value for name, value in asdict(self).items() if name not in ("epoch", "step")}

    @classmethod
    def read(cls, checkpoint: Checkpoint) -> Progress:
        """Read the progress from a checkpoint. Raises `KeyError` or `ValueError` if it is invalid."""
        facts = {**checkpoint.facts, "epoch": checkpoint.epoch, "step": checkpoint.step}
        for name, kinds in KINDS.items():
            if type(facts[name]) not in kinds:
                raise ValueError(f"{name} is {facts[name]!r}")
        return cls(**{name: facts[name] for name in KINDS})

    @property
    def epoch_of_phase(self) -> int:
        return self.epoch - self.epochs_before

    @property
    def step_of_phase(self) -> int:
        return self.step - self.steps_before

    def close_epoch(
        self, train: Train, values: Mapping[str, Mapping[str, float]], larger_is_better: Mapping[str, bool]
    ) -> Progress:
        """Return the progress at the start of the next epoch, given the metrics of this one by split, and which way
        metrics improve."""
        then = replace(self, epoch=self.epoch + 1)
        if train.best is not None:
            value, larger = lookup(train.best, values), larger_is_better[names_in(train.best)[0]]
            if better(value, self.best, larger):
                then = replace(then, best=value, best_step=self.step)
        stop = train.early_stop
        if stop is None:
            return then
        value, larger = lookup(stop.metric, values), larger_is_better[names_in(stop.metric)[0]]
        reached = stop.at is not None and (value == stop.at or better(value, stop.at, larger))
        improved = better(value, self.monitored, larger)
        waited = 0 if improved else self.waited + 1
        enough = reached or (stop.patience is not None and waited >= stop.patience)
        return replace(then, monitored=value if improved else self.monitored, waited=waited, enough=enough)


def lookup(metric: str | Sequence[str], values: Mapping[str, Mapping[str, float]]) -> float:
    """Return the value of `split.metric`, or of a metric of the training data; of several their mean."""
    found = []
    for each in names_in(metric):
        split, dot, name = each.partition(".")
        found.append(values[split][name] if dot and split in values else values[TRAIN][each])
    return mean(found)


class Log:
    """Writes the metrics of a run. `since` is the step from which it continues: TensorBoard drops later events."""

    def __init__(self, directory: RunDirectory, since: int) -> None:
        self.lines = Journal(directory.metrics)
        self.folder = directory.tensorboard
        self.since = since
        if find_missing("tensorboard"):
            log.info(
                "metrics go to metrics.jsonl; to TensorBoard too after: pip install 'modgraph-compiler[tensorboard]'"
            )

    @cached_property
    def events(self) -> Any | None:
        """TensorBoard's file, created with the first value; each resumed training has its own."""
        if find_missing("tensorboard"):
            return None
        from torch.utils.tensorboard import SummaryWriter

        return SummaryWriter(str(self.folder), purge_step=self.since + 1)

    def write(self, split: str, epoch: int, step: int, values: dict[str, float], tags: Mapping[str, Any]) -> None:
        """Write a line of a split's metrics, with `tags` such as the phase in front."""
        self.lines.add({"step": step, "epoch": epoch, "split": split, **tags, **values})
        self._write_events(split, step, values)
        # metrics of each module, such as its use, go to files only
        plain = {name: value for name, value in values.items() if not name.rpartition(".")[2].isdigit()}
        text = "  ".join(f"{name} {value:.4g}" for name, value in plain.items())
        where = "".join(f"{name} {value}  " for name, value in tags.items())
        log.info(f"{where}epoch {epoch:3}  {split}  {text}")

    def _write_events(self, split: str, step: int, values: Mapping[str, float]) -> None:
        if self.events is None:
            return
        with writing(self.folder):
            for name, value in values.items():
                self.events.add_scalar(f"{split}/{name}", value, step)
            self.events.flush()  # else it waits for two minutes; a kill would lose lines that a checkpoint counts

    def close(self) -> None:
        events = vars(self).get("events")  # creates no file
        if events is not None:
            with writing(self.folder):
                events.close()


class StepMeter:
    """Displays the steps of a phase, `done` of `total`: loss, steps per second, and time left.

    A terminal has a progress bar, other output a line from time to time.
    """

    def __init__(self, total: int, done: int, epochs: int, quiet: bool = False) -> None:
        self.epochs, self.quiet = epochs, quiet or not log.isEnabledFor(logging.INFO)
        hidden = self.quiet or not terminal().isatty()
        self.bar = tqdm(total=total, initial=done, leave=False, disable=hidden, file=terminal(), **STYLE)
        self.done, self.total, self.first = done, total, done
        self.began = self.said = time.monotonic()

    def advance(self, epoch: int, loss: Callable[[], float]) -> None:
        """Count a step of an epoch, from 1. The loss is fetched only when it is displayed."""
        self.done, now = self.done + 1, time.monotonic()
        if now - self.said >= (LINE_EVERY if self.bar.disable else BAR_EVERY):
            self.said = now
            place, value = f"epoch {epoch}/{self.epochs}", "" if self.quiet else f"loss {loss():.4g}"
            self.bar.set_description_str(f"{place}  {value}", refresh=False)
            if self.bar.disable and not self.quiet:
                rate = (self.done - self.first) / (now - self.began)
                left = tqdm.format_interval((self.total - self.done) / rate)
                log.info(f"{place}  step {self.done}/{self.total}  {value}  {rate:.3g} steps/s  {left} left")
        self.bar.update()

    def close(self) -> None:
        self.bar.close()


class Stopwatch:
    """Measures the wall seconds of steps. It stands still while a training validates and writes checkpoints."""

    def __init__(self) -> None:
        self.since: int | None = None  # the first step that no segment has
        self.seconds = self.began = 0.0

    def start(self, step: int) -> None:
        """Begin to measure, before a step."""
        self.since = step if self.since is None else self.since
        self.began = time.perf_counter()

    def stop(self) -> None:
        """Stop until the next start. The device must have done its steps."""
        self.seconds += time.perf_counter() - self.began

    def take(self, step: int) -> Segment | None:
        """Return the segment that ends with this many steps, and begin the next; None if no step was measured."""
        since, seconds, self.since, self.seconds = self.since, self.seconds, None, 0.0
        return None if since is None or since == step else Segment(since, step, seconds)
