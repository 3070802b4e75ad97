"""The values of trained weights, without torch: those of a run's checkpoint, and a name for any."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from modgraph.diagnostics import ModgraphError
from modgraph.files import read_file, reason_of
from modgraph.store.checkpoint_record import newest_record, path_of
from modgraph.store.errors import BadCheckpoint
from modgraph.store.run_directory import RunDirectory

if TYPE_CHECKING:
    from numpy import ndarray

WEIGHT = "weight."  # what the names of weights begin with among the tensors of a checkpoint


def weights_of_run(run: RunDirectory) -> dict[str, ndarray] | None:
    """The weights of a run's best checkpoint, or its newest, by name; None where there is none.

    Raises `ModgraphError`.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    record = newest_record(run.checkpoints, run.read_graph().hash())
    if record is None:
        return None
    path = path_of(run.checkpoints, record.step)
    try:
        content = read_file(path)
        if hashlib.sha256(content).hexdigest() != record.sha256:
            raise ValueError("its tensors are not those that were written")
        tensors = load(content)
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
