"""Reads .npz files without pickle and within memory, and writes them completely or not at all."""

from __future__ import annotations

import math
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from modgraph_runtime.files import explain_error, open_file, refuse_beyond_memory, replacing
from modgraph_runtime.integrity import ARCHIVE, is_foreign
from modgraph_runtime.ports import Array, BundleError

UNREADABLE = (OSError, ValueError, EOFError, KeyError, MemoryError, OverflowError, RuntimeError)
DAMAGED = (SyntaxError, TypeError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error)
SUFFIX = ".npy"
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # as numpy does
RAGGED = (
    "holds pickled objects, which are not read; rows of unequal lengths are filled up to the longest, their lengths in "
    'an array of their own, such as "time_length"'
)
MOST_UNPACKED = 1032  # the largest ratio of deflate, in bytes


class SingleArray(BundleError):
    """A file has one array without a name (.npy) where several by name are read (.npz)."""


def read_arrays(path: str, names: Collection[str] | None = None) -> dict[str, Array]:
    """The arrays of an .npz file, or those of the given names.

    Raises `BundleError`, also for pickled arrays and, before anything is unpacked, for more bytes than memory has.
    """
    with _archive(path) as archive:
        members, found = dict[str, zipfile.ZipInfo](), dict[str, Array]()
        for member in archive.infolist():
            name = member.filename.removesuffix(SUFFIX)
            if (names is None or name in names) and members.setdefault(name, member) is not member:
                raise ValueError(f'it has "{name}" twice')
        refuse_beyond_memory(sum(_size(archive, name, member) for name, member in members.items()))
        for name, member in members.items():
            with archive.open(member) as content:
                found[name] = np.lib.format.read_array(content, allow_pickle=False)
        return found


def list_array_names(path: str) -> list[str]:
    """The names of the arrays in an .npz file. Raises `BundleError`."""
    with _archive(path) as archive:
        return [member.filename.removesuffix(SUFFIX) for member in archive.infolist()]


@contextmanager
def _archive(path: str) -> Iterator[zipfile.ZipFile]:
    try:
        with open_file(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what numpy raises for damaged files
            if file.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
                raise SingleArray(f'"{path}" has a single array; save it by name: numpy.savez("{path}", image=…)')
            if not zipfile.is_zipfile(file):
                raise ValueError("it is no .npz file, or holds pickled objects, which are not read")
            with zipfile.ZipFile(file) as archive:
                yield archive
    except DAMAGED as error:
        raise BundleError(f'cannot read arrays from "{path}": the file is damaged') from error
    except UNREADABLE as error:
        raise BundleError(f'cannot read arrays from "{path}": {explain_error(error)}') from error


def _size(archive: zipfile.ZipFile, name: str, member: zipfile.ZipInfo) -> int:
    """Read the size of an array in bytes from its header. Raises `ValueError` if the file cannot hold so many."""
    if member.compress_type not in PACKED:
        raise ValueError(f'"{name}" has a compression that numpy does not use')
    with archive.open(member) as content:
        if content.read(len(np.lib.format.MAGIC_PREFIX)) != np.lib.format.MAGIC_PREFIX:
            raise ValueError(f'"{name}" is no array')
        content.seek(0)
        version: Any = np.lib.format.read_magic(content)
        if version not in HEADERS:
            raise ValueError(f'"{name}" is of a version of numpy\'s format that holds no plain arrays')
        shape, _, dtype = HEADERS[version](content)
        header = content.tell()
    if dtype.hasobject:
        raise ValueError(f'"{name}" {RAGGED}')
    if any(axis < 0 for axis in shape):
        raise ValueError(f'"{name}" has the shape {shape}')
    size = math.prod(shape) * dtype.itemsize
    if header + size != member.file_size:
        sizes = f"{header + size:,} bytes by its header, and {member.file_size:,} in the file"
        raise ValueError(f'"{name}" has {sizes}')
    most = member.compress_size * (MOST_UNPACKED if member.compress_type == zipfile.ZIP_DEFLATED else 1)
    if member.file_size > most:
        raise ValueError(f'the {member.compress_size:,} bytes of "{name}" cannot hold {member.file_size:,}')
    return size


def refuse_foreign(path: str, force: bool) -> None:
    """Raises `BundleError` if a file exists that modgraph did not write."""
    if not force and is_foreign(path):
        reason = "exists, and modgraph did not write it"
        raise BundleError(f'"{path}" {reason}: choose another name, or overwrite it with --force')


def write_arrays(path: str, arrays: Mapping[str, Array], force: bool = False) -> None:
    """Write an .npz file completely or not at all; with `force`, over any other file. Raises `BundleError`."""
    try:
        with replacing(path) as file:
            put_arrays(file, arrays)
            refuse_foreign(path, force)
    except OSError as error:
        raise BundleError(f'cannot write "{path}": {explain_error(error)}') from error


def put_arrays(file: IO[bytes], arrays: Mapping[str, Array], compression: int = zipfile.ZIP_STORED) -> None:
    """Return the content of an .npz file, marked as modgraph's. Unlike `numpy.savez` it accepts an array named
    "file"."""
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.comment = ARCHIVE
        for key, array in arrays.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
