"""The growth of a model in a continual training, from the logs of its run. Needs no torch.

A training appends to growth.jsonl edits of the graph, to detections.jsonl scans of batches for novelty, and to
tasks.jsonl the metrics at the end of each task. Readers of a line raise `KeyError`, `TypeError` or `ValueError` where
it is no record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from modgraph.ir import Graph, GrowthNode, OpNode, edit_from_json
from modgraph.ops.compared import Comparison
from modgraph.store.journal import Journal
from modgraph.store.run_directory import RunDirectory

ADDED = ("task", "module", "novelty", "batch", "epoch", "step")  # the fields of an added module
DETECTED = ("task", "scan", "novelty", "batch")
Record = Mapping[str, Any]


def read_edits(record: Record) -> dict[str, Any]:
    """Read edits of the graph in a task, their place in the training, and the hash of the graph after them.

    If they added a module to a pool, the record has its number, the batch that triggered it, and the batch's mean
    novelty to each earlier module, if the router records it.
    """
    found = {
        "task": str(record["task"]),
        "epoch": int(record["epoch"]),
        "step": int(record["step"]),
        "edits": tuple(edit_from_json(edit) for edit in record["edits"]),
        "hash": str(record["hash"]),
        "pool": record.get("pool"),
    }
    if found["pool"] is None:
        return found
    grown = {"module": int(record["module"]), "batch": int(record["batch"])}
    return found | grown | {"novelty": _optional(_numbers, record["novelty"])}


def read_detection(record: Record) -> dict[str, Any]:
    """Read a scan of batches of a task, the first scan of the training being 0: the novelty of each batch to each
    module of a pool, by batch and module, and the batch that made the pool grow, if one did."""
    return {
        "task": str(record["task"]),
        "scan": int(record["scan"]),
        "pool": str(record["pool"]),
        "novelty": tuple(map(_numbers, record["novelty"])),
        "batch": _optional(int, record["batch"]),
    }


def read_end(record: Record) -> dict[str, Any]:
    """Read the metrics at the end of a task: the accuracy on all tasks so far, if the model has one, and on each."""
    accuracies = dict(zip(record["accuracies"], _numbers(record["accuracies"].values()), strict=True))
    return {
        "task": str(record["task"]),
        "accuracy": _optional(float, record.get("accuracy")),
        "accuracies": accuracies,
    }


def _numbers(values: Iterable[Any]) -> tuple[float, ...]:
    """Read numbers from JSON, where null stands for NaN."""
    return tuple(math.nan if value is None else float(value) for value in values)


def _optional(read: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else read(value)


def read_growth(run: RunDirectory) -> dict[str, Any] | None:
    """Return how a run's model grew, as `docs/trace.md` describes; None for a run without tasks. Raises
    `ModgraphError`."""
    edits, ends = Journal(run.growth).read(read_edits), Journal(run.tasks).read(read_end)
    detections = Journal(run.detections).read(read_detection)
    tasks = list(dict.fromkeys(each["task"] for each in (*ends, *detections, *edits)))
    if not tasks:
        return None
    began = run.read_graph()
    pools: dict[str, Any] = {}
    for node in began.growths():
        pool = began.pool_of(node)
        own = [each for each in edits if each["pool"] == pool.name]
        scans = [each for each in detections if each["pool"] == pool.name]
        added = [sum(each["task"] == task for each in own) for task in tasks]
        pools[pool.name] = {
            "modules": [pool.size + sum(added[: at + 1]) for at in range(len(tasks))],
            "threshold": find_threshold(began, node),
            "added": [{name: each[name] for name in ADDED} for each in own],
            "detections": [{name: each[name] for name in DETECTED} for each in scans],
        }
    return {"tasks": tasks, "accuracies": ends, "pools": pools}


def find_threshold(graph: Graph, node: GrowthNode) -> float | None:
    """Return the number that a pool's condition compares with, where it is one comparison with a number."""
    compared = graph[graph.inputs(node.name)["when"].node]
    if not isinstance(compared, OpNode) or not isinstance(compared.op, Comparison):
        return None
    return compared.op.right
