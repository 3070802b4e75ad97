"""Checkpoints: tensors in safetensors, next to them a record in JSON, nothing pickled."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from modgraph.files import write_atomically, writing
from modgraph.ir import EACH, Graph
from modgraph.store.checkpoint_record import (
    WEIGHT,
    CheckpointRecord,
    has_second_name,
    newest,
    path_of,
    tensors_path,
    tidy,
)
from modgraph.store.rows import stack_rows

OPTIMIZER, STATE = "optimizer.", "state."
COMMON = ("epoch", "step", "facts", "graph", "origin")  # the fields that a checkpoint and its record share
OptimizerState = dict[str, dict[str, Tensor]]


class Tensors(dict[str, Tensor]):
    """Tensors by name. `expert.17.linear.weight` is also a row of `expert.*.linear.weight`, that of a large pool."""

    def __missing__(self, name: str) -> Tensor:
        parts = name.split(".")
        for at, part in enumerate(parts):
            whole = ".".join((*parts[:at], EACH, *parts[at + 1 :]))
            if part.isdecimal() and whole in self and int(part) < len(self[whole]):
                return self[whole][int(part)]
        raise KeyError(name)


@dataclass(frozen=True)
class Checkpoint:
    """The state of a training after `step` steps.

    `weights` are by name, `optimizer` by weight and field. `facts` say where in the training it is, `state` has the
    tensors of the algorithm. `graph` is the model's, `origin` the hash of the graph that the run began with, and `path`
    the file that it was read from.
    """

    epoch: int
    step: int
    weights: dict[str, Tensor] = field(repr=False)
    optimizer: OptimizerState = field(repr=False)
    facts: dict[str, Any] = field(default_factory=dict, repr=False)
    state: Mapping[str, Tensor] = field(default_factory=dict, repr=False)
    graph: Graph = field(kw_only=True, repr=False)
    origin: str = field(kw_only=True)
    path: str = ""


def write_checkpoint(folder: Path, checkpoint: Checkpoint, keep: int = 2, best: int | None = None) -> Path:
    """Write a checkpoint atomically and `tidy` its folder. Raises `ModgraphError`."""
    tensors = {WEIGHT + name: tensor for name, tensor in checkpoint.weights.items()}
    for weight, fields in checkpoint.optimizer.items():
        tensors |= {f"{OPTIMIZER}{key}.{weight}": tensor for key, tensor in fields.items()}
    tensors |= {STATE + name: tensor for name, tensor in checkpoint.state.items()}
    stacked = sorted(stack_rows({name: tensor.detach().cpu() for name, tensor in tensors.items()}, torch.stack).items())
    content = save({name: tensor.contiguous() for name, tensor in stacked})
    path = path_of(folder, checkpoint.step)
    again, digest = has_second_name(path) is False, hashlib.sha256(content).hexdigest()
    common = {name: getattr(checkpoint, name) for name in COMMON}
    record = CheckpointRecord(**common, sha256=digest, torch=str(torch.__version__), again=again)
    with writing(folder):
        folder.mkdir(exist_ok=True)
    write_atomically(tensors_path(path, again), content)
    write_atomically(path.with_suffix(".json"), record.as_bytes())
    tidy(folder, keep, best)
    return path


def read_newest_checkpoint(folder: Path, best: bool = False, origin: str | None = None) -> Checkpoint | None:
    """Read the newest checkpoint of a run's folder, or its best, as `newest` does. Raises `ModgraphError`."""
    return newest(folder, read_checkpoint, best, origin)


def read_checkpoint(path: Path, record: CheckpointRecord | None = None) -> Checkpoint:
    """Read a checkpoint from the file of its tensors. Raises `ModgraphError`."""
    record = record or CheckpointRecord.read(path)
    parts: dict[str, dict[str, Tensor]] = {WEIGHT: {}, OPTIMIZER: {}, STATE: {}}
    for name, tensor in record.tensors(path, load).items():
        kind, dot, rest = name.partition(".")
        parts.get(kind + dot, {})[rest] = tensor
    optimizer: OptimizerState = {}
    for name, tensor in parts[OPTIMIZER].items():
        key, _, weight = name.partition(".")
        optimizer.setdefault(weight, {})[key] = tensor
    common = {name: getattr(record, name) for name in COMMON}
    return Checkpoint(**common, weights=Tensors(parts[WEIGHT]), optimizer=optimizer, state=parts[STATE], path=str(path))


def optimizer_state(optimizer: torch.optim.Optimizer, names: list[str]) -> OptimizerState:
    """Return an optimizer's state by weight and field; `names` are those of its parameters, in order.

    The order is the same in every process, whatever order a file was read in, since processes gather the state
    together.
    """
    state = optimizer.state_dict()["state"]
    return {
        names[index]: {key: torch.as_tensor(value) for key, value in sorted(fields.items()) if value is not None}
        for index, fields in sorted(state.items())
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, names: list[str], kept: OptimizerState) -> None:
    """Restore the state of `optimizer_state` for the weights that exist; the state of others begins afresh."""
    state = {index: dict(kept[name]) for index, name in enumerate(names) if name in kept}
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
