"""What can go wrong around a command, whatever it does: memory, files, the current folder."""

from __future__ import annotations

import errno
import gc
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from modgraph.diagnostics import Diagnostic, ModgraphError

INTERRUPTED = 130  # the exit code of what Ctrl-C ends, as shells have it
OF_ALLOCATORS = ("can't allocate memory", "not enough memory", "out of memory")  # as torch's say it
BYTES = re.compile(r"tried to allocate (\d+) bytes")  # in torch's message for the processor's memory


class OutOfMemory(Diagnostic, code="MG130"):
    """The machine, or the device that the command uses, has less memory than this takes."""

    message = "out of memory{reason}"
    help = "lower the batch (-s train.batch=…), use a smaller model or less data, or a machine with more memory"
    reason = ""


class SystemRefuses(Diagnostic, code="MG131"):
    """The operating system refuses a file, a folder or a stream: a name is too long, a disk is full."""

    message = "the system refuses{what}: {reason}"
    help = "check its name, its permissions, and the free space"


class NoCurrentFolder(Diagnostic, code="MG132"):
    """The folder in which the command started was deleted, so no relative path means anything."""

    message = "the current folder no longer exists"
    help = "go to one that exists: cd DIR"


def message_of(error: Exception) -> Diagnostic | None:
    """The message of a failure that the surroundings of a command caused; None for any other."""
    from modgraph_runtime.files import format_bytes, free_memory

    from modgraph.files import explain_error

    allocator = isinstance(error, RuntimeError) and any(words in str(error).lower() for words in OF_ALLOCATORS)
    if isinstance(error, MemoryError) or allocator:
        asked, free = BYTES.search(str(error)), free_memory()
        if asked is None or free is None:
            return OutOfMemory()
        return OutOfMemory(reason=f": {format_bytes(int(asked[1]))} needed at once, {format_bytes(free)} free")
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return OutOfMemory(reason=f": {explain_error(error)}")
    if isinstance(error, OSError):
        return SystemRefuses(what="" if error.filename is None else f' "{error.filename}"', reason=explain_error(error))
    return None


def check_folder() -> None:
    """Raises `ModgraphError` if there is no current folder."""
    try:
        Path.cwd()
    except FileNotFoundError as error:
        raise ModgraphError([NoCurrentFolder()]) from error


@contextmanager
def warnings_that_only_warn() -> Iterator[None]:
    """Whoever asks Python to make warnings errors (`-W error`) means code of their own: it would break libraries."""
    with warnings.catch_warnings():
        if any(action == "error" for action, *_ in warnings.filters):
            warnings.simplefilter("default")
        yield


@contextmanager
def imports_frozen(library: str = "torch") -> Iterator[None]:
    """What is imported here stays until the process ends: no search for garbage looks at it, neither now nor later.

    Where the library was imported before, this is not the beginning of a process, and nothing is kept.
    """
    if library in sys.modules:
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
