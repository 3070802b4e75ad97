"""Standard streams for a command: whatever becomes of them, the command does all of its work."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

STDOUT, STDERR = 1, 2


class _Lasting(io.RawIOBase):
    """A file descriptor to write to. Once its reader is gone, what is written goes nowhere; for a stream that is not
    `needed`, so it does after any failure."""

    def __init__(self, descriptor: int, needed: bool) -> None:
        self.descriptor = descriptor
        self.needed = needed

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.descriptor

    def isatty(self) -> bool:
        return os.isatty(self.descriptor)

    def write(self, data: Any) -> int:
        try:
            return os.write(self.descriptor, data)
        except OSError as error:
            if self.needed and not isinstance(error, BrokenPipeError):
                raise
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.descriptor)
            os.close(nowhere)
            return len(data)


@contextmanager
def lasting_streams() -> Iterator[None]:
    """Standard output and error that never end a command half way, and print any character in any encoding.

    Streams that someone has put in the place of the interpreter's own stay as they are.
    """
    own = sys.stdout is sys.__stdout__ and sys.stderr is sys.__stderr__
    if not own:
        yield
        return
    _open_closed()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_stream(STDOUT, sys.stdout, needed=True), _stream(STDERR, sys.stderr, needed=False))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _open_closed() -> None:
    """Standard streams that are closed lead nowhere: or else the next file that is opened would take their place, and
    what is meant for them would be written into it."""
    for descriptor in range(STDERR + 1):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest that is free


def _stream(descriptor: int, like: TextIO | None, needed: bool) -> TextIO:
    raw: Any = _Lasting(descriptor, needed)
    encoding = like.encoding if like is not None else "utf-8"
    lines = descriptor == STDERR or (like is not None and bool(like.line_buffering))
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors="backslashreplace", line_buffering=lines)
