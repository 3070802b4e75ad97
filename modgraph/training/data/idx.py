"""IDX files, the format of MNIST: a header of magic number and sizes, then bytes."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.diagnostics import ModgraphError
from modgraph.training.errors import BadDataFile

UNSIGNED_BYTE = 0x08


def read_idx(path: str, axes: int) -> NDArray[Any]:
    """An array of bytes with the given number of axes; `.gz` files are unpacked. Raises `ModgraphError`."""
    try:
        content = Path(path).read_bytes()
        if path.endswith(".gz"):
            content = gzip.decompress(content)
    except (OSError, EOFError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise ModgraphError([BadDataFile(path=path, reason=reason)]) from error
    reason = _problem(content, axes)
    if reason is not None:
        raise ModgraphError([BadDataFile(path=path, reason=reason)])
    header = 4 + 4 * axes
    sizes = struct.unpack(f">{axes}I", content[4:header])
    return np.frombuffer(content, np.uint8, offset=header).reshape(sizes)


def _problem(content: bytes, axes: int) -> str | None:
    header = 4 + 4 * axes
    if len(content) < header or content[:3] != bytes((0, 0, UNSIGNED_BYTE)):
        return "it is not an IDX file of bytes"
    if content[3] != axes:
        return f"it has {content[3]} axes, not {axes}"
    sizes = struct.unpack(f">{axes}I", content[4:header])
    expected = header + int(np.prod(sizes, dtype=object))
    return None if len(content) == expected else f"it has {len(content)} bytes where its header means {expected}"
