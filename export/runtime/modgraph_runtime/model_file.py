"""What ONNX Runtime reads of a bundle: the bytes that were checked, of an open file, and those of no other file."""

from __future__ import annotations

import os
from typing import IO

from modgraph_runtime.external import may_have_external_data

LARGE = 2**25  # bytes of a file that is worth not to be copied
OPEN_FILES = "/proc/self/fd"  # where Linux has paths of a process's open files


def model_of(file: IO[bytes]) -> str | bytes:
    """A path of an open file itself, whatever stands under its name by now; or, where that will not do, its bytes.

    Bytes cost copies, which does not matter for a small file. Other systems have no such paths, and only from bytes
    does ONNX Runtime read no external data.
    """
    path = f"{OPEN_FILES}/{file.fileno()}"
    large = os.fstat(file.fileno()).st_size >= LARGE
    if large and _is_path_of(path, file) and not may_have_external_data(file):
        return path
    file.seek(0)
    return file.read()


def stamp_of(file: IO[bytes]) -> tuple[int, int]:
    """What changes when somebody writes to an open file, and stays when it gets another name."""
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def _is_path_of(path: str, file: IO[bytes]) -> bool:
    try:
        with open(path, "rb") as other:  # noqa: PTH123 (a path of its own kind)
            return os.path.samestat(os.fstat(other.fileno()), os.fstat(file.fileno()))
    except OSError:
        return False
