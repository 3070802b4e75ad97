"""What a sweep reports while it goes on: a line for each point that has ended, and the time left."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from modgraph.log import log

LINE_EVERY = 20.0  # seconds
MINUTE, HOUR, DAY = 60, 3600, 86400
PREFERRED = "accuracy"


@dataclass
class Progress:
    """Counts points, `done` of `total`, which `jobs` processes train."""

    total: int
    done: int
    jobs: int
    seconds: list[float] = field(default_factory=list)
    last_line: float = field(default_factory=time.monotonic)

    def finish(self, run: str, metric: str, value: float | None, seconds: float, note: str = "") -> None:
        """Report that a point has finished after so many seconds, with the value of a metric."""
        self.seconds.append(seconds)
        measured = "" if value is None else f"{metric} {value:.4g}"
        self._count("  ".join(filter(None, (run, measured, note, self._describe_times(seconds)))))

    def fail(self, run: str, message: str) -> None:
        """Report that a point has failed."""
        self._count(f"{run}  failed: {message}")

    def report_epoch(self, run: str, epoch: int) -> None:
        """Report an epoch of a point, unless there was a line a moment ago."""
        if time.monotonic() - self.last_line >= LINE_EVERY:
            self._print(f"[{self.done}/{self.total}] {run}  epoch {epoch}")

    def _count(self, text: str) -> None:
        self.done += 1
        self._print(f"[{self.done}/{self.total}] {text}")

    def _print(self, text: str) -> None:
        self.last_line = time.monotonic()
        log.info(text)

    def _describe_times(self, seconds: float) -> str:
        left = self.total - self.done - 1
        mean = sum(self.seconds) / len(self.seconds)
        rest = f", {describe_seconds(mean * left / min(self.jobs, left))} left" if left > 0 else ""
        return f"{describe_seconds(seconds)}{rest}"


def choose_metric(metrics: Mapping[str, Any]) -> str:
    """Choose the metric of a line: an accuracy on test data, else the first metric of a split."""
    known = [name for name, value in metrics.items() if "." in name and isinstance(value, int | float)]
    return next((name for name in known if name.rpartition(".")[2] == PREFERRED), next(iter(known), ""))


def describe_seconds(seconds: float) -> str:
    """Describe a duration by its two largest units."""
    if seconds < MINUTE:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    if seconds < HOUR:
        return f"{seconds / MINUTE:.0f} min"
    big, small, names = (HOUR, MINUTE, ("h", "min")) if seconds < DAY else (DAY, HOUR, ("d", "h"))
    whole, rest = divmod(round(seconds / small), big // small)
    return f"{whole} {names[0]} {rest} {names[1]}" if rest else f"{whole} {names[0]}"
