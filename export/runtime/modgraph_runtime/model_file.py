"""Passes a bundle to ONNX Runtime so that it reads the checked bytes of the open file, and no other file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import IO, Any

MARK = b"location"  # the key of a tensor's external data that names the file
# Fields to search: ModelProto.graph, GraphProto.initializer, TensorProto.raw_data, whose bytes are skipped.
MODEL: Mapping[int, Any] = {7: {5: {9: None}}}
VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5  # wire types
LONGEST_VARINT, LARGEST_KEY = 10, 2**32 - 1

LARGE = 2**25  # bytes; larger files are not copied
OPEN_FILES = "/proc/self/fd"  # Linux has the paths of a process's open files here


def model_of(file: IO[bytes]) -> str | bytes:
    """Return a path of the open file itself, whatever its name refers to by now, or its bytes.

    Small files are copied. Only Linux has such a path. From a path ONNX Runtime also reads external data, from bytes it
    does not.
    """
    path = f"{OPEN_FILES}/{file.fileno()}"
    large = os.fstat(file.fileno()).st_size >= LARGE
    if large and _is_path_of(path, file) and not may_have_external_data(file):
        return path
    file.seek(0)
    return file.read()


def compute_stamp(file: IO[bytes]) -> tuple[int, int]:
    """Return a stamp that changes when the open file is written, and stays when it is renamed."""
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def _is_path_of(path: str, file: IO[bytes]) -> bool:
    try:
        with open(path, "rb") as other:  # noqa: PTH123 (a path of its own kind)
            return os.path.samestat(os.fstat(other.fileno()), os.fstat(file.fileno()))
    except OSError:
        return False


def may_have_external_data(file: IO[bytes]) -> bool:
    """Whether a model may refer to other files; true also for what is not a model or has a value called "location".

    It skips the bytes of weights, which are nearly all of a file.
    """
    end = file.seek(0, 2)
    file.seek(0)
    try:
        return _is_marked(file, end, MODEL)
    except ValueError:
        return True


def _is_marked(file: IO[bytes], end: int, known: Mapping[int, Any]) -> bool:
    """Whether the mark occurs in the message up to `end`. Raises `ValueError` if it is not a message."""
    while file.tell() < end:
        key = _read_varint(file)
        number, kind = key >> 3, key & 7
        if not 0 < number <= LARGEST_KEY >> 3:
            raise ValueError("a field without a number")
        length = _read_varint(file) if kind in (VARINT, BYTES) else {FIXED_64: 8, FIXED_32: 4}.get(kind, end)
        if kind == VARINT:
            continue
        start = file.tell()
        if start + length > end:
            raise ValueError("a field that does not end")
        inner = known.get(number, MARK) if kind == BYTES else None
        if inner is MARK and MARK in file.read(length):
            return True
        if isinstance(inner, Mapping) and _is_marked(file, start + length, inner):
            return True
        file.seek(start + length)
    if file.tell() > end:
        raise ValueError("a number that does not end")
    return False


def _read_varint(file: IO[bytes]) -> int:
    value = 0
    for place in range(LONGEST_VARINT):
        byte = file.read(1)
        value |= (byte[0] & 0x7F) << 7 * place if byte else 0
        if byte and byte[0] < 0x80:
            return value
    raise ValueError("a number that does not end")
