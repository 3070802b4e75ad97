"""What the page's folder says of itself: the record that names its files, by which modgraph knows its own."""

from __future__ import annotations

import json
import os
from pathlib import Path

from modgraph_runtime.provenance import made_by_modgraph

from modgraph.files import read_file

FORMAT = 1
PAGE, RECORD = "index.html", "page.json"


def files_in(folder: Path) -> set[str]:
    """The paths of all files below a folder, links among them, from there. Raises `OSError`."""
    found = set[str]()
    for place, folders, files in os.walk(folder, onerror=_raise):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        found |= {(Path(place) / name).relative_to(folder).as_posix() for name in (*files, *links)}
    return found


def recorded_in(folder: Path) -> set[str]:
    """The files that a page wrote there; none where the folder holds no page of modgraph's."""
    try:
        record = json.loads(read_file(folder / RECORD)) if made_by_modgraph(folder / PAGE) else {}
    except (OSError, ValueError, RecursionError):
        return set()
    names = record.get("files", []) if isinstance(record, dict) else []
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


def _raise(error: OSError) -> None:
    raise error
