"""Writing files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from modgraph.diagnostics import Diagnostic, ModgraphError


class CannotWrite(Diagnostic):
    """A file cannot be written: its folder is missing or not writable, the disk is full, or the path is a folder."""

    code = "MG113"
    message = 'cannot write "{path}": {reason}'
    help = "choose a file in a folder that exists and can be written to"
    path: str
    reason: str


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Tells what goes wrong with a file while it is written. Raises `ModgraphError`."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ModgraphError([CannotWrite(path=str(path), reason=reason)]) from error


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write a file under a temporary name beside it, then rename. Raises `ModgraphError`."""
    target = Path(path)
    with writing(path):
        if target.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            umask = os.umask(0)
            os.umask(umask)
            Path(temporary).chmod(0o666 & ~umask)
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
