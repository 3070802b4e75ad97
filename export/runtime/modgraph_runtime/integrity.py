"""Recognises files of modgraph, which it may overwrite, and checks bundles and their manifests. Needs only Python.

A bundle ends in a trailer of fixed length, an entry of `ModelProto.metadata_props` in raw bytes: `modgraph.sha256`, the
SHA-256 of all bytes before it. Protobuf messages concatenate, so the file is an ordinary ONNX model, and the check
needs no ONNX. The digest detects damage, not intent: anyone who changes a file on purpose can write a new digest.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from modgraph_runtime.files import open_file

DIGITS = 2 * hashlib.sha256().digest_size
KEY = b"modgraph.sha256"
ENTRY = bytes([0x0A, len(KEY), *KEY, 0x12, DIGITS])  # StringStringEntryProto: key = 1, value = 2
START = bytes([0x72, len(ENTRY) + DIGITS]) + ENTRY  # ModelProto: metadata_props = 14
LENGTH = len(START) + DIGITS
BUFFER = 2**18

PRODUCER = b"\x12\x08modgraph"  # ModelProto: producer_name = 2
HEAD = 32  # the leading bytes that name the maker
MANIFEST_KEY = "modgraph"  # key of the manifest among a model's properties
MANIFEST_ENTRY = b"\x0a\x08modgraph\x12"
MANIFEST_KEYS = frozenset(("format", "modgraph", "ir"))
FORMAT = 1  # keys of manifests
CLAIM = 2  # number of keys that identify a manifest, since damage may have destroyed one


class Damage(NamedTuple):
    """The damage of a file, and the way out for its owner."""

    reason: str
    way_out: str


NO_BUNDLE = Damage("is no bundle: modgraph has not exported it", "write one: modgraph export RUN -o model.onnx")
UNCHECKED = "export it again, or open it unchecked (check=False, --unchecked)"
NO_DIGEST = Damage("has no digest: it was cut off or changed", UNCHECKED)
CHANGED = Damage("is damaged: its bytes have changed since the export", "copy or export it again")
NO_JSON = Damage("is damaged: it is not JSON", "copy it again, or remove it: the bundle contains it too")
OF_ANOTHER = Damage("is not the one in the bundle", "copy or export both again, or remove it")


def trailer(content: bytes | memoryview) -> bytes:
    """Return the bytes that turn a model into a bundle when they follow it."""
    return START + hashlib.sha256(content).hexdigest().encode()


def find_damage(content: bytes) -> Damage | None:
    """Find the damage in a bundle's bytes, if any."""
    return find_damage_in(io.BytesIO(content))


def find_damage_in(file: IO[bytes]) -> Damage | None:
    """Find the damage in an open bundle, if any. The bytes pass through a buffer that fits into the cache."""
    length = file.seek(0, os.SEEK_END) - LENGTH
    file.seek(max(0, length))
    end = file.read()
    file.seek(0)
    if not end.startswith(START):
        content = file.read()
        return NO_DIGEST if PRODUCER in content[:HEAD] or MANIFEST_ENTRY in content else NO_BUNDLE
    digest = hashlib.sha256()
    while length > 0 and (piece := file.read(min(length, BUFFER))):
        digest.update(piece)
        length -= len(piece)
    return None if end == START + digest.hexdigest().encode() else CHANGED


def other_format(manifest: Any) -> Damage | None:
    """Describe a manifest of another format as damage; None for this version's format."""
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found == FORMAT:
        return None
    reason = f"has format {json.dumps(found)}, but this version reads format {FORMAT}"
    return Damage(reason, "export the model again: modgraph export RUN -o model.onnx")


def find_manifest_damage(text: bytes, manifest: Mapping[str, Any]) -> Damage | None:
    """Find the damage in the file next to a bundle that should be its manifest, if any.

    It must equal the manifest in the bundle. JSON without most keys of manifests is a foreign file and is ignored.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return NO_JSON
    claims = isinstance(found, dict) and len(MANIFEST_KEYS & found.keys()) >= CLAIM
    return OF_ANOTHER if claims and found != manifest else None


# ------------------------------------------------------------ files of modgraph

Keys = frozenset[str]

GRAPH_KEYS = frozenset(("format", "nodes", "parameters"))
SUMMARY_KEYS = frozenset(("modgraph", "split", "routes"))
KINDS = (GRAPH_KEYS, MANIFEST_KEYS, SUMMARY_KEYS)
LARGEST_JSON = 1 << 26  # bytes; larger files are foreign
ARCHIVE = b"modgraph"  # the comment of a zip file, which ends with its length
TENSORS = b'"__metadata__":{"modgraph":'  # at the beginning of a file of tensors
SEAL = b"# modgraph: sha256 of all above "  # precedes the digest at the end of a source
EITHER_END = 1 << 13  # the leading bytes of a picture that name its maker
MARKS = {
    ".png": b"tEXtSoftware\0modgraph ",
    ".svg": b"<dc:title>modgraph ",
    ".html": b'<meta name="generator" content="modgraph ',
    ".dot": b"// modgraph ",
    ".mmd": b"%% modgraph ",
    ".pdf": b"/Creator (modgraph ",
}
TEXTS = (".html", ".dot", ".mmd")  # files that name their maker at the beginning
IMAGE = re.compile(r"\.(png|jpe?g)$", re.IGNORECASE)
EXAMPLE = re.compile(r"(\.np[yz]\[\d+\]|(\.csv|\.txt|^-):\d+)$", re.IGNORECASE)  # of a file with several
BEGINNING = 1 << 16  # bytes of a table


def is_foreign(path: str | Path, keys: Keys | None = None) -> bool:
    """Whether a file exists that modgraph did not recognisably write, and so must not overwrite unasked.

    With `keys`, JSON of another kind is foreign too: a graph must not replace a manifest. An empty file is not foreign.
    Files that are not ordinary are never written.
    """
    try:
        status = Path(path).stat()
    except OSError:
        return False
    if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
        return False
    try:
        return not is_of_modgraph(path, keys)
    except OSError:
        return True


def is_of_modgraph(path: str | Path, keys: Keys | None = None) -> bool:
    """Whether modgraph writes such content under this suffix; JSON must have the given `keys`. Raises `OSError`."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".json", ".onnx", ".npz", ".py", ".safetensors", ".csv", *MARKS):
        return False
    with open_file(path) as file:
        match suffix:
            case ".json":
                text = file.read(LARGEST_JSON + 1)
                try:
                    record = json.loads(text) if len(text) <= LARGEST_JSON else None
                except (ValueError, RecursionError):
                    return False
                kinds = KINDS if keys is None else (keys,)
                return isinstance(record, dict) and any(each <= record.keys() for each in kinds)
            case ".onnx":
                return PRODUCER in file.read(HEAD) or _end(file, LENGTH).startswith(START)
            case ".npz":
                return _end(file, len(ARCHIVE) + 2) == len(ARCHIVE).to_bytes(2, "little") + ARCHIVE
            case ".safetensors":
                return TENSORS in file.read(EITHER_END)
            case ".csv":
                return _has_predictions(file.read(BEGINNING))
            case ".py":
                text, _, digest = file.read(LARGEST_JSON).rpartition(SEAL)
                return hashlib.sha256(text).hexdigest().encode() == digest.strip()
        mark = MARKS[suffix]
        return mark in file.read(EITHER_END) or (suffix not in TEXTS and mark in _end(file, EITHER_END))


def _has_predictions(beginning: bytes) -> bool:
    """Whether a table begins as `predict --csv` writes it: where an example is from, then a class and its probability,
    or numbers. A person's table of images and labels has no probabilities."""
    rows = [*csv.reader(beginning.decode(errors="replace").splitlines()[:2])]
    if len(rows) < 2 or rows[0][:1] != ["input"] or len(rows[0]) < 2 or not rows[1]:
        return False
    (_, first, *others), (source, *_) = rows
    is_ours = others[:1] == [f"{first}.probability"] or first.endswith(".0")
    return EXAMPLE.search(source) is not None or (is_ours and IMAGE.search(source) is not None)


def seal(source: str) -> str:
    """Append its digest to a source. An edited source belongs to its user and is not overwritten."""
    return f"{source}{SEAL.decode()}{hashlib.sha256(source.encode()).hexdigest()}\n"


def _end(file: IO[bytes], count: int) -> bytes:
    file.seek(-min(count, file.seek(0, os.SEEK_END)), os.SEEK_END)
    return file.read()
