"""Trains points of a sweep, one after another, in a process of its own: python -m modgraph.study.worker LOCK LEVEL

Tasks come as lines of JSON on stdin, and answers leave on stdout. The process ends at once when stdin does, so it never
outlives the sweep. LOCK is a file that is locked while it lives.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, TextIO

from filelock import FileLock, Timeout

from modgraph.diagnostics import ModgraphError
from modgraph.log import printing
from modgraph.metrics.metrics import better
from modgraph.store import run_directory
from modgraph.store.errors import RunBusy
from modgraph.store.journal import read_metrics
from modgraph.store.records import json_text
from modgraph.store.run_directory import STARTED, STARTING, RunDirectory
from modgraph.study.checks import refuse_changed
from modgraph.study.errors import PointChanged
from modgraph.study.folder import WAIT
from modgraph.study.point import Point
from modgraph.study.points import to_tuple
from modgraph.study.workers import EPOCH, FAILED, FINISHED, READY, STOP, STOPPED
from modgraph.training.callbacks import Callback, Epoch, Watch
from modgraph.training.engine import Engine
from modgraph.training.errors import TooLargeForMemory
from modgraph.training.run import finish, resume_run, start_run


@dataclass(frozen=True)
class Answers:
    """The way back to the sweep."""

    stream: TextIO

    def send(self, kind: str, **facts: Any) -> None:
        print(json_text({"kind": kind, **facts}), file=self.stream, flush=True)


@dataclass(frozen=True)
class Limits(Callback):
    """Reports each epoch, and stops a training whose metric is worse than the limit of its epoch."""

    answers: Answers
    metric: str = ""
    larger: bool = False
    by_epoch: Mapping[str, float] = field(default_factory=dict)

    def on_epoch(self, epoch: Epoch) -> bool:
        self.answers.send(EPOCH, epoch=epoch.epoch)
        return self.is_worse(epoch.epoch, epoch.metrics)

    def is_worse(self, epoch: int, metrics: Mapping[str, float]) -> bool:
        limit, value = self.by_epoch.get(str(epoch)), metrics.get(self.metric)
        return limit is not None and value is not None and better(limit, value, self.larger)

    def check_last_epoch(self, engine: Engine) -> None:
        """Stop a training that had to stop after the epoch that its checkpoint keeps."""
        if self.by_epoch and self.is_worse(engine.progress.epoch, read_latest(engine)):
            engine.stopped = True


def receive_tasks() -> SimpleQueue[dict[str, Any] | None]:
    """Return the queue in which tasks arrive, None at the end. The process ends where the sweep has ended."""
    tasks: SimpleQueue[dict[str, Any] | None] = SimpleQueue()

    def read() -> None:
        try:
            for line in sys.stdin:
                task = json.loads(line)
                tasks.put(None if task == STOP else task)
                if task == STOP:
                    signal.raise_signal(signal.SIGINT)
        finally:  # where a kill cut off a task too
            os._exit(0)  # nobody waits for what is being trained

    Thread(target=read, daemon=True).start()
    return tasks


def train_point(answers: Answers, task: Mapping[str, Any]) -> bool:
    """Train one point as `modgraph train` does, or go on with its training, and answer what came of it. Returns whether
    the process can go on: one that ran out of memory leaves the next point to another."""
    began = time.monotonic()
    limits = Limits(answers, **(task["limits"] or {}))
    try:
        with _open(task, Watch([limits])) as engine:
            limits.check_last_epoch(engine)
            metrics = finish(engine)
    except ModgraphError as error:
        found = error.diagnostics
        text, codes = "; ".join(each.text() for each in found), [each.code for each in found]
        is_kept = not any(isinstance(each, RunBusy | PointChanged) for each in found)
        answers.send(FAILED, codes=codes, message=text, is_kept=is_kept)
        return not any(isinstance(each, TooLargeForMemory) for each in found)
    answers.send(FINISHED, metrics=metrics, latest=read_latest(engine), seconds=time.monotonic() - began)
    return True


def read_latest(engine: Engine) -> dict[str, Any]:
    """Read the metrics of the last epoch by `split.metric`."""
    lines = [line for line in read_metrics(engine.directory) if line["step"] == engine.progress.step]
    return {f"{line['split']}.{name}": value for line in lines for name, value in line.items()}


def _open(task: Mapping[str, Any], watch: Watch) -> AbstractContextManager[Engine]:
    directory = RunDirectory(Path(task["out"]))
    status = directory.read_record()["status"] if directory.record.exists() else STARTING
    if status == run_directory.FINISHED:  # before its last epoch, by the rule of a search
        directory.mark(STARTED, logs=None)
    if status != STARTING:
        return resume_run(directory.path, watch=watch)
    point = read_point(task["point"])
    refuse_changed(point)
    return start_run(point.spec, point.recipe, point.overrides, directory.path, watch=watch)


def read_point(task: Mapping[str, Any]) -> Point:
    """Read a point from a task. JSON has lists where a recipe has tuples."""
    recipe, overrides = task["recipe"], to_tuple(task["overrides"])
    recipe = Path(recipe) if isinstance(recipe, str) else recipe
    return Point(**{**task, "spec": Path(task["spec"]), "recipe": recipe, "overrides": overrides})


def main(lock: str, level: str) -> None:
    """Work until the sweep ends, or asks to stop. Raises `SystemExit` where another process has the lock for long."""
    answers = Answers(os.fdopen(os.dup(1), "w"))
    os.dup2(2, 1)  # what libraries print is no answer
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a sweep in the background of a script ignores
    tasks, own = receive_tasks(), FileLock(lock, timeout=WAIT)
    try:
        own.acquire()  # for as long as the process lives
    except Timeout:
        raise SystemExit(f'another process has locked "{lock}" for more than {WAIT:g} s') from None
    with printing(int(level)):
        answers.send(READY)
        try:
            while (task := tasks.get()) is not None and train_point(answers, task):
                pass
        except KeyboardInterrupt:
            answers.send(STOPPED)


if __name__ == "__main__":
    main(*sys.argv[1:])
