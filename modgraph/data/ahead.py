"""What is read while something else is computed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
READER = "modgraph reads ahead"  # the thread's name begins so
AHEAD = 2  # batches that are read, or being read, before they are asked for
END: Any = object()


@contextmanager
def ahead(items: Iterator[T], reads: bool = True) -> Iterator[Iterator[T]]:
    """Within it, the items of an iterator as a thread makes them, some before they are asked for; without `reads` as
    they are asked for. What making one raises comes in its turn; the thread has ended when this ends."""
    if not reads:
        yield items
        return
    reader = ThreadPoolExecutor(1, READER)
    made = deque(reader.submit(next, items, END) for _ in range(AHEAD))

    def taken() -> Iterator[T]:
        while (item := made.popleft().result()) is not END:
            made.append(reader.submit(next, items, END))
            yield item

    try:
        yield taken()
    finally:
        reader.shutdown(cancel_futures=True)
