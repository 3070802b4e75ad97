"""Ordinary files: opened without waiting, and written whole or not at all; and how much memory there is, so that a file
which would need more is told before it is read. Needs nothing but Python."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows: nothing is cleared away there
    fcntl = None  # type: ignore[assignment]

PREFIX, SUFFIX = ".modgraph-", ".partial"
SPECIAL = {stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}


def open_file(path: str | Path) -> IO[bytes]:
    """An ordinary file, opened to be read. Raises `OSError`, also for a folder, and for a pipe, a device or a socket:
    reading these may never end."""
    _refuse_special(Path(path).stat())
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        _refuse_special(os.fstat(handle))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def reason_of(error: BaseException) -> str:
    """Why a file could not be read or written, in a line for a message."""
    if isinstance(error, MemoryError) and not str(error):
        return "memory does not hold it"
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    line = str(reason).splitlines()[0]
    return line if line[:2].isupper() else line[:1].lower() + line[1:]


@contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """A new file, which takes the place of `path` when the block ends; where the block fails, nothing has changed.

    Its `name` is a path beside the target. A symbolic link is followed, permissions stay. What writers that were
    killed have left in the folder is removed. Raises `OSError`, also for a file that is write-protected.
    """
    target = Path(os.path.realpath(path))
    permissions = _permissions(target)
    _clear(target.parent)
    file = _new(target.parent)
    try:
        if permissions is not None:
            Path(file.name).chmod(permissions)
        yield file
        file.flush()
        os.fsync(file.fileno())
        if fcntl is None:
            file.close()  # Windows renames no file that is open
        Path(file.name).replace(target)
        _sync(target.parent)
    finally:
        file.close()
        Path(file.name).unlink(missing_ok=True)


def _refuse_special(status: os.stat_result) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if kind != stat.S_IFREG:
        raise OSError(errno.EINVAL, f"it is {SPECIAL.get(kind, 'something else')}, not a file")


def _permissions(target: Path) -> int | None:
    """The permissions of a file that may be replaced; None if there is none."""
    try:
        status = target.stat()
    except FileNotFoundError:
        return None
    _refuse_special(status)
    permissions = stat.S_IMODE(status.st_mode)
    if not permissions & 0o222 or not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "it is write-protected")
    return permissions


def _new(folder: Path) -> IO[bytes]:
    """A new file, locked while its process lives."""
    while True:
        file = (folder / f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}").open("x+b")
        _lock(file)
        if os.fstat(file.fileno()).st_nlink:  # else another writer has cleared it away before it was locked
            return file
        file.close()


def _lock(file: IO[bytes], wait: bool = True) -> bool:
    """Whether a file is now this process's own. Where a file system has no locks nobody owns one."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def is_partial(name: str) -> bool:
    """Whether a file is one that a writer is at work on, or has left when it was killed."""
    return name.startswith(PREFIX) and name.endswith(SUFFIX)


def _clear(folder: Path) -> None:
    """Remove what writers left in a folder when they were killed: files of theirs that nobody owns."""
    with contextlib.suppress(PermissionError):  # of folders that may be written to, but not listed
        for path in [*folder.glob(f"{PREFIX}*{SUFFIX}")]:
            with contextlib.suppress(OSError), path.open("rb") as file:
                if _lock(file, wait=False):
                    path.unlink()


def _sync(folder: Path) -> None:
    """Make a rename outlast a loss of power, where the file system can."""
    with contextlib.suppress(PermissionError, AttributeError):  # Windows has no `O_DIRECTORY`
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            os.close(handle)


# ------------------------------------------------------------ memory

SMALL = 2**20  # bytes that there always are
MEMINFO = Path("/proc/meminfo")
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def refuse_beyond_memory(needed: int) -> None:
    """Raises `OSError` where so many bytes are more than this process could take."""
    free = free_memory() if needed > SMALL else None
    if free is not None and needed > free:
        raise OSError(errno.ENOMEM, f"it needs {format_bytes(needed)} of memory, and {format_bytes(free)} are free")


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


def format_bytes(count: int) -> str:
    """A number of bytes, for a message."""
    size, units = float(count), ["bytes", "KB", "MB", "GB", "TB", "PB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        del units[0]
    return f"{size:,.0f} bytes" if units[0] == "bytes" else f"{size:,.1f} {units[0]}"
