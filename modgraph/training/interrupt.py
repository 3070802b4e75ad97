"""Ctrl-C in a training: the step that is under way ends and is kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def on_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """Within it, the first Ctrl-C calls `stop`, and the second raises `KeyboardInterrupt` as ever. Other threads than
    the main one hear of no Ctrl-C, and a handler of somebody else stays."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
        yield
        return

    def handle(*_: Any) -> None:
        signal.signal(signal.SIGINT, before)
        stop()

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
