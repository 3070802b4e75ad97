"""A run whose model has grown, as a continual training leaves it: trained a little, then edited by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from modgraph.backends.torch import build
from modgraph.ir import Edit, Freeze, Grow, replayed
from modgraph.store.checkpoint import Checkpoint, newest_checkpoint, write_checkpoint
from modgraph.store.run_directory import RunDirectory
from tests.examples import NOVEL
from tests.small_runs import begin

POOLS = ("blocks.0.adapter", "blocks.1.adapter")
TASKS = ("second", "third")


def grown_run(folder: Path) -> Path:
    """Two growths of two tasks, of the first pool then of the second; each later checkpoint has all old values."""
    rng = np.random.default_rng(0)
    np.savez(folder / "data.npz", x=rng.random((32, 5, 6), np.float32), label=np.arange(32) % 3)
    (folder / "growing.mod").write_text(NOVEL)
    recipe = (
        f"model: {{first: 0}}\ndata: {{name: npz, train: {folder}/data.npz}}\ntrain: {{epochs: 1, batch: 8, keep: 9}}"
    )
    (folder / "growing.yaml").write_text(recipe)
    begin(folder / "growing.mod", folder / "run")
    run = RunDirectory(folder / "run")
    for at, (task, pool) in enumerate(zip(TASKS, POOLS, strict=True)):
        _grow(run, task, pool, [Freeze(), Grow(pool)] if at == 0 else [Freeze(but=("head.*",)), Grow(pool)])
    return folder / "run"


def _grow(run: RunDirectory, task: str, pool: str, edits: list[Edit]) -> None:
    before = newest_checkpoint(run.checkpoints)
    assert before is not None and before.graph is not None
    graph = replayed(before.graph, edits)
    modules = graph.pools()[pool].size
    weights = build(graph, 0).state_dict()
    with torch.no_grad():
        for name, old in before.weights.items():
            weights[name][tuple(map(slice, old.shape))] = old
    step = before.step + 10
    facts = {**before.facts, "best_step": None}
    write_checkpoint(run.checkpoints, Checkpoint(before.epoch, step, weights, {}, facts, {}, graph, before.origin), 9)
    batches = [[0.5 + 0.1 * batch + module for module in range(modules - 1)] for batch in range(5)]
    batches[-1] = [2.0 + module + 0.5 for module in range(modules - 1)]
    after = [[*batch, 0.1] for batch in batches[:4]]
    other = POOLS[1 - POOLS.index(pool)]
    quiet = [[0.3] * graph.pools()[other].size] * 5
    where = {"task": task, "number": 1 + TASKS.index(task), "growth": f"{pool}.growth"}
    freeze, grow = edits
    for changes, grown in (([freeze], {}), ([grow], {"pool": pool, "module": modules - 1, "batch": 4})):
        of = replayed(before.graph, edits[: 1 + edits.index(changes[0])])
        told = {**grown, "novelty": batches[-1]} if grown else {}
        record = {**where, **told, "epoch": before.epoch, "step": step, "edits": [each.as_json() for each in changes]}
        _append(run.growth, {**record, "hash": of.hash()})
    for scan, novelty, batch in ((0, batches, 4), (1, after, None)):
        _append(run.detections, {**where, "scan": scan, "pool": pool, "novelty": novelty, "batch": batch})
    _append(run.detections, {**where, "scan": 0, "pool": other, "novelty": quiet, "batch": None})
    accuracies = {name: 0.5 + 0.25 * at for at, name in enumerate(TASKS[: 1 + TASKS.index(task)])}
    _append(run.tasks, {**where, "accuracy": 0.5, "accuracies": accuracies})


def _append(path: Path, record: object) -> None:
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")
