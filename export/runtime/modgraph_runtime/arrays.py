"""Arrays in .npz files: read without pickle, written whole or not at all."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from typing import IO

import numpy as np

from modgraph_runtime.files import replacing
from modgraph_runtime.ports import Array, BundleError
from modgraph_runtime.provenance import ARCHIVE, is_foreign

UNREADABLE = (OSError, ValueError, EOFError, KeyError, MemoryError, OverflowError, RuntimeError)
DAMAGED = (SyntaxError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error)


def read_arrays(path: str) -> dict[str, Array]:
    """The arrays of an .npz file; pickled ones are refused. Raises `BundleError`."""
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise BundleError(f'"{path}" holds a single array; save it by name: numpy.savez("{path}", image=…)')
        with file:
            arrays = {name: file[name] for name in file.files}
    except DAMAGED as error:
        raise BundleError(f'cannot read arrays from "{path}": the file is damaged') from error
    except UNREADABLE as error:
        raise BundleError(f'cannot read arrays from "{path}": {_reason(error)}') from error
    if wrong := [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]:
        raise BundleError(f'cannot read arrays from "{path}": "{wrong[0]}" is no array')
    return arrays


def _reason(error: BaseException) -> str:
    reason = getattr(error, "strerror", None) or (str(error).splitlines() or [type(error).__name__])[0]
    if "allow_pickle" in reason or "pickled data" in reason:
        return "it is no .npz file, or holds pickled objects, which are not read"
    return str(reason).lower()


def refuse_foreign(path: str, force: bool) -> None:
    """Raises `BundleError` if a file is there that modgraph did not write."""
    if not force and is_foreign(path):
        raise BundleError(
            f'"{path}" is there already, and nothing in it says that modgraph wrote it: '
            "choose another name, or overwrite it with --force"
        )


def write_arrays(path: str, arrays: Mapping[str, Array], force: bool = False) -> None:
    """Write an .npz file whole or not at all; with `force`, in the place of any other. Raises `BundleError`."""
    try:
        with replacing(path) as file:
            put_arrays(file, arrays)
            refuse_foreign(path, force)
    except OSError as error:
        raise BundleError(f'cannot write "{path}": {(error.strerror or str(error)).lower()}') from error


def put_arrays(file: IO[bytes], arrays: Mapping[str, Array], compression: int = zipfile.ZIP_STORED) -> None:
    """The content of an .npz file, marked as modgraph's. Unlike `numpy.savez` it takes an array called "file"."""
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.comment = ARCHIVE
        for key, array in arrays.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
