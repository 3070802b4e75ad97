"""How much work is done, counted: the same on any machine, however fast it is and whatever else it does."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from cProfile import Profile
from typing import Any

HANGS = 300  # seconds of processor time after which what is counted is taken for endless


class Work:
    """The calls of functions, Python's own included, that were made while it was counted."""

    calls = 0


@contextmanager
def count_calls() -> Iterator[Work]:
    """Counts what is called within. A loop that never calls anything, or never ends, is interrupted at last."""
    work, profile = Work(), Profile(subcalls=False)
    before = signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, HANGS)
    profile.enable()
    try:
        yield work
    finally:
        profile.disable()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        work.calls = sum(entry.callcount for entry in profile.getstats())


def _give_up(*_: Any) -> None:
    raise AssertionError(f"no end after {HANGS} s of processor time")
