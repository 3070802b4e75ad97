"""The values of trained weights, without torch: those of a run's checkpoint, and a name for any."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from modgraph.diagnostics import ModgraphError
from modgraph.files import reason_of
from modgraph.store.checkpoint_record import WEIGHT, CheckpointRecord, newest_record, path_of
from modgraph.store.errors import BadCheckpoint
from modgraph.store.run_directory import RunDirectory

if TYPE_CHECKING:
    from numpy import ndarray


def weights_of_run(run: RunDirectory) -> dict[str, ndarray] | None:
    """The weights of a run's best checkpoint, or its newest, by name; None where there is none.

    Raises `ModgraphError`.
    """
    record = newest_record(run.checkpoints, run.origin())
    return None if record is None else weights_of_checkpoint(path_of(run.checkpoints, record.step), record)


def weights_of_checkpoint(path: Path, record: CheckpointRecord) -> dict[str, ndarray]:
    """The weights of the checkpoint whose tensors stand at a path, by name. Raises `ModgraphError`."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        tensors = load(record.tensors(path))
    except (OSError, ValueError, SafetensorError) as error:
        raise ModgraphError([BadCheckpoint(path=str(path), reason=reason_of(error))]) from error
    return {name.removeprefix(WEIGHT): each for name, each in tensors.items() if name.startswith(WEIGHT)}


def hash_of_values(weights: Mapping[str, ndarray]) -> str:
    """A name for weights: SHA-256 over names, shapes and values."""
    digest = hashlib.sha256()
    for name, values in sorted(weights.items()):
        digest.update(f"{name} {list(values.shape)}\n".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()
