"""Commands in processes of their own, forked: torch is imported already."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress

CLOSED = -1
BROKEN_OFF = 99  # the exit code of work that ended in an exception


def in_a_child(work: Callable[[], int], stdout: int, stderr: int) -> int:
    """The exit code of some work in a process with these standard streams, of which some may be `CLOSED`."""
    return os.waitstatus_to_exitcode(os.waitpid(begun_in_a_child(work, stdout, stderr), 0)[1])


def begun_in_a_child(work: Callable[[], int], stdout: int, stderr: int) -> int:
    """The process in which some work is being done."""
    child = os.fork()
    if child:
        return child
    code = BROKEN_OFF
    with suppress(BaseException):
        for descriptor, stream in ((1, stdout), (2, stderr)):
            os.close(descriptor) if stream == CLOSED else os.dup2(stream, descriptor)
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        code = work()
    os._exit(code)


def output_of_child(work: Callable[[], int]) -> tuple[int, str]:
    """The exit code of some work, and what it printed: less than a pipe holds."""
    reader, writer = os.pipe()
    code = in_a_child(work, writer, writer)
    os.close(writer)
    with os.fdopen(reader) as printed:
        return code, printed.read()
