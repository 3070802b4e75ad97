"""Writes a folder of files completely or not at all. A record in the folder names its own files."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from modgraph_runtime.integrity import is_of_modgraph

from modgraph.diagnostics import ModgraphError
from modgraph.files import CannotWrite, NotOurs, read_file, writing

FORMAT = 2
PAGE, RECORD = "index.html", "page.json"
MOST_NAMED = 3  # files in the way that a message names


def check_place(folder: Path, force: bool) -> None:
    """Raises `ModgraphError` if a folder cannot be written there. Call it before the work."""
    folder = Path(os.path.realpath(folder))
    reason = None
    if folder.exists() and not folder.is_dir():
        reason = "it is a file, not a folder"
    elif not folder.parent.is_dir():
        reason = f'no such folder: "{folder.parent}"'
    elif not os.access(folder.parent, os.W_OK):
        reason = "its parent folder is not writable"
    if reason is not None:
        raise ModgraphError([CannotWrite(path=str(folder), reason=reason)])
    refuse_foreign_in(folder, force)


def refuse_foreign_in(folder: Path, force: bool) -> None:
    """Raises `ModgraphError` if the folder has files that its record does not name."""
    foreign = [] if force or not folder.exists() else sorted(list_files_in(folder) - list_own_files(folder))
    if foreign:
        raise ModgraphError(NotOurs(path=str(folder / name)) for name in foreign[:MOST_NAMED])


@contextmanager
def replacing_folder(folder: Path, force: bool) -> Iterator[Path]:
    """Yield a new folder that replaces `folder` when the block ends. If the block fails, nothing has changed.

    Foreign files in the old folder are kept. If the new folder has files of the same names, `force` is needed. Raises
    `ModgraphError`.
    """
    target = Path(os.path.realpath(folder))
    new = target.parent / f".modgraph-{secrets.token_hex(8)}.partial"
    with writing(folder):
        new.mkdir()
    try:
        yield new
        refuse_foreign_in(target, force)  # which may have come meanwhile
        with writing(folder):
            _put(new, target)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _put(new: Path, target: Path) -> None:
    """Replace a folder by another. The old one is renamed first, so that nothing is lost."""
    if not target.exists():
        new.rename(target)
        return
    old = target.parent / f".modgraph-{secrets.token_hex(8)}.replaced"
    kept = list_files_in(target) - list_own_files(target) - list_files_in(new)
    target.rename(old)
    try:
        new.rename(target)
    except OSError:
        old.rename(target)
        raise
    for name in sorted(kept):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (old / name).rename(target / name)
    shutil.rmtree(old)


def list_files_in(folder: Path) -> set[str]:
    """The relative paths of all files and links below a folder. Raises `OSError`."""

    def raise_error(error: OSError) -> None:
        raise error

    found = set[str]()
    for place, folders, files in os.walk(folder, onerror=raise_error):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        found |= {(Path(place) / name).relative_to(folder).as_posix() for name in (*files, *links)}
    return found


def list_own_files(folder: Path) -> set[str]:
    """The files that the record of a page names; none if the folder has no page of modgraph's."""
    try:
        record = json.loads(read_file(folder / RECORD)) if is_of_modgraph(folder / PAGE) else {}
    except (OSError, ValueError, RecursionError):
        return set()
    names = record.get("files", []) if isinstance(record, dict) else []
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
