"""Whether a bundle is as it was exported: the digest at its end, and the manifest beside it. Needs nothing but Python.

A bundle ends in a trailer of fixed length, an entry of `ModelProto.metadata_props` as raw bytes: `modgraph.sha256`, the
SHA-256 of all bytes before it. Protobuf messages concatenate, so the file is an ordinary ONNX model, and to check it
nothing that reads ONNX is needed. It tells damage, not intent: who changes a file on purpose can write a digest too.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping
from typing import IO, Any, NamedTuple

DIGITS = 2 * hashlib.sha256().digest_size
KEY = b"modgraph.sha256"
ENTRY = bytes([0x0A, len(KEY), *KEY, 0x12, DIGITS])  # StringStringEntryProto: key = 1, value = 2
START = bytes([0x72, len(ENTRY) + DIGITS]) + ENTRY  # ModelProto: metadata_props = 14
LENGTH = len(START) + DIGITS
BUFFER = 2**18

PRODUCER = b"\x12\x08modgraph"  # ModelProto: producer_name = 2
HEAD = 32  # bytes among which it stands
MANIFEST_KEY = "modgraph"  # of the manifest among a model's properties
MANIFEST_ENTRY = b"\x0a\x08modgraph\x12"
MANIFEST_KEYS = frozenset(("format", "modgraph", "ir"))
FORMAT = 1  # of manifests
CLAIM = 2  # so many of them, since damage may have taken one


class Damage(NamedTuple):
    """What is wrong with a file, and what its owner can do."""

    reason: str
    way_out: str


NO_BUNDLE = Damage("is no bundle: modgraph has not exported it", "modgraph export RUN -o model.onnx makes one")
NO_DIGEST = Damage(
    "has no digest: it was cut off or changed",
    "export it again, or open it unchecked (check=False, --unchecked)",
)
CHANGED = Damage("is damaged: its bytes are not those that were exported", "copy or export it again")
NO_JSON = Damage("is damaged: it is not JSON", "copy it again, or take it away: the bundle holds it too")
OF_ANOTHER = Damage("is not the one in the bundle", "copy or export both again, or take it away")


def trailer(content: bytes | memoryview) -> bytes:
    """What makes a bundle of a model's bytes when it is put after them."""
    return START + hashlib.sha256(content).hexdigest().encode()


def damage_of(content: bytes) -> Damage | None:
    """What is wrong with a bundle's bytes, if anything."""
    return damage_in(io.BytesIO(content))


def damage_in(file: IO[bytes]) -> Damage | None:
    """What is wrong with an open bundle, if anything. Its bytes pass through a buffer that stays in the cache."""
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
    """What is wrong with a manifest of another format than this version writes; None for one of this format."""
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found == FORMAT:
        return None
    reason = f"has format {json.dumps(found)}; this version reads format {FORMAT}"
    return Damage(reason, "export the model anew: modgraph export RUN -o model.onnx")


def damage_beside(text: bytes, manifest: Mapping[str, Any]) -> Damage | None:
    """What is wrong with the file that stands where a bundle's manifest is kept beside it, if anything.

    It must hold the manifest that is in the bundle. A JSON value that lacks most keys of manifests is none, belongs to
    somebody else, and is left alone.
    """
    try:
        beside = json.loads(text)
    except (ValueError, RecursionError):
        return NO_JSON
    claims = isinstance(beside, dict) and len(MANIFEST_KEYS & beside.keys()) >= CLAIM
    return OF_ANOTHER if claims and beside != manifest else None
