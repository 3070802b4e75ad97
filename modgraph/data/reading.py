"""Telling what goes wrong with a file of data."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from modgraph.data.errors import BadDataFile
from modgraph.diagnostics import ModgraphError
from modgraph.files import read_file, reason_of

UNREADABLE = (OSError, ValueError, EOFError, MemoryError, struct.error, zlib.error)


@contextmanager
def reading(path: str, way_out: str = BadDataFile.way_out) -> Iterator[None]:
    """Tells why a file cannot be read. Raises `ModgraphError`."""
    try:
        yield
    except UNREADABLE as error:
        raise ModgraphError([BadDataFile(path=path, reason=reason_of(error), way_out=way_out)]) from error


def read_data(path: str, way_out: str = BadDataFile.way_out) -> bytes:
    """All that a file holds. Raises `ModgraphError`."""
    with reading(path, way_out):
        return read_file(path)
