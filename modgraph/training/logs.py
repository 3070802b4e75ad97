"""What a training says: lines of JSON, TensorBoard events, a bar on a terminal or plain lines elsewhere."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from tqdm import tqdm

from modgraph.files import write_atomically, writing
from modgraph.store.records import json_text
from modgraph.store.run_directory import RunDirectory

T = TypeVar("T")


class Log:
    """Writes metrics of a run. `since` is the step it goes on from: what was logged after it is cut away."""

    def __init__(self, directory: RunDirectory, since: int) -> None:
        self.path = directory.metrics
        write_atomically(self.path, "".join(_kept(self.path, since)).encode())
        self.folder = directory.tensorboard
        self.since = since

    @cached_property
    def events(self) -> Any:
        """TensorBoard's file, made with the first value: one for each time that a run was taken up and got on."""
        from torch.utils.tensorboard import SummaryWriter

        return SummaryWriter(str(self.folder), purge_step=self.since + 1)

    def write(self, split: str, epoch: int, step: int, values: dict[str, float], told: Mapping[str, Any]) -> None:
        """A line of a split's metrics; `told` stands in front of them, such as the phase that they are of."""
        record = {"step": step, "epoch": epoch, "split": split, **told, **values}
        with writing(self.path), self.path.open("a") as file:
            file.write(json_text(record) + "\n")
            file.flush()
            os.fsync(file.fileno())
        with writing(self.folder):
            for name, value in values.items():
                self.events.add_scalar(f"{split}/{name}", value, step)
            self.events.flush()  # it waits for two minutes else, and a checkpoint would count what a kill then loses
        shown = "  ".join(f"{name} {value:.4g}" for name, value in values.items() if not _numbered(name))
        where = "".join(f"{name} {value}  " for name, value in told.items())
        tqdm.write(f"{where}epoch {epoch:3}  {split}  {shown}", file=sys.stderr)

    def close(self) -> None:
        if "events" in vars(self):
            with writing(self.folder):
                self.events.close()


def _numbered(name: str) -> bool:
    """Whether a metric is one of many alike, such as the use of each module: the files have them, a line does not."""
    return name.rpartition(".")[2].isdigit()


def _kept(path: Path, since: int) -> Iterator[str]:
    """The lines up to a step; a line that was cut off in the middle is dropped."""
    if not path.exists():
        return
    for line in path.read_text().splitlines(keepends=True):
        try:
            if line.endswith("\n") and json.loads(line)["step"] <= since:
                yield line
        except (ValueError, KeyError, TypeError):
            continue


def progress(items: Iterator[T], total: int, title: str, quiet: bool = False) -> Iterator[T]:
    """The items, so many in all, with a bar if this is a terminal."""
    hidden = quiet or not sys.stderr.isatty()
    yield from tqdm(items, desc=title, total=total, leave=False, disable=hidden, file=sys.stderr)
