"""The confusion matrices of a run's test splits, in `confusion.json`. Needs no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from modgraph.files import write_atomically
from modgraph.store.records import seal, unseal
from modgraph.store.run_directory import FINISHED, RunDirectory

SPLITS = "splits"  # the key of confusion.json


@dataclass(frozen=True)
class Matrix:
    """How often each class (by row) was taken for each other one (by column)."""

    classes: Sequence[str]
    counts: Sequence[Sequence[int]]


Matrices = Mapping[str, Mapping[str, Matrix]]  # by split and target


def keep_confusion(run: RunDirectory, found: Matrices) -> None:
    """Write the matrices of a run; without any, an earlier file goes. Raises `ModgraphError`."""
    splits = {split: {target: asdict(each) for target, each in by_target.items()} for split, by_target in found.items()}
    if any(splits.values()):
        write_atomically(run.confusion, seal({SPLITS: splits}))
    else:
        run.confusion.unlink(missing_ok=True)


def read_confusion(run: RunDirectory) -> Matrices:
    """Read the matrices of a finished run, none where it has none. Raises `ModgraphError` if they are damaged."""
    content = run.content(run.confusion) if run.read_record()["status"] == FINISHED else None
    if content is None:
        return {}
    try:
        splits = unseal(json.loads(content))[SPLITS]
        return {
            split: {target: Matrix(**each) for target, each in by_target.items()} for split, by_target in splits.items()
        }
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise run.fault(f"{run.confusion.name} is damaged") from error
