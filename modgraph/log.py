"""Progress messages of modgraph, through Python's `logging`.

Lines for the user are INFO, cautions WARNING, and what is read, written and chosen DEBUG.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TextIO

log = logging.getLogger("modgraph")


class _Printer(logging.Handler):
    """Prints lines on stderr as it is at the time, above a progress bar if there is one. What was read twice is said
    once."""

    def __init__(self) -> None:
        super().__init__()
        self.details: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno == logging.DEBUG:
            if record.getMessage() in self.details:
                return
            self.details.add(record.getMessage())
        bars: Any = sys.modules.get("tqdm")
        with nullcontext() if bars is None else bars.tqdm.external_write_mode(file=terminal()):
            print(record.getMessage(), file=sys.stderr, flush=True)


def terminal() -> TextIO:
    """Standard error for progress bars, whose codes move the cursor: commands print no such codes else."""
    stream: TextIO = getattr(sys.stderr, "stream", sys.stderr)
    return stream


@contextmanager
def printing(level: int = logging.INFO) -> Iterator[None]:
    """Within it, what is said at this level or above is printed on stderr."""
    printer, before = _Printer(), log.level
    log.addHandler(printer)
    log.setLevel(level)
    try:
        yield
    finally:
        log.removeHandler(printer)
        log.setLevel(before)


@contextmanager
def printing_progress(quiet: bool = False) -> Iterator[None]:
    """Within it, lines for the user are printed on stderr in Python programs too, unless `quiet`.

    Where `logging` is configured to take these lines, or the logger's own level drops them, that holds instead.
    """
    before = log.level
    if quiet or before > logging.INFO or (log.isEnabledFor(logging.INFO) and log.hasHandlers()):
        yield
        return
    printer, lowest = _Printer(), log.getEffectiveLevel()

    def take(record: logging.LogRecord) -> bool:
        """Print a record, or leave to the handlers of the program what they would get anyway."""
        is_left = record.levelno >= lowest and log.hasHandlers()
        return is_left or not printer.handle(record)

    log.addFilter(take)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeFilter(take)
        log.setLevel(before)
