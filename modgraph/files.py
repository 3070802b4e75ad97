"""Reading ordinary files, and writing them whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from modgraph_runtime import files
from modgraph_runtime.files import is_partial as is_partial
from modgraph_runtime.files import open_file, refuse_beyond_memory
from modgraph_runtime.files import reason_of as reason_of
from modgraph_runtime.integrity import Keys, is_foreign

from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.log import log


class CannotWrite(Diagnostic, code="MG113"):
    """A file cannot be written: its folder is missing or not writable, the disk is full, or the path is a folder."""

    message = 'cannot write "{path}": {reason}'
    help = "choose a file that can be written, in a folder that is there and can be written to"
    reason: str


class NotOurs(Diagnostic, code="MG121"):
    """A command overwrites what modgraph wrote before, of the same kind, and nothing else unless it is told to.

    What a file is follows from its content: the keys of a graph, a manifest or a summary in JSON, the maker named in an
    ONNX model or a picture, the comment of an archive of arrays. Empty files may be overwritten.
    """

    message = '"{path}" is there already, and nothing in it says that modgraph wrote it as such'
    help = "choose another name, or overwrite it: --force (in Python force=True)"


def exists(path: str | Path) -> bool:
    """Whether there is something of this name; what can be no name is none."""
    try:
        Path(path).stat()
    except (OSError, ValueError):
        return False
    return True


def is_not_utf8(name: str | Path) -> bool:
    """Whether the bytes of a file's name are not UTF-8: Python keeps those as lone surrogates."""
    return any("\ud800" <= letter <= "\udfff" for letter in str(name))


def read_file(path: str | Path) -> bytes:
    """All that an ordinary file holds. Raises `OSError`, also where memory could not take it."""
    with open_file(path) as file:
        log.debug(f"read {path}")
        refuse_beyond_memory(os.fstat(file.fileno()).st_size)
        return file.read()


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Tells what goes wrong with a file while it is written. Raises `ModgraphError`."""
    try:
        yield
    except OSError as error:
        raise ModgraphError([CannotWrite(path=str(path), reason=reason_of(error))]) from error


@contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """A new file, which takes the place of `path` when the block ends; where the block fails, nothing has changed.

    Its `name` is a path beside the target. Raises `ModgraphError`.
    """
    with writing(path), files.replacing(path) as file:
        yield file
    log.debug(f"wrote {path}")


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write a file whole or not at all. Raises `ModgraphError`."""
    with replacing(path) as file:
        file.write(content)


def files_of_bundle(path: str | Path) -> tuple[Path, Path]:
    """What an export writes: the model, and its manifest beside it."""
    return Path(path), Path(path).with_suffix(".json")


def refuse_foreign(*paths: str | Path, force: bool, keys: Keys | None = None) -> None:
    """Raises `ModgraphError` where a file is in the way that modgraph did not write, or JSON without these keys."""
    foreign = [path for path in paths if not force and is_foreign(path, keys)]
    if foreign:
        raise ModgraphError(NotOurs(path=str(path)) for path in foreign)


def write_output(path: str | Path, content: bytes, force: bool, keys: Keys | None = None) -> None:
    """Write a file that the user has named, whole or not at all. Raises `ModgraphError`.

    Whoever works long for its content refuses what is foreign before that too: it is looked at again here, since the
    file may have come meanwhile.
    """
    with replacing(path) as file:
        file.write(content)
        refuse_foreign(path, force=force, keys=keys)
