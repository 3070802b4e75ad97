"""What stands beside the tensors of a checkpoint: where in the training it is, and the graph of its model. No torch.

A checkpoint counts only if its record is there and names the hash of its tensors; the record is written last, and has
a digest over itself. One that takes the place of another of the same step has its tensors under another name, until the
record, which says so, is there: whatever cuts that off, one of the two is whole.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from modgraph.diagnostics import ModgraphError
from modgraph.files import read_file, reason_of, writing
from modgraph.ir import Graph, from_json, to_json
from modgraph.store.errors import BadCheckpoint, OtherFormat
from modgraph.store.records import sealed, unsealed

FORMAT = 3
AGAIN = ".again"  # in the second name for the tensors of a step
WEIGHT = "weight."  # what the names of weights begin with among the tensors
NAME = re.compile(r"step-([0-9]{8}|[1-9][0-9]{8,})")
READ_ERRORS = (OSError, ValueError, TypeError, RecursionError)


@dataclass(frozen=True)
class CheckpointRecord:
    """`sha256` is that of the tensors' file, which has the second name of its step if it was written `again`; `origin`
    the hash of the graph that the run began with.

    Raises `ValueError` if it cannot be.
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
        """The content of the file beside the tensors."""
        return sealed({**vars(self), "graph": to_json(self.graph), "format": FORMAT})

    @classmethod
    def read(cls, path: Path) -> CheckpointRecord:
        """The record beside a file of tensors. Raises `ModgraphError`."""
        try:
            return cls._read(path)
        except READ_ERRORS as error:
            raise ModgraphError([BadCheckpoint(path=str(path), reason=reason_of(error))]) from error

    @classmethod
    def _read(cls, path: Path) -> CheckpointRecord:
        content = json.loads(read_file(path.with_suffix(".json")))
        if not isinstance(content, dict) or "format" not in content:
            raise ValueError("its record tells no format")
        OtherFormat.refuse(path, content["format"], FORMAT)
        facts = unsealed(content)
        del facts["format"]
        record = cls(**{**facts, "graph": from_json(facts.get("graph"))})
        if path_of(path.parent, record.step) != path:
            raise ValueError(f"its record is that of step {record.step}")
        return record

    def tensors(self, path: Path) -> bytes:
        """The content of the file of tensors. Raises `OSError`, and `ValueError` where it is not what was written."""
        content = read_file(tensors_path(path, self.again))
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise ValueError("its tensors are not those that were written")
        return content


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
    """Delete all checkpoints but the `keep` newest and that of step `best`, and tensors without a record.

    The record goes first, so that one without tensors never counts. Raises `ModgraphError`.
    """
    with writing(folder):
        for step in steps_in(folder)[:-keep]:
            if step != best:
                path_of(folder, step).with_suffix(".json").unlink(missing_ok=True)
        for step in {*steps_in(folder, ".safetensors"), *steps_in(folder, f"{AGAIN}.safetensors")}:
            _tidy_tensors(path_of(folder, step))


def _tidy_tensors(path: Path) -> None:
    """Delete the tensors of a step that no record names."""
    if not path.with_suffix(".json").exists():
        path.unlink(missing_ok=True)
        tensors_path(path, again=True).unlink(missing_ok=True)
    elif tensors_path(path, again=True).exists() and (kept := written_again(path)) is not None:
        tensors_path(path, again=not kept).unlink(missing_ok=True)


class Recorded(Protocol):
    """What is known of a checkpoint, with its tensors or without."""

    @property
    def step(self) -> int: ...
    @property
    def facts(self) -> dict[str, Any]: ...
    @property
    def origin(self) -> str: ...


R = TypeVar("R", bound=Recorded)


def newest(folder: Path, read: Callable[[Path], R], best: bool = False, origin: str | None = None) -> R | None:
    """The latest whole checkpoint of a folder, or with `best` the one that it calls the best; None if there is none.

    A training at work deletes or replaces old ones, perhaps just the one that is read: then its newest is looked for
    anew. Raises `ModgraphError` if it is damaged, or not of the run that began with the graph whose hash is `origin`.
    """
    while known := _newest_written(folder):
        try:
            found = read(path_of(folder, known[0]))
            step = found.facts.get("best_step") if best else None
            if isinstance(step, int) and step != found.step:
                found = read(path_of(folder, step))
            return _of_run(folder, found, origin)
        except ModgraphError:
            if _newest_written(folder) == known:
                raise
    return None


def _newest_written(folder: Path) -> tuple[int, bool | None] | None:
    """The step of the newest checkpoint of a folder, and which of the two names its tensors have."""
    steps = steps_in(folder)
    return (steps[-1], written_again(path_of(folder, steps[-1]))) if steps else None


def _of_run(folder: Path, found: R, origin: str | None) -> R:
    """The checkpoint. Raises `ModgraphError` if it is of another run."""
    if origin is not None and found.origin != origin:
        reason = "it is of another run, which began with another model"
        raise ModgraphError([BadCheckpoint(path=str(path_of(folder, found.step)), reason=reason)])
    return found


def newest_record(folder: Path, origin: str | None) -> CheckpointRecord | None:
    """The record of the checkpoint that a run ends with: its best, or its newest. Raises `ModgraphError`."""
    return newest(folder, CheckpointRecord.read, best=True, origin=origin)
