"""Children that are killed: forked from a process that has imported everything, so that a death costs little.

This process must never have computed in torch with several threads, which do not survive a fork.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.children import end_of

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate", "os.link")

Work = Callable[[], object]


def import_all(*modules: str) -> None:
    """Import here what children would otherwise import each for itself."""
    for module in modules:
        import_module(module)


def ends(work: Work, log: Path, moment: float | None = None) -> bool:
    """Whether a child comes to its end, if it is killed after so many seconds. Raises `AssertionError` if it fails."""
    child = os.fork()
    if child == 0:
        _be_child(work, log)
    if moment is not None:
        time.sleep(moment)
        os.kill(child, signal.SIGKILL)
    (code,) = end_of(child, patience=600)
    assert code in (0, -signal.SIGKILL), log.read_text()
    return code == 0


def _be_child(work: Work, log: Path) -> None:
    code = 1
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        work()
        sys.stdout.flush()
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def dying_at(operation: int, folder: Path, work: Work) -> Work:
    """The same, killed just before the file operation of this number, from 1, that changes anything in a folder."""

    def mortal() -> None:
        left = operation

        def count(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal left
            if _changes(event, arguments, str(folder)):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        work()

    return mortal


def _changes(event: str, arguments: tuple[Any, ...], folder: str) -> bool:
    if event == "open":
        path, _, flags = arguments
        return bool(flags & WRITING) and _below(path, folder)
    return event in CHANGES and any(_below(path, folder) for path in arguments[:2])


def _below(path: object, folder: str) -> bool:
    return isinstance(path, str | os.PathLike) and os.fspath(path).startswith(folder)
