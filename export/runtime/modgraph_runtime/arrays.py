"""Arrays in .npz files: read without pickle, written whole or not at all."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping

import numpy as np

from modgraph_runtime.files import replacing
from modgraph_runtime.ports import Array, BundleError

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


def write_arrays(path: str, arrays: Mapping[str, Array]) -> None:
    """Write an .npz file whole or not at all. Raises `BundleError`."""
    try:
        with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
            for key, array in arrays.items():  # numpy.savez takes no array called "file"
                with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
    except OSError as error:
        raise BundleError(f'cannot write "{path}": {(error.strerror or str(error)).lower()}') from error
