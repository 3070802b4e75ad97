"""What modgraph says while it works, through Python's `logging`.

Lines for the user are INFO, cautions WARNING, and what is read, written and chosen DEBUG.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

log = logging.getLogger("modgraph")


class _Printer(logging.Handler):
    """Prints lines on stderr as it is at the time, above a progress bar if there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        bars: Any = sys.modules.get("tqdm")
        if bars is not None:
            bars.tqdm.write(record.getMessage(), file=sys.stderr)
        else:
            print(record.getMessage(), file=sys.stderr)


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
