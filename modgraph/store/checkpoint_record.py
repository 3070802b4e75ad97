"""The record of a checkpoint: where in the training it is, and the graph of its model. Needs no torch.

A checkpoint counts only if its record exists and names the hash of its tensors. The record is written last and has a
digest of its own. A checkpoint that replaces another of the same step writes its tensors under a second name, which
only the new record refers to. So one of the two is whole wherever the writer is killed.
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
from modgraph.files import explain_error, read_file, writing
from modgraph.ir import Graph, from_json, to_json
from modgraph.store.errors import BadCheckpoint, OtherFormat
from modgraph.store.records import seal, unseal
from modgraph.store.rows import split_rows

if TYPE_CHECKING:
    from numpy import ndarray

FORMAT = 4
AGAIN = ".again"  # part of the second name for the tensors of a step
WEIGHT = "weight."  # prefix of the names of weights among the tensors
NAME = re.compile(r"step-([0-9]{8}|[1-9][0-9]{8,})")
READ_ERRORS = (OSError, ValueError, TypeError, RecursionError)
T = TypeVar("T")


@dataclass(frozen=True)
class CheckpointRecord:
    """The content of a record. Raises `ValueError` for fields of other types.

    `sha256` is that of the file of tensors, which has the second name of its step if `again`. `origin` is the hash of
    the graph that the run began with.
    """

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
        """Return the content of the record's file."""
        return seal({**vars(self), "graph": to_json(self.graph), "format": FORMAT})

    @classmethod
    def read(cls, path: Path) -> CheckpointRecord:
        """Read the record next to a file of tensors. Raises `ModgraphError`."""
        try:
            content = json.loads(read_file(path.with_suffix(".json")))
            if not isinstance(content, dict) or "format" not in content:
                raise ValueError("its record has no format")
            OtherFormat.refuse(path, content["format"], FORMAT)
            facts = unseal(content)
            del facts["format"]
            record = cls(**{**facts, "graph": from_json(facts.get("graph"))})
            if path_of(path.parent, record.step) != path:
                raise ValueError(f"its record belongs to step {record.step}")
        except READ_ERRORS as error:
            raise ModgraphError([BadCheckpoint(path=str(path), reason=explain_error(error))]) from error
        return record

    def tensors(self, path: Path, load: Callable[[bytes], dict[str, T]]) -> dict[str, T]:
        """Read its tensors by name with safetensors' `load`. Raises `ModgraphError`."""
        from safetensors import SafetensorError

        try:
            content = read_file(tensors_path(path, self.again))
            if hashlib.sha256(content).hexdigest() != self.sha256:
                raise ValueError("its tensors have changed")
            return split_rows(load(content), self.graph)
        except (*READ_ERRORS, SafetensorError) as error:
            raise ModgraphError([BadCheckpoint(path=str(path), reason=explain_error(error))]) from error


def path_of(folder: Path, step: int) -> Path:
    """Return the path of the tensors of a step's checkpoint; its record stands next to it."""
    return folder / f"step-{step:08}.safetensors"


def tensors_path(path: Path, again: bool) -> Path:
    """Return the path of the tensors: the second name of their step if `again`."""
    return path.with_name(f"{path.stem}{AGAIN}{path.suffix}") if again else path


def has_second_name(path: Path) -> bool | None:
    """Whether the tensors of a checkpoint have their second name; None where there is no checkpoint."""
    try:
        return bool(json.loads(read_file(path.with_suffix(".json"))).get("again", False))
    except (*READ_ERRORS, AttributeError):
        return None


def list_steps_in(folder: Path, suffix: str = ".json") -> list[int]:
    """Return the steps of the checkpoints in a folder, from the names of their records; other names are ignored."""
    named = (NAME.fullmatch(path.name.removesuffix(suffix)) for path in folder.glob(f"step-*{suffix}"))
    return sorted(int(match[1]) for match in named if match)


def tidy(folder: Path, keep: int, best: int | None) -> None:
    """Delete all checkpoints but the `keep` newest and that of step `best`, and tensors that no record names.

    Records are deleted first, so that a record without tensors never counts. Raises `ModgraphError`.
    """
    with writing(folder):
        for step in list_steps_in(folder)[:-keep]:
            if step != best:
                path_of(folder, step).with_suffix(".json").unlink(missing_ok=True)
        for step in {*list_steps_in(folder, ".safetensors"), *list_steps_in(folder, f"{AGAIN}.safetensors")}:
            path = path_of(folder, step)
            second = tensors_path(path, again=True)
            if not path.with_suffix(".json").exists():
                path.unlink(missing_ok=True)
                second.unlink(missing_ok=True)
            elif second.exists() and (kept := has_second_name(path)) is not None:
                tensors_path(path, again=not kept).unlink(missing_ok=True)


def newest(
    folder: Path, read: Callable[[Path, CheckpointRecord], T], best: bool = False, origin: str | None = None
) -> T | None:
    """Read the newest whole checkpoint of a folder, or with `best` the one that it names as the best; None if there is
    none.

    A running training may delete or replace a checkpoint while it is read; then the newest is looked up again. Raises
    `ModgraphError` if it is damaged, or if its run did not begin with the graph whose hash is `origin`.
    """
    while steps := list_steps_in(folder):
        path = path_of(folder, steps[-1])
        again = has_second_name(path)
        try:
            record = CheckpointRecord.read(path)
            step = record.facts.get("best_step") if best else None
            if isinstance(step, int) and step != record.step:
                record = CheckpointRecord.read(path_of(folder, step))
            found = path_of(folder, record.step)
            if origin is not None and record.origin != origin:
                reason = "it belongs to another run with another model"
                raise ModgraphError([BadCheckpoint(path=str(found), reason=reason)])
            return read(found, record)
        except ModgraphError:
            if list_steps_in(folder)[-1:] == steps[-1:] and has_second_name(path) == again:
                raise
    return None


def read_newest_record(folder: Path, origin: str | None, best: bool = True) -> CheckpointRecord | None:
    """Read the record of the checkpoint that a run ends with: its best, or its newest. Raises `ModgraphError`."""
    return newest(folder, lambda _, record: record, best, origin)


def read_weights_of_checkpoint(path: Path, record: CheckpointRecord) -> dict[str, ndarray]:
    """Read the weights by name of the checkpoint whose tensors stand at a path. Raises `ModgraphError`."""
    from safetensors.numpy import load

    tensors = record.tensors(path, load).items()
    return {name.removeprefix(WEIGHT): each for name, each in tensors if name.startswith(WEIGHT)}


def hash_of_values(weights: Mapping[str, ndarray]) -> str:
    """Return the SHA-256 of weights: of their names, shapes and values."""
    digest = hashlib.sha256()
    for name, values in sorted(weights.items()):
        digest.update(f"{name} {list(values.shape)}\n".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()
