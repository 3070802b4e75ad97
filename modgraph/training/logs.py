"""What a training says: lines of JSON, TensorBoard events, a bar on a terminal or plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, TypeVar

from tqdm import tqdm

from modgraph.files import writing
from modgraph.store.journal import Journal
from modgraph.store.run_directory import RunDirectory

T = TypeVar("T")


class Log:
    """Writes metrics of a run. `since` is the step it goes on from: what was logged after it is cut away."""

    def __init__(self, directory: RunDirectory, since: int) -> None:
        self.lines = Journal(directory.metrics)
        self.lines.cut("step", since + 1)
        self.folder = directory.tensorboard
        self.since = since

    @cached_property
    def events(self) -> Any:
        """TensorBoard's file, made with the first value: one for each time that a run was taken up and got on."""
        from torch.utils.tensorboard import SummaryWriter

        return SummaryWriter(str(self.folder), purge_step=self.since + 1)

    def write(self, split: str, epoch: int, step: int, values: dict[str, float], told: Mapping[str, Any]) -> None:
        """A line of a split's metrics; `told` stands in front of them, such as the phase that they are of."""
        self.lines.add({"step": step, "epoch": epoch, "split": split, **told, **values})
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


def progress(items: Iterator[T], total: int, title: str, quiet: bool = False) -> Iterator[T]:
    """The items, so many in all, with a bar if this is a terminal."""
    hidden = quiet or not sys.stderr.isatty()
    yield from tqdm(items, desc=title, total=total, leave=False, disable=hidden, file=sys.stderr)
