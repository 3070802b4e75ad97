"""Which files modgraph wrote, and so may overwrite. Needs nothing but Python."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from modgraph_runtime.files import open_file
from modgraph_runtime.integrity import HEAD, LENGTH, MANIFEST_KEYS, PRODUCER, START

Keys = frozenset[str]

GRAPH_KEYS = frozenset(("format", "nodes", "parameters"))
SUMMARY_KEYS = frozenset(("modgraph", "split", "routes"))
KINDS = (GRAPH_KEYS, MANIFEST_KEYS, SUMMARY_KEYS)
LARGEST_JSON = 1 << 26  # bytes; what is larger is not ours
ARCHIVE = b"modgraph"  # the comment of a zip file, with its length the last bytes
SEAL = b"# modgraph: sha256 of all above "  # before the digest that a source ends in
EITHER_END = 1 << 13  # bytes of a picture among which its maker is named
MARKS = {
    ".png": b"tEXtSoftware\0modgraph ",
    ".svg": b"<dc:title>modgraph ",
    ".html": b'<meta name="generator" content="modgraph ',
    ".dot": b"// modgraph ",
    ".mmd": b"%% modgraph ",
    ".pdf": b"/Creator (modgraph ",
}
TEXTS = (".html", ".dot", ".mmd")  # whose maker stands at the beginning


def is_foreign(path: str | Path, keys: Keys | None = None) -> bool:
    """Whether a file is there that nothing tells to be modgraph's: it must not be overwritten without a word. Nor must
    JSON of another kind than has these `keys`: the manifest of a bundle is no place for a graph.

    An empty file is nobody's. What is no ordinary file is not written to anyway.
    """
    try:
        status = Path(path).stat()
    except OSError:
        return False
    if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
        return False
    try:
        return not made_by_modgraph(path, keys)
    except OSError:
        return True


def made_by_modgraph(path: str | Path, keys: Keys | None = None) -> bool:
    """Whether a file's content is such as modgraph writes under its suffix; of JSON, with these keys if they are given.

    Raises `OSError`.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in (".json", ".onnx", ".npz", ".py", *MARKS):
        return False
    with open_file(path) as file:
        match suffix:
            case ".json":
                return _has_keys(file.read(LARGEST_JSON + 1), KINDS if keys is None else (keys,))
            case ".onnx":
                return PRODUCER in file.read(HEAD) or _end(file, LENGTH).startswith(START)
            case ".npz":
                return _end(file, len(ARCHIVE) + 2) == len(ARCHIVE).to_bytes(2, "little") + ARCHIVE
            case ".py":
                text, _, digest = file.read(LARGEST_JSON).rpartition(SEAL)
                return hashlib.sha256(text).hexdigest().encode() == digest.strip()
        mark = MARKS[suffix]
        return mark in file.read(EITHER_END) or (suffix not in TEXTS and mark in _end(file, EITHER_END))


def _has_keys(text: bytes, kinds: Iterable[Keys]) -> bool:
    """Whether it is JSON of one of these kinds."""
    try:
        record = json.loads(text) if len(text) <= LARGEST_JSON else None
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and any(keys <= record.keys() for keys in kinds)


def sealed(source: str) -> str:
    """A source with its digest at the end: once it is changed, it is its user's, and no longer overwritten."""
    return f"{source}{SEAL.decode()}{hashlib.sha256(source.encode()).hexdigest()}\n"


def _end(file: IO[bytes], count: int) -> bytes:
    """The last bytes of a file."""
    file.seek(-min(count, file.seek(0, os.SEEK_END)), os.SEEK_END)
    return file.read()
