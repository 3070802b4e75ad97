"""Standard streams of a command: closed streams do not stop it, and it prints no control characters."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

STDOUT, STDERR = 1, 2
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
COLOUR = re.compile(r"(\x1b\[[0-9]{1,2}m)")


def printable(text: str) -> str:
    """Replace each character that controls a terminal or changes the direction of text by U+FFFD.

    Line feeds and tabs stay.
    """
    return CONTROLS.sub("\ufffd", text)


class _Printable:
    """A stream that writes text through `printable`. `colours` keeps the codes of colours."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.colours = stream, False

    def write(self, text: str) -> int:
        parts = COLOUR.split(text) if self.colours else [text]
        self.stream.write("".join(part if at % 2 else printable(part) for at, part in enumerate(parts)))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def allow_colours() -> None:
    """Let standard output pass colour codes from now on."""
    stream: Any = sys.stdout
    if isinstance(stream, _Printable):
        stream.colours = True


class _Persistent(io.RawIOBase):
    """A file descriptor that takes writes even after its reader is gone, and ignores them then.

    A stream that is not `needed` ignores writes after any failure.
    """

    def __init__(self, descriptor: int, needed: bool) -> None:
        self.descriptor, self.needed = descriptor, needed

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
def keep_streams_open() -> Iterator[None]:
    """Make standard output and error never stop a command, and print any text in any encoding without control
    characters.

    Streams that replace the interpreter's own are used as they are.
    """
    before: Any = sys.stdout, sys.stderr
    streams = before
    if sys.stdout is sys.__stdout__ and sys.stderr is sys.__stderr__:
        for descriptor in (0, STDOUT, STDERR):  # else the next opened file would take the place of a closed stream
            try:
                os.fstat(descriptor)
            except OSError:
                os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor
        streams = (_stream(STDOUT, sys.stdout, needed=True), _stream(STDERR, sys.stderr, needed=False))
    out, err = (_Printable(stream) for stream in streams)
    sys.stdout, sys.stderr = cast(TextIO, out), cast(TextIO, err)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _stream(descriptor: int, like: TextIO | None, needed: bool) -> TextIO:
    raw: Any = _Persistent(descriptor, needed)
    encoding = like.encoding if like is not None else "utf-8"
    lines = descriptor == STDERR or (like is not None and bool(like.line_buffering))
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors="backslashreplace", line_buffering=lines)
