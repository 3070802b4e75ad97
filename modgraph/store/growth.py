"""How a model grew in a continual training: a run's growth.jsonl and detections.jsonl, and both together. No torch.

A line of the first is a module that was added: what it is one of, and the edits that led there; a line of the second
is a pass over a task's data in which it was looked for what is new. Both are written by whoever trains, line by line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from modgraph.diagnostics import ModgraphError
from modgraph.files import read_file
from modgraph.ir import Edit, Graph, GrowthNode, InvalidGraph, OpNode, edit_from_json
from modgraph.ops.compared import Comparison
from modgraph.store.errors import DamagedGrowth
from modgraph.store.metrics import read_metrics
from modgraph.store.run_directory import RunDirectory

T = TypeVar("T")


@dataclass(frozen=True)
class Growth:
    """A module that was added to a pool in a task: its number there, the mean over the batch of how novel that was to
    each module there was, the batch, the place in the training, all edits of the graph since the line before, and the
    hash of the graph after them."""

    task: str
    pool: str
    module: int
    novelty: tuple[float, ...]
    batch: int
    epoch: int
    step: int
    edits: tuple[Edit, ...]
    hash: str

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "novelty": list(self.novelty), "edits": [edit.as_json() for edit in self.edits]}

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Growth:
        """What `as_json` wrote. Raises `InvalidGraph`, `KeyError`, `TypeError` or `ValueError` for anything else."""
        return cls(
            task=str(record["task"]),
            pool=str(record["pool"]),
            module=int(record["module"]),
            novelty=_numbers(record["novelty"]),
            batch=int(record["batch"]),
            epoch=int(record["epoch"]),
            step=int(record["step"]),
            edits=tuple(edit_from_json(edit) for edit in record["edits"]),
            hash=str(record["hash"]),
        )


@dataclass(frozen=True)
class Detection:
    """A pass over a task's data, the first of it being 0: how novel each batch was to each module of a pool."""

    task: str
    scan: int
    pool: str
    novelty: tuple[tuple[float, ...], ...]  # by batch and module

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "novelty": [list(batch) for batch in self.novelty]}

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Detection:
        """What `as_json` wrote. Raises `KeyError`, `TypeError` or `ValueError` for anything else."""
        novelty = tuple(_numbers(batch) for batch in record["novelty"])
        return cls(str(record["task"]), int(record["scan"]), str(record["pool"]), novelty)


def _numbers(values: Iterable[Any]) -> tuple[float, ...]:
    """Numbers as JSON has them, where null stands for those that it has not."""
    return tuple(math.nan if value is None else float(value) for value in values)


def read_growths(run: RunDirectory) -> list[Growth]:
    """The modules that were added, in their order. Raises `ModgraphError`."""
    return _lines(run.growth, Growth.read)


def read_detections(run: RunDirectory) -> list[Detection]:
    """The passes over data that looked for what is new, in their order. Raises `ModgraphError`."""
    return _lines(run.detections, Detection.read)


def _lines(path: Path, read: Callable[[Mapping[str, Any]], T]) -> list[T]:
    """What the lines of a log hold, none where there is no log; a last line without an end is being written."""
    if not path.exists():
        return []
    whole, _, _ = read_file(path).decode(errors="replace").rpartition("\n")
    found = []
    for number, text in enumerate(whole.splitlines(), start=1):
        try:
            found.append(read(json.loads(text)))
        except (AttributeError, InvalidGraph, KeyError, RecursionError, TypeError, ValueError) as error:
            raise ModgraphError([DamagedGrowth(path=str(path), line=number)]) from error
    return found


# ---------------------------------------------------------------- told together


def growth_of(run: RunDirectory) -> dict[str, Any] | None:
    """How a run's model grew, as `docs/trace.md` says; None where no task of it could grow. Raises `ModgraphError`."""
    growths, detections = read_growths(run), read_detections(run)
    if not growths and not detections:
        return None
    began = run.read_graph()
    tasks = _tasks(run, growths, detections)
    pools = {began.pool_of(node).name: _told(began, node, tasks, growths, detections) for node in began.growths()}
    return {"tasks": tasks, "pools": pools}


def _tasks(run: RunDirectory, growths: list[Growth], detections: list[Detection]) -> list[str]:
    """The tasks as they came."""
    measured = [str(line["task"]) for line in read_metrics(run) if "task" in line]
    return list(dict.fromkeys([*measured, *(each.task for each in detections), *(each.task for each in growths)]))


def _told(
    began: Graph, node: GrowthNode, tasks: list[str], growths: list[Growth], detections: list[Detection]
) -> dict[str, Any]:
    """What is told of one pool: its modules at the end of each task, what was added when, what was detected."""
    pool = began.pool_of(node)
    own = [each for each in growths if each.pool == pool.name]
    added = [sum(each.task == task for each in own) for task in tasks]
    return {
        "modules": [pool.size + sum(added[: at + 1]) for at in range(len(tasks))],
        "threshold": threshold_of(began, node),
        "added": [
            {name: value for name, value in each.as_json().items() if name not in ("pool", "edits", "hash")}
            for each in own
        ],
        "detections": [
            {name: value for name, value in each.as_json().items() if name != "pool"}
            for each in detections
            if each.pool == pool.name
        ],
    }


def threshold_of(graph: Graph, node: GrowthNode) -> float | None:
    """The number that a pool grows beyond, where its condition is one comparison with a number."""
    compared = graph[graph.inputs(node.name)["when"].node]
    if not isinstance(compared, OpNode) or not isinstance(compared.op, Comparison):
        return None
    return compared.op.right
