"""Whether a model has external data, tensors whose bytes stand in another file. Needs nothing but Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

MARK = b"location"  # the key of a tensor's external data that names the file
# Fields to look into: ModelProto.graph, GraphProto.initializer, TensorProto.raw_data, whose bytes are passed over.
MODEL: Mapping[int, Any] = {7: {5: {9: None}}}
VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5  # kinds of fields
LONGEST_VARINT, LARGEST_KEY = 10, 2**32 - 1


def may_have_external_data(file: IO[bytes]) -> bool:
    """Whether a model's file may name another; so may one that is no model, or has a value called "location".

    The bytes of weights, nearly all of a file, are passed over.
    """
    end = file.seek(0, 2)
    file.seek(0)
    try:
        return _is_marked(file, end, MODEL)
    except ValueError:
        return True


def _is_marked(file: IO[bytes], end: int, known: Mapping[int, Any]) -> bool:
    """Whether the mark stands in the message up to `end`. Raises `ValueError` for what is no message."""
    while file.tell() < end:
        key = _read_varint(file)
        number, kind = key >> 3, key & 7
        if not 0 < number <= LARGEST_KEY >> 3:
            raise ValueError("a field without a number")
        if kind == VARINT:
            _read_varint(file)
            continue
        length = _read_varint(file) if kind == BYTES else {FIXED_64: 8, FIXED_32: 4}.get(kind, end)
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
        if not byte:
            break
        value |= (byte[0] & 0x7F) << 7 * place
        if byte[0] < 0x80:
            return value
    raise ValueError("a number that does not end")
