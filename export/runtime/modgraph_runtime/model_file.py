"""Passes a bundle to ONNX Runtime so that it reads the checked bytes of the open file, and of no other file."""

from __future__ import annotations

import os
from typing import IO

from modgraph_runtime.external import may_have_external_data

LARGE = 2**25  # bytes of the smallest file for which copies cost too much
OPEN_FILES = "/proc/self/fd"  # where Linux has paths of a process's open files


def model_of(file: IO[bytes]) -> str | bytes:
    """A path of the open file itself, whatever its name refers to by now, or its bytes.

    Bytes are copied, which does not matter for a small file. Systems other than Linux have no such path, and ONNX
    Runtime reads external data for a path, but not for bytes.
    """
    path = f"{OPEN_FILES}/{file.fileno()}"
    large = os.fstat(file.fileno()).st_size >= LARGE
    if large and _is_path_of(path, file) and not may_have_external_data(file):
        return path
    file.seek(0)
    return file.read()


def stamp_of(file: IO[bytes]) -> tuple[int, int]:
    """A stamp that changes when the open file is written to, but not when it is renamed."""
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def _is_path_of(path: str, file: IO[bytes]) -> bool:
    try:
        with open(path, "rb") as other:  # noqa: PTH123 (a path of its own kind)
            return os.path.samestat(os.fstat(other.fileno()), os.fstat(file.fileno()))
    except OSError:
        return False
