"""Data files: reading with errors reported, and splits cut from one file."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from importlib.metadata import distribution
from itertools import pairwise
from operator import add
from typing import TYPE_CHECKING, Any, TypeVar

from modgraph.data.declaration import TRAIN, VALIDATION
from modgraph.data.errors import BadDataFile, bad_file
from modgraph.extras import EXTRAS, require
from modgraph.files import explain_error, read_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
UNREADABLE = (OSError, ValueError, EOFError, MemoryError, struct.error, zlib.error)


@contextmanager
def reading(path: str, way_out: str = BadDataFile.way_out) -> Iterator[None]:
    """Report problems with a file inside this context. Raises `ModgraphError`."""
    try:
        yield
    except UNREADABLE as error:
        raise bad_file(path, explain_error(error), way_out) from error


def read_data(path: str, way_out: str = BadDataFile.way_out) -> bytes:
    """Read the content of a file. Raises `ModgraphError`."""
    with reading(path, way_out):
        return read_file(path)


def read_text(path: str) -> str:
    """Read the text of a file in UTF-8. Raises `ModgraphError`."""
    try:
        return read_data(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise bad_file(path, f"it is not UTF-8 (byte {error.start + 1})", "save it as plain text in UTF-8") from error


def read_json(path: str, problem: Callable[[Any], str | None], way_out: str) -> Any:
    """Read a JSON file. Raises `ModgraphError` where `problem` returns a problem."""
    try:
        found = json.loads(read_text(path))
    except (ValueError, RecursionError):
        found = None
    if (reason := problem(found)) is not None:
        raise bad_file(path, reason, way_out)
    return found


def find_file_of_extra(extra: str, path: str, what: str, otherwise: str = "") -> str:
    """Return the path of a file of an extra's package. Raises `ModgraphError` if the package is missing."""
    require(extra, what, otherwise)
    [package] = EXTRAS[extra]
    return str(distribution(package).locate_file(path))


def cut_off(data: Any, whole: Any, read: Callable[[str], T], parts: int = 1) -> dict[str, T]:
    """Return the content of each split: of the file that `data` names for it, or a share of the whole in its order.

    Of each of so many equal `parts`, `test` is cut off at the end and `validation` before it.
    """
    bounds = [round(part * len(whole) / parts) for part in range(parts + 1)]
    pieces = [_cut(data, whole[begin:end]) for begin, end in pairwise(bounds)]
    train, validation, test = (reduce(add, each) for each in zip(*pieces, strict=True))
    files = {VALIDATION: data.validation, "test": data.test}
    found = {TRAIN: train, VALIDATION: validation, "test": test}
    return found | {split: read(path) for split, path in files.items() if path is not None}


def _cut(data: Any, piece: Any) -> tuple[Any, Any, Any]:
    validation, test = (0 if data.validation else data.validation_fraction, 0 if data.test else data.test_fraction)
    first, last = (len(piece) - round(share * len(piece)) for share in (validation + test, test))
    return piece[:first], piece[first:last], piece[last:]


def spread(count: int, limit: int | None) -> NDArray[np.int64]:
    """Return `limit` of `count` indices at even distances from the first to the last, or all."""
    import numpy as np

    most = count if limit is None else min(limit, count)
    return np.linspace(0, count - 1, most).round().astype(np.int64)
