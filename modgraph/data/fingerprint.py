"""Fingerprints of data: a digest of each split that a run keeps, independent of paths."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from modgraph.data import Arrays, DataSet
from modgraph.data.files import read_data
from modgraph.recipes.schema import list_paths

if TYPE_CHECKING:
    pass

FORMAT = 1
Fingerprints = Mapping[str, "Fingerprint | None"]  # by split


@dataclass(frozen=True)
class Fingerprint:
    """The number of examples of a split and a SHA-256 of them."""

    examples: int
    sha256: str

    @classmethod
    def compute(cls, data: DataSet, arrays: Arrays) -> Fingerprint:
        """Raises `ModgraphError` where a file cannot be read."""
        whole = sha256()
        for part in _parts(data, arrays):
            whole.update(sha256(part).digest())
        return cls(len(arrays), whole.hexdigest())


def find_changes(before: Fingerprints, now: Fingerprints) -> list[tuple[str, str]]:
    """Return the change of each split that differs."""
    changes = []
    for split in sorted(before.keys() | now.keys()):
        old, new = before.get(split), now.get(split)
        if old != new:
            had, has = (0 if each is None else each.examples for each in (old, new))
            changes.append((split, "has other values" if had == has else f"had {had:,} examples and has {has:,}"))
    return changes


def suggest_way_out(data: DataSet) -> str:
    """Return the help for measuring a run whose data have changed."""
    keys = list_paths(data)
    if not keys:
        return "install the packages that it was trained with: its data come from them"
    key = next((each for each in keys if each.rpartition(".")[2] == "test"), keys[0])
    return f"restore them, or measure on others: eval or trace with -s data.{key}=…"


def as_json(data: DataSet, splits: Mapping[str, Arrays]) -> bytes:
    """Return the fingerprints of all splits as JSON for a run to keep. Raises `ModgraphError`."""
    found = {split: asdict(Fingerprint.compute(data, arrays)) for split, arrays in splits.items()}
    return (json.dumps({"format": FORMAT, "splits": found}, indent=1) + "\n").encode()


def from_json(record: Any) -> dict[str, Fingerprint]:
    """Read the fingerprints that a run keeps. Raises `ValueError`."""
    if not isinstance(record, dict):
        raise ValueError("data.json is damaged")
    if (found := record.get("format")) != FORMAT:
        raise ValueError(
            f"data.json has format {found!r}, but this modgraph reads format {FORMAT}: train the model again"
        )
    try:
        found = {split: Fingerprint(**each) for split, each in record["splits"].items()}
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("data.json is damaged") from error
    if not all(type(each.examples) is int and isinstance(each.sha256, str) for each in found.values()):
        raise ValueError("data.json is damaged")
    return found


def _parts(data: DataSet, arrays: Arrays) -> Iterator[Any]:
    """Yield the digested parts as buffers of bytes, in the same order on every machine: names, types and shapes, each
    followed by its values."""
    import numpy as np

    for name, array in sorted(arrays.values.items()):
        yield f"array {name} {array.dtype.kind}{array.dtype.itemsize} {array.shape}".encode()
        if data.is_exact() or array.dtype.kind != "f":
            yield np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data
    for name, words in sorted(arrays.groups.items()):
        yield f"groups {name} {json.dumps(words.tolist())}".encode()
    for name, order in sorted(arrays.orders.items()):
        yield f"order {name} {json.dumps(order)}".encode()
    for name, stored in sorted(arrays.on_disk.items()):
        yield f"on disk {name} {stored.shape}".encode()
        yield stored.digest()
    for path in data.files():
        yield read_data(path)
