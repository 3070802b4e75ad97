"""Checkpoints: tensors in safetensors, facts in JSON beside them, nothing pickled.

A checkpoint counts only if its JSON is there and names the hash of its tensors; the JSON is written last.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from modgraph.diagnostics import ModgraphError
from modgraph.files import write_atomically
from modgraph.training.errors import BadCheckpoint

WEIGHT, OPTIMIZER, STATE = "weight.", "optimizer.", "state."


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
    epoch: int
    step: int
    sha256: str
    torch: str
    facts: dict[str, Any]


def write_checkpoint(folder: Path, checkpoint: Checkpoint, keep: int = 2, best: int | None = None) -> Path:
    """Write a checkpoint whole or not at all, and delete those before the `keep` newest, except that of step `best`.

    Raises `ModgraphError`.
    """
    tensors = {WEIGHT + name: tensor for name, tensor in checkpoint.weights.items()}
    tensors |= {OPTIMIZER + name: tensor for name, tensor in checkpoint.optimizer.items()}
    tensors |= {STATE + name: tensor for name, tensor in checkpoint.state.items()}
    content = save({name: tensor.detach().cpu().contiguous() for name, tensor in sorted(tensors.items())})
    path = path_of(folder, checkpoint.step)
    sha256 = hashlib.sha256(content).hexdigest()
    record = _Record(checkpoint.epoch, checkpoint.step, sha256, torch.__version__, checkpoint.facts)
    write_atomically(path, content)
    write_atomically(path.with_suffix(".json"), (json.dumps(asdict(record), indent=2) + "\n").encode())
    _tidy(folder, keep, None if best is None else path_of(folder, best))
    return path


def path_of(folder: Path, step: int) -> Path:
    """Where the tensors of a step's checkpoint stand."""
    return folder / f"step-{step:08}.safetensors"


def _tidy(folder: Path, keep: int, best: Path | None) -> None:
    """Delete old checkpoints: first the record, so that one without tensors never counts."""
    for record in sorted(folder.glob("step-*.json"))[:-keep]:
        if best is None or record.stem != best.stem:
            record.unlink(missing_ok=True)
    for tensors in folder.glob("step-*.safetensors"):
        if not tensors.with_suffix(".json").exists():
            tensors.unlink(missing_ok=True)


def newest_checkpoint(folder: Path) -> Checkpoint | None:
    """The latest whole checkpoint of a folder, or None if there is none. Raises `ModgraphError` if it is damaged."""
    records = sorted(folder.glob("step-*.json"))
    return read_checkpoint(records[-1].with_suffix(".safetensors")) if records else None


def read_checkpoint(path: Path) -> Checkpoint:
    """A checkpoint from its tensors' file. Raises `ModgraphError`."""
    try:
        record = _Record(**json.loads(path.with_suffix(".json").read_text()))
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != record.sha256:
            raise ValueError("its tensors are not those that were written")
        tensors = load(content)
    except (OSError, ValueError, TypeError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "it is damaged"
        raise ModgraphError([BadCheckpoint(path=str(path), reason=reason)]) from error
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
