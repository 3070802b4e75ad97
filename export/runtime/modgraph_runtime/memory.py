"""How much memory there is, so that a file which would need more is told before it is read."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

SMALL = 2**20  # bytes that there always are
MEMINFO = Path("/proc/meminfo")
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def refuse_beyond_memory(needed: int) -> None:
    """Raises `OSError` where so many bytes are more than this process could take."""
    free = free_memory() if needed > SMALL else None
    if free is not None and needed > free:
        raise OSError(errno.ENOMEM, f"it needs {in_words(needed)} of memory, and {in_words(free)} are free")


def free_memory() -> int | None:
    """The bytes that this process could take, as far as the system tells: what is free, or else all that the machine
    has, and what a container may take."""
    known: list[int] = []
    if MEMINFO.exists():
        lines = (line.split() for line in MEMINFO.read_text().splitlines())
        known += [int(words[1]) * 1024 for words in lines if words[0] == "MemAvailable:"]
    else:
        with contextlib.suppress(AttributeError, OSError, ValueError):
            known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in LIMITS:
        with contextlib.suppress(OSError, ValueError):  # there is none, or it is "max"
            known.append(int(path.read_text()))
    return min(known, default=None)


def in_words(count: int) -> str:
    """A number of bytes, for a message."""
    size, units = float(count), ["bytes", "KB", "MB", "GB", "TB", "PB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        del units[0]
    return f"{size:,.0f} bytes" if units[0] == "bytes" else f"{size:,.1f} {units[0]}"
