"""Reads ordinary files, and writes files atomically."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from modgraph_runtime import files
from modgraph_runtime.files import explain_error as explain_error
from modgraph_runtime.files import is_partial as is_partial
from modgraph_runtime.files import open_file, refuse_beyond_memory
from modgraph_runtime.integrity import Keys, is_foreign

from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.log import log


class CannotWrite(Diagnostic, code="MG113"):
    """A file cannot be written: its folder is missing or not writable, the disk is full, or the path is a folder."""

    message = 'cannot write "{path}": {reason}'
    help = "choose a file in a writable folder"
    reason: str


class NotOurs(Diagnostic, code="MG121"):
    """Without `--force` a command overwrites only files of the same kind that modgraph wrote.

    The content of a file tells: the keys of a graph, a manifest or a summary in JSON, the producer in an ONNX model or
    a picture, the comment of an archive of arrays, the head of a table of predictions. Empty files may be overwritten.
    """

    message = '"{path}" exists, and modgraph did not write it as this kind of file'
    help = "choose another name, or overwrite it: --force (in Python force=True)"


def exists(path: str | Path) -> bool:
    """Whether a path exists; False for an invalid name."""
    try:
        Path(path).stat()
    except (OSError, ValueError):
        return False
    return True


def is_not_utf8(name: str | Path) -> bool:
    """Whether the bytes of a file name are not UTF-8, which Python keeps as lone surrogates."""
    return any("\ud800" <= letter <= "\udfff" for letter in str(name))


def read_file(path: str | Path) -> bytes:
    """Read an ordinary file. Raises `OSError`, also for a file larger than memory."""
    with open_file(path) as file:
        log.debug(f"read {path}")
        refuse_beyond_memory(os.fstat(file.fileno()).st_size)
        return file.read()


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Turn an `OSError` while writing a file into a `ModgraphError`."""
    try:
        yield
    except OSError as error:
        raise ModgraphError([CannotWrite(path=str(path), reason=explain_error(error))]) from error


@contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a new file that replaces `path` when the block ends; if the block fails, `path` stays as it was.

    The `name` of the file is a path in the folder of the target. Raises `ModgraphError`.
    """
    with writing(path), files.replacing(path) as file:
        yield file
    log.debug(f"wrote {path}")


def check_folder_of(path: str | Path) -> None:
    """Check, before work whose result is to be written, that the folder of a path is there and can be written to.
    Raises `ModgraphError`."""
    with writing(path):
        folder = Path(path).parent
        if not folder.exists():
            raise FileNotFoundError(errno.ENOENT, f'there is no folder "{folder}"')
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f'"{folder}" is no folder')
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, f'the folder "{folder}" is write-protected')


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write a file atomically. Raises `ModgraphError`."""
    with replacing(path) as file:
        file.write(content)


def list_shipped_specs() -> dict[str, Path]:
    """The specs that come with modgraph, by name: `smn`, `zoo/mixtral`."""
    package = Path(__file__).parent
    folder = next((each for each in (package / "specs", package.parent / "specs") if each.is_dir()), package)
    found = (each.relative_to(folder).with_suffix("").as_posix() for each in folder.rglob("*.mod"))
    return {name: folder / f"{name}.mod" for name in sorted(found) if "parts" not in name.split("/")}


def list_tutorial() -> list[Path]:
    """The pages of the tutorial that come with modgraph, in order."""
    package = Path(__file__).parent
    folders = (package / "docs" / "tutorial", package.parent / "docs" / "tutorial")
    return next((sorted(each.glob("*.md")) for each in folders if each.is_dir()), [])


def files_of_bundle(path: str | Path) -> tuple[Path, Path]:
    """Return the paths of a bundle: the model and its manifest."""
    return Path(path), Path(path).with_suffix(".json")


def refuse_foreign(*paths: str | Path, force: bool, keys: Keys | None = None) -> None:
    """Raise `ModgraphError` for a file that modgraph did not write, or JSON without these keys."""
    foreign = [path for path in paths if not force and is_foreign(path, keys)]
    if foreign:
        raise ModgraphError(NotOurs(path=str(path)) for path in foreign)


def write_output(path: str | Path, content: bytes, force: bool, keys: Keys | None = None) -> None:
    """Write a file that the user named, atomically. Raises `ModgraphError`.

    A caller with long work calls `refuse_foreign` first. The check is repeated here because the file may have appeared
    meanwhile.
    """
    with replacing(path) as file:
        file.write(content)
        refuse_foreign(path, force=force, keys=keys)
