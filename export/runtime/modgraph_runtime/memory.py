"""How much memory there is, so that a file which would need more is told before it is read."""

from __future__ import annotations

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
        reason = f"it needs {in_words(needed)} of memory, and {in_words(free)} are free"
        raise OSError(errno.ENOMEM, reason)


def free_memory() -> int | None:
    """The bytes that this process could take, as far as the system tells: what is free, and what it is allowed."""
    known = [number for number in (_available(), *map(_limit, LIMITS)) if number is not None]
    return min(known, default=None)


def in_words(count: int) -> str:
    """A number of bytes, for a message."""
    size, unit = float(count), "bytes"
    for unit in ("bytes", "KB", "MB", "GB", "TB", "PB"):
        if size < 1000 or unit == "PB":
            break
        size /= 1000
    return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"


def _available() -> int | None:
    if not MEMINFO.exists():
        return _installed()
    lines = (line.split() for line in MEMINFO.read_text().splitlines())
    return next((int(words[1]) * 1024 for words in lines if words[0] == "MemAvailable:"), None)


def _installed() -> int | None:
    """All memory of the machine, where it does not tell how much of it is free."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _limit(path: Path) -> int | None:
    """What a container may take in all."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # there is none, or it is "max"
        return None
