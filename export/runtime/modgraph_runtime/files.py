"""Opens ordinary files without waiting, and writes files completely or not at all; measures memory. Needs only
Python."""

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
except ImportError:  # Windows cannot lock; leftovers stay there
    fcntl = None  # type: ignore[assignment]

PREFIX, SUFFIX = ".modgraph-", ".partial"
SPECIAL = {stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}


def open_file(path: str | Path) -> IO[bytes]:
    """Open an ordinary file for reading. Raises `OSError`, also for a folder, pipe, device or socket, which may
    never end."""
    _refuse_special(Path(path).stat())
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        _refuse_special(os.fstat(handle))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def explain_error(error: BaseException) -> str:
    """Explain in a line why a file could not be read or written."""
    if isinstance(error, MemoryError) and not str(error):
        return "memory does not hold it"
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    line = str(reason).splitlines()[0]
    return line if line[:2].isupper() else line[:1].lower() + line[1:]


@contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """Yield a new file that replaces `path` when the block ends. If the block fails, nothing has changed.

    Its `name` is a path next to the target. Symbolic links are followed, permissions stay, and leftovers of killed
    writers are removed. Raises `OSError`, also for a write-protected file.
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
    """Read the permissions of a file to replace; None if it does not exist."""
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
    """Create a new file that is locked while its process lives."""
    while True:
        file = (folder / f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}").open("x+b")
        _lock(file)
        if os.fstat(file.fileno()).st_nlink:  # another writer may have removed it before it was locked
            return file
        file.close()


def _lock(file: IO[bytes], wait: bool = True) -> bool:
    """Lock a file, and return whether this process owns it. Without locks in the file system no process does."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def is_partial(name: str) -> bool:
    """Whether a writer is writing this file, or was killed and left it."""
    return name.startswith(PREFIX) and name.endswith(SUFFIX)


def _clear(folder: Path) -> None:
    """Remove the files of killed writers, which no process locks."""
    with contextlib.suppress(PermissionError):  # the user may be allowed to write to a folder, but not to list it
        for path in [*folder.glob(f"{PREFIX}*{SUFFIX}")]:
            with contextlib.suppress(OSError), path.open("rb") as file:
                if _lock(file, wait=False):
                    path.unlink()


def _sync(folder: Path) -> None:
    """Make a rename survive a power failure, if the file system can."""
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

SMALL = 2**20  # bytes that are always available
MEMINFO = Path("/proc/meminfo")
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def refuse_beyond_memory(needed: int) -> None:
    """Raise `OSError` if this process cannot have so many bytes."""
    free = free_memory() if needed > SMALL else None
    if free is not None and needed > free:
        raise OSError(errno.ENOMEM, f"it needs {format_bytes(needed)} of memory, and {format_bytes(free)} are free")


def free_memory() -> int | None:
    """Measure the bytes that this process may still use; None where the system does not say.

    It is the free memory, or all of the machine's, within the limits of a container.
    """
    known: list[int] = []
    if MEMINFO.exists():
        lines = (line.split() for line in MEMINFO.read_text().splitlines())
        known += [int(words[1]) * 1024 for words in lines if words[0] == "MemAvailable:"]
    else:
        with contextlib.suppress(AttributeError, OSError, ValueError):
            known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in LIMITS:
        with contextlib.suppress(OSError, ValueError):  # the file is missing, or contains "max"
            known.append(int(path.read_text()))
    return min(known, default=None)


def format_bytes(count: int) -> str:
    """Format a number of bytes with a unit."""
    size, units = float(count), ["bytes", "KB", "MB", "GB", "TB", "PB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        del units[0]
    return f"{size:,.0f} bytes" if units[0] == "bytes" else f"{size:,.1f} {units[0]}"
