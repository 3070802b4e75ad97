"""What stands beside the tensors of a checkpoint: where in the training it is, and the graph of its model. No torch.

A checkpoint counts only if its record is there and names the hash of its tensors; the record is written last, and has
a digest over itself. One that takes the place of another of the same step has its tensors under another name, until the
record, which says so, is there: whatever cuts that off, one of the two is whole.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from modgraph.diagnostics import ModgraphError
from modgraph.files import read_file, reason_of, writing
from modgraph.ir import Graph, from_json, to_json
from modgraph.store.errors import BadCheckpoint, OtherFormat
from modgraph.store.records import sealed, unsealed

if TYPE_CHECKING:
    from numpy import ndarray

FORMAT = 3
AGAIN = ".again"  # in the second name for the tensors of a step
WEIGHT = "weight."  # what the names of weights begin with among the tensors
NAME = re.compile(r"step-([0-9]{8}|[1-9][0-9]{8,})")
READ_ERRORS = (OSError, ValueError, TypeError, RecursionError)
T = TypeVar("T")


@dataclass(frozen=True)
class CheckpointRecord:
    """`sha256` is that of the tensors' file, which has the second name of its step if it was written `again`; `origin`
    the hash of the graph that the run began with. Raises `ValueError` if it cannot be."""

    epoch: int
    step: int
    sha256: str
    torch: str
    facts: dict[str, Any]
    graph: Graph
    origin: str
    again: bool

    def __post_init__(self) -> None:
        kinds = {"epoch": int, "step": int, "sha256": str, "torch": str, "facts": dict, "origin": str, "again": bool}
        for name, kind in kinds.items():
            if type(getattr(self, name)) is not kind:
                raise ValueError(f"its {name} is {getattr(self, name)!r}")

    def as_bytes(self) -> bytes:
        """The content of the file beside the tensors."""
        return sealed({**vars(self), "graph": to_json(self.graph), "format": FORMAT})

    @classmethod
    def read(cls, path: Path) -> CheckpointRecord:
        """The record beside a file of tensors. Raises `ModgraphError`."""
        try:
            content = json.loads(read_file(path.with_suffix(".json")))
            if not isinstance(content, dict) or "format" not in content:
                raise ValueError("its record tells no format")
            OtherFormat.refuse(path, content["format"], FORMAT)
            facts = unsealed(content)
            del facts["format"]
            record = cls(**{**facts, "graph": from_json(facts.get("graph"))})
            if path_of(path.parent, record.step) != path:
                raise ValueError(f"its record is that of step {record.step}")
        except READ_ERRORS as error:
            raise ModgraphError([BadCheckpoint(path=str(path), reason=reason_of(error))]) from error
        return record

    def tensors(self, path: Path, load: Callable[[bytes], dict[str, T]]) -> dict[str, T]:
        """The tensors of its file by name, as safetensors' `load` reads them. Raises `ModgraphError`."""
        from safetensors import SafetensorError

        try:
            content = read_file(tensors_path(path, self.again))
            if hashlib.sha256(content).hexdigest() != self.sha256:
                raise ValueError("its tensors are not those that were written")
            return load(content)
        except (*READ_ERRORS, SafetensorError) as error:
            raise ModgraphError([BadCheckpoint(path=str(path), reason=reason_of(error))]) from error


def path_of(folder: Path, step: int) -> Path:
    """Where the tensors of a step's checkpoint stand, and its record beside them."""
    return folder / f"step-{step:08}.safetensors"


def tensors_path(path: Path, again: bool) -> Path:
    """Where they stand of one that took the place of another, or of one that did not."""
    return path.with_name(f"{path.stem}{AGAIN}{path.suffix}") if again else path


def written_again(path: Path) -> bool | None:
    """Whether the tensors of a checkpoint have their second name; None where there is no checkpoint."""
    try:
        return bool(json.loads(read_file(path.with_suffix(".json"))).get("again", False))
    except (*READ_ERRORS, AttributeError):
        return None


def steps_in(folder: Path, suffix: str = ".json") -> list[int]:
    """The steps of the checkpoints in a folder, whose records tell; anything of another name is none."""
    named = (NAME.fullmatch(path.name.removesuffix(suffix)) for path in folder.glob(f"step-*{suffix}"))
    return sorted(int(match[1]) for match in named if match)


def tidy(folder: Path, keep: int, best: int | None) -> None:
    """Delete all checkpoints but the `keep` newest and that of step `best`, and tensors that no record names. The
    record goes first, so that one without tensors never counts. Raises `ModgraphError`."""
    with writing(folder):
        for step in steps_in(folder)[:-keep]:
            if step != best:
                path_of(folder, step).with_suffix(".json").unlink(missing_ok=True)
        for step in {*steps_in(folder, ".safetensors"), *steps_in(folder, f"{AGAIN}.safetensors")}:
            path = path_of(folder, step)
            second = tensors_path(path, again=True)
            if not path.with_suffix(".json").exists():
                path.unlink(missing_ok=True)
                second.unlink(missing_ok=True)
            elif second.exists() and (kept := written_again(path)) is not None:
                tensors_path(path, again=not kept).unlink(missing_ok=True)


def newest(
    folder: Path, read: Callable[[Path, CheckpointRecord], T], best: bool = False, origin: str | None = None
) -> T | None:
    """What is read of the latest whole checkpoint of a folder, or with `best` of the one that it calls the best; None
    if there is none. A training at work deletes or replaces old ones, perhaps just the one that is read: then its
    newest is looked for anew. Raises `ModgraphError` if it is damaged, or not of the run that began with the graph
    whose hash is `origin`."""
    while steps := steps_in(folder):
        path = path_of(folder, steps[-1])
        again = written_again(path)
        try:
            record = CheckpointRecord.read(path)
            step = record.facts.get("best_step") if best else None
            if isinstance(step, int) and step != record.step:
                record = CheckpointRecord.read(path_of(folder, step))
            found = path_of(folder, record.step)
            if origin is not None and record.origin != origin:
                reason = "it is of another run, which began with another model"
                raise ModgraphError([BadCheckpoint(path=str(found), reason=reason)])
            return read(found, record)
        except ModgraphError:
            if steps_in(folder)[-1:] == steps[-1:] and written_again(path) == again:
                raise
    return None


def newest_record(folder: Path, origin: str | None, best: bool = True) -> CheckpointRecord | None:
    """The record of the checkpoint that a run ends with: its best, or its newest. Raises `ModgraphError`."""
    return newest(folder, lambda _, record: record, best, origin)


def weights_of_checkpoint(path: Path, record: CheckpointRecord) -> dict[str, ndarray]:
    """The weights of the checkpoint whose tensors stand at a path, by name. Raises `ModgraphError`."""
    from safetensors.numpy import load

    tensors = record.tensors(path, load).items()
    return {name.removeprefix(WEIGHT): each for name, each in tensors if name.startswith(WEIGHT)}


def hash_of_values(weights: Mapping[str, ndarray]) -> str:
    """A name for weights: SHA-256 over names, shapes and values."""
    digest = hashlib.sha256()
    for name, values in sorted(weights.items()):
        digest.update(f"{name} {list(values.shape)}\n".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()
