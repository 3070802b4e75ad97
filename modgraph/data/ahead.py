"""What is read while something else is computed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import TypeVar

T = TypeVar("T")
READER = "modgraph reads ahead"  # the thread's name
AHEAD = 2  # batches that are read, or being read, before they are asked for


@contextmanager
def ahead(items: Iterator[T], reads: bool = True) -> Iterator[Iterator[T]]:
    """Within it, the items of an iterator as a thread makes them, some before they are asked for; without `reads` as
    they are asked for. What making one raises comes in its turn; the thread has ended when this ends."""
    if not reads:
        yield items
        return
    made: SimpleQueue[tuple[str, T | BaseException | None]] = SimpleQueue()
    asked, ended = Semaphore(AHEAD), False

    def work() -> None:
        while asked.acquire() and not ended:
            try:
                made.put(("item", next(items)))
            except StopIteration:
                made.put(("end", None))
                return
            except BaseException as error:
                made.put(("error", error))
                return

    def taken() -> Iterator[T]:
        while True:
            kind, value = made.get()
            if isinstance(value, BaseException) and kind == "error":
                raise value
            if kind == "end":
                return
            asked.release()
            yield value  # type: ignore[misc]

    thread = Thread(target=work, name=READER, daemon=True)
    thread.start()
    try:
        yield taken()
    finally:
        ended = True
        asked.release()
        thread.join()
