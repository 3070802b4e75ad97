"""Commands in processes of their own, forked: torch is imported already.

Threads of this process are not in a child, and what they had locked stays locked there: no child is waited for for
ever.
"""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

CLOSED = -1
BROKEN_OFF = 99  # the exit code of work that ended in an exception
PATIENCE = 120.0  # seconds after which a child is taken for stuck


def in_a_child(work: Callable[[], int], stdout: int, stderr: int) -> int:
    """The exit code of some work in a process with these standard streams, of which some may be `CLOSED`."""
    (code,) = end_of(begun_in_a_child(work, stdout, stderr))
    return code


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


def end_of(*children: int, patience: float = PATIENCE) -> list[int]:
    """The exit codes of some children. Raises `AssertionError` where they do not end, and ends them: on the standard
    error of all tests, each prints where its threads are."""
    codes = wait(children, patience)
    stuck = [child for child in children if child not in codes]
    for number in (signal.SIGABRT, signal.SIGKILL):
        for child in stuck:
            if child not in codes:
                os.kill(child, number)
        codes |= wait([child for child in stuck if child not in codes], 10)
    assert not stuck, f"{len(stuck)} of {len(children)} processes have not ended within {patience:g} s"
    return [codes[child] for child in children]


def wait(children: Sequence[int], seconds: float) -> dict[int, int]:
    """The exit codes of those children that end within some seconds."""
    codes, until = dict[int, int](), time.monotonic() + seconds
    while len(codes) < len(children) and time.monotonic() < until:
        for child in children:
            if child not in codes:
                ended, status = os.waitpid(child, os.WNOHANG)
                codes |= {child: os.waitstatus_to_exitcode(status)} if ended else {}
        time.sleep(0.005)
    return codes


def output_of_child(work: Callable[[], int]) -> tuple[int, str]:
    """The exit code of some work, and what it printed: less than a pipe holds."""
    reader, writer = os.pipe()
    try:
        code = in_a_child(work, writer, writer)
        os.set_blocking(reader, False)  # processes of its own may keep the pipe open
        with suppress(BlockingIOError):
            return code, os.read(reader, 1 << 20).decode()
        return code, ""
    finally:
        os.close(reader)
        os.close(writer)


class Forked(subprocess.Popen[Any]):
    """`python -m MODULE WORDS`, forked: what the module imports is there already."""

    def _execute_child(self, args: Sequence[str], *others: Any) -> None:
        streams = others[9:15]
        self.pid = os.fork()
        if not self.pid:
            for descriptor, end in enumerate((streams[0], streams[3], streams[5])):
                os.dup2(end, descriptor)
            os._exit(_run_module(args))
        self._child_created = True
        self._close_pipe_fds(*streams)  # type: ignore[attr-defined]


def _run_module(command: Sequence[str]) -> int:
    """The exit code of a module that runs on the standard streams, and with no other file of this process."""
    os.closerange(3, 1 << 12)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(at, mode, encoding="utf-8") for at, mode in enumerate("rww"))
    module, *words = command[command.index("-m") + 1 :]
    sys.argv = [module, *words]
    code: Any = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the module has been imported, perhaps
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    return code if isinstance(code, int) else int(code is not None)
