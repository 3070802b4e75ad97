"""Checkpoints: tensors in safetensors, facts in JSON beside them, nothing pickled.

A checkpoint counts only if its JSON is there and names the hash of its tensors; the JSON is written last, and has a
digest over itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from modgraph.diagnostics import ModgraphError
from modgraph.files import read_file, reason_of, write_atomically, writing
from modgraph.store.errors import BadCheckpoint
from modgraph.store.records import sealed, unsealed

FORMAT = 1
WEIGHT, OPTIMIZER, STATE = "weight.", "optimizer.", "state."
NAME = re.compile(r"step-([0-9]{8}|[1-9][0-9]{8,})")
READ_ERRORS = (OSError, ValueError, TypeError, RecursionError, SafetensorError)


@dataclass(frozen=True)
class Checkpoint:
    """The state after some steps: weights, optimizer state by `<field>.<weight>`, where in the training it is, and what
    its algorithm keeps."""

    epoch: int
    step: int
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    facts: dict[str, Any] = field(default_factory=dict)
    state: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class _Record:
    """What stands beside the tensors. Raises `ValueError` if it cannot be."""

    epoch: int
    step: int
    sha256: str
    torch: str
    facts: dict[str, Any]

    def __post_init__(self) -> None:
        kinds = {"epoch": int, "step": int, "sha256": str, "torch": str, "facts": dict}
        for name, kind in kinds.items():
            if type(getattr(self, name)) is not kind:
                raise ValueError(f"its {name} is {getattr(self, name)!r}")

    @classmethod
    def read(cls, path: Path) -> _Record:
        """The record beside a file of tensors; one without a format is older than digests."""
        content = json.loads(read_file(path.with_suffix(".json")))
        if not isinstance(content, dict):
            raise ValueError("its record is none")
        if "format" in content:
            content = unsealed(content)
            if content.pop("format") != FORMAT:
                raise ValueError("it is of a format that this version does not read")
        record = cls(**content)
        if path_of(path.parent, record.step) != path:
            raise ValueError(f"its record is that of step {record.step}")
        return record


def write_checkpoint(folder: Path, checkpoint: Checkpoint, keep: int = 2, best: int | None = None) -> Path:
    """Write a checkpoint whole or not at all, and `tidy` its folder. Raises `ModgraphError`."""
    tensors = {WEIGHT + name: tensor for name, tensor in checkpoint.weights.items()}
    tensors |= {OPTIMIZER + name: tensor for name, tensor in checkpoint.optimizer.items()}
    tensors |= {STATE + name: tensor for name, tensor in checkpoint.state.items()}
    content = save({name: tensor.detach().cpu().contiguous() for name, tensor in sorted(tensors.items())})
    path = path_of(folder, checkpoint.step)
    sha256 = hashlib.sha256(content).hexdigest()
    record = _Record(checkpoint.epoch, checkpoint.step, sha256, str(torch.__version__), checkpoint.facts)
    with writing(folder):
        folder.mkdir(exist_ok=True)
    write_atomically(path, content)
    write_atomically(path.with_suffix(".json"), sealed({"format": FORMAT, **asdict(record)}))
    tidy(folder, keep, best)
    return path


def path_of(folder: Path, step: int) -> Path:
    """Where the tensors of a step's checkpoint stand."""
    return folder / f"step-{step:08}.safetensors"


def steps_in(folder: Path, suffix: str = ".json") -> list[int]:
    """The steps of the checkpoints in a folder, whose records tell; anything of another name is none."""
    named = (NAME.fullmatch(path.stem) for path in folder.glob(f"step-*{suffix}"))
    return sorted(int(match[1]) for match in named if match)


def tidy(folder: Path, keep: int, best: int | None) -> None:
    """Delete all checkpoints but the `keep` newest and that of step `best`, and tensors without a record.

    The record goes first, so that one without tensors never counts. Raises `ModgraphError`.
    """
    with writing(folder):
        for step in steps_in(folder)[:-keep]:
            if step != best:
                path_of(folder, step).with_suffix(".json").unlink(missing_ok=True)
        for step in set(steps_in(folder, ".safetensors")) - set(steps_in(folder)):
            path_of(folder, step).unlink(missing_ok=True)


def newest_checkpoint(folder: Path, best: bool = False) -> Checkpoint | None:
    """The latest whole checkpoint of a folder, or with `best` the one that it calls the best; None if there is none.

    A training at work deletes old ones, perhaps just the one that is read: then its newest is looked for anew. Raises
    `ModgraphError` if the checkpoint is damaged.
    """
    while steps := steps_in(folder):
        try:
            newest = read_checkpoint(path_of(folder, steps[-1]))
            step = newest.facts.get("best_step") if best else None
            return read_checkpoint(path_of(folder, step)) if isinstance(step, int) else newest
        except ModgraphError:
            if steps_in(folder)[-1:] == steps[-1:]:
                raise
    return None


def read_checkpoint(path: Path) -> Checkpoint:
    """A checkpoint from its tensors' file. Raises `ModgraphError`."""
    try:
        record = _Record.read(path)
        content = read_file(path)
        if hashlib.sha256(content).hexdigest() != record.sha256:
            raise ValueError("its tensors are not those that were written")
        tensors = load(content)
    except READ_ERRORS as error:
        raise ModgraphError([BadCheckpoint(path=str(path), reason=reason_of(error))]) from error
    weights, optimizer, state = (_below(prefix, tensors) for prefix in (WEIGHT, OPTIMIZER, STATE))
    return Checkpoint(record.epoch, record.step, weights, optimizer, record.facts, state)


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): each for name, each in tensors.items() if name.startswith(prefix)}


def optimizer_tensors(optimizer: torch.optim.Optimizer, names: list[str]) -> dict[str, Tensor]:
    """An optimizer's state by `<field>.<weight>`; `names` are those of its parameters, in order."""
    state = optimizer.state_dict()["state"]
    return {
        f"{key}.{names[index]}": torch.as_tensor(value)
        for index, fields in state.items()
        for key, value in fields.items()
        if value is not None
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, names: list[str], tensors: dict[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` gave."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        key, _, weight = name.partition(".")
        state.setdefault(names.index(weight), {})[key] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
