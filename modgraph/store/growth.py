"""How a model grew in a continual training, as the run tells: growth.jsonl, detections.jsonl, tasks.jsonl. No torch.

They are written line by line while the training goes on: edits of the graph, looks at batches for what is new, and what
was measured at the end of each task.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from modgraph.ir import Edit, Graph, GrowthNode, OpNode, edit_from_json
from modgraph.ops.compared import Comparison
from modgraph.store.journal import Journal
from modgraph.store.run_directory import RunDirectory

ADDED = ("task", "module", "novelty", "batch", "epoch", "step")  # what is told of a module that was added
DETECTED = ("task", "scan", "novelty", "batch")


@dataclass(frozen=True)
class Edited:
    """Edits of the graph in a task, where in the training that was, and the hash of the graph after them. Where they
    made a pool grow: the number of the new module, the batch that asked for it, and how novel that was, in the mean, to
    each module there was, if its router tells."""

    task: str
    epoch: int
    step: int
    edits: tuple[Edit, ...]
    hash: str
    pool: str | None = None
    module: int | None = None
    batch: int | None = None
    novelty: tuple[float, ...] | None = None

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Edited:
        """Raises `KeyError`, `TypeError` or `ValueError` where the record is none."""
        edits = tuple(edit_from_json(edit) for edit in record["edits"])
        place = str(record["task"]), int(record["epoch"]), int(record["step"]), edits, str(record["hash"])
        if record.get("pool") is None:
            return cls(*place)
        novelty = None if record["novelty"] is None else _numbers(record["novelty"])
        return cls(*place, str(record["pool"]), int(record["module"]), int(record["batch"]), novelty)


@dataclass(frozen=True)
class Detection:
    """A look at batches of a task, the first of the training being 0: how novel each was to each module of a pool, and
    the batch by which that grew, if it did."""

    task: str
    scan: int
    pool: str
    novelty: tuple[tuple[float, ...], ...]  # by batch and module
    batch: int | None = None

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Detection:
        """Raises `KeyError`, `TypeError` or `ValueError` where the record is none."""
        novelty = tuple(_numbers(batch) for batch in record["novelty"])
        batch = None if record["batch"] is None else int(record["batch"])
        return cls(str(record["task"]), int(record["scan"]), str(record["pool"]), novelty, batch)


def _numbers(values: Iterable[Any]) -> tuple[float, ...]:
    """Numbers as JSON has them, where null stands for those that it has not."""
    return tuple(math.nan if value is None else float(value) for value in values)


def _end_of_task(record: Mapping[str, Any]) -> dict[str, Any]:
    """What was measured at the end of a task: the accuracy on all tasks so far, if the model has one, and on each.
    Raises `KeyError`, `TypeError` or `ValueError` where the record is none."""
    accuracies = dict(zip(record["accuracies"], _numbers(record["accuracies"].values()), strict=True))
    whole = record.get("accuracy")
    return {"task": str(record["task"]), "accuracy": None if whole is None else float(whole), "accuracies": accuracies}


def growth_of(run: RunDirectory) -> dict[str, Any] | None:
    """How a run's model grew, as `docs/trace.md` says; None of a run without tasks. Raises `ModgraphError`."""
    edits, ends = Journal(run.growth).read(Edited.read), Journal(run.tasks).read(_end_of_task)
    detections = Journal(run.detections).read(Detection.read)
    named = [*(each["task"] for each in ends), *(each.task for each in detections), *(each.task for each in edits)]
    tasks = list(dict.fromkeys(named))
    if not tasks:
        return None
    began = run.read_graph()
    pools: dict[str, Any] = {}
    for node in began.growths():
        pool = began.pool_of(node)
        own = [each for each in edits if each.pool == pool.name]
        looks = [each for each in detections if each.pool == pool.name]
        added = [sum(each.task == task for each in own) for task in tasks]
        pools[pool.name] = {
            "modules": [pool.size + sum(added[: at + 1]) for at in range(len(tasks))],
            "threshold": threshold_of(began, node),
            "added": [{name: getattr(each, name) for name in ADDED} for each in own],
            "detections": [{name: getattr(each, name) for name in DETECTED} for each in looks],
        }
    return {"tasks": tasks, "accuracies": ends, "pools": pools}


def threshold_of(graph: Graph, node: GrowthNode) -> float | None:
    """The number that a pool grows beyond, where its condition is one comparison with a number."""
    compared = graph[graph.inputs(node.name)["when"].node]
    if not isinstance(compared, OpNode) or not isinstance(compared.op, Comparison):
        return None
    return compared.op.right
