"""Arrays in .npz files: read without pickle, written whole or not at all."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph_runtime.bundle import BundleError


def read_arrays(path: str) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file; pickled ones are refused. Raises `BundleError`."""
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise BundleError(f'"{path}" holds a single array; save it by name: numpy.savez("{path}", image=…)')
        with file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise BundleError(f'cannot read arrays from "{path}": {reason}') from error


def write_arrays(path: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write an .npz file under a temporary name, then rename. Raises `BundleError`."""
    target = Path(path)
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, suffix=".npz", delete=False) as file:
            temporary = Path(file.name)
            try:
                np.savez(file, allow_pickle=False, **dict(arrays))
            except BaseException:
                temporary.unlink()
                raise
        temporary.chmod(0o644)
        temporary.replace(target)
    except OSError as error:
        raise BundleError(f'cannot write "{path}": {error.strerror or error}') from error
