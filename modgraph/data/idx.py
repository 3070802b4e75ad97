"""IDX files, the format of MNIST: a header of magic number and sizes, then bytes."""

from __future__ import annotations

import gzip
import math
import os
import struct
from typing import IO, Any

import numpy as np
from modgraph_runtime.memory import refuse_beyond_memory
from numpy.typing import NDArray

from modgraph.data.errors import BadDataFile
from modgraph.data.reading import reading
from modgraph.diagnostics import ModgraphError
from modgraph.files import open_file

UNSIGNED_BYTE = 0x08
GZIP = b"\x1f\x8b"
MOST_UNPACKED = 1032  # bytes that one byte of gzip can stand for


def read_idx(path: str, axes: int) -> NDArray[Any]:
    """An array of bytes with the given number of axes; what is packed by gzip is unpacked. Raises `ModgraphError`."""
    with reading(path), open_file(path) as file:
        held = os.fstat(file.fileno()).st_size
        packed = file.read(2) == GZIP  # and not by its name, which may be a link's
        file.seek(0)
        if not packed:
            return _read(file, axes, held)
        with gzip.GzipFile(fileobj=file) as unpacked:
            return _read(unpacked, axes, held * MOST_UNPACKED)


def read_images(images: str, labels: str, classes: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Images [count, height, width] and the class of each, bytes both. Raises `ModgraphError`."""
    found, told = read_idx(images, 3), read_idx(labels, 1)
    if len(found) != len(told) or not len(told) or told.max() >= classes:
        reason = f"{len(found)} images and {len(told)} labels from 0 to {classes - 1} do not go together"
        raise ModgraphError([BadDataFile(path=images, reason=reason)])
    return found, told


def _read(file: IO[bytes] | gzip.GzipFile, axes: int, most: int) -> NDArray[Any]:
    """An array whose file cannot have more than so many bytes, read no further than its header says.

    Raises `ValueError` and what the file raises.
    """
    start = file.read(4)
    if len(start) < 4 or start[:3] != bytes((0, 0, UNSIGNED_BYTE)):
        raise ValueError("it is not an IDX file of bytes")
    if start[3] != axes:
        raise ValueError(f"it has {start[3]} axes, not {axes}")
    header = 4 + 4 * axes
    sizes = struct.unpack(f">{axes}I", file.read(4 * axes))
    count = math.prod(sizes)
    if header + count > most:
        raise ValueError(f"it has no more than {most:,} bytes where its header means {header + count:,}")
    refuse_beyond_memory(count)
    content = file.read(count + 1)  # one byte more: at its end gzip compares its checksum
    if len(content) != count:
        found = "fewer" if len(content) < count else "more"
        raise ValueError(f"it has {found} bytes than the {header + count:,} that its header means")
    return np.frombuffer(content, np.uint8).reshape(sizes)
