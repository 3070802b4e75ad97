"""A small net that grows while it learns three tasks, as a user would lay it out: 60 examples, 30 to 40 steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from modgraph.ir import Graph, replay_edits
from modgraph.store.growth import read_edits
from modgraph.store.journal import Journal
from modgraph.store.run_directory import RunDirectory

SPEC = """
router novel() for adapter, descriptor {
  input x: float[tokens, dim]
  gates = x -> linear(adapter) -> softmax
  seen = x -> mean(axis=tokens) -> stop_gradient
  error = ((seen -> descriptor) - seen) ** 2 -> mean(axis=-1)
  state errors: float[adapter, 20] = zeros
  next errors = (errors, error) -> keep_recent
  far = error / ((errors -> mean(axis=-1)) + 0.001)
  record gates, far: novelty, error: other
  y = x -> adapter by gates
  output y
}

model growing(adapters=1, layers=[1, 1], classes=2) {
  input  x: float[2, 3]
  target y: class[kind=classes]
  h = x
  repeat layer[i] in 0..len(layers) {
    pool   adapter[layers[i]] = linear(4) -> tanh -> linear(3)
    pool   descriptor[adapter] = linear(2) -> linear(3)
    router r = novel
    h = h + (h -> linear(3) -> tanh) + (h -> adapter by r(descriptor))
    grow adapter by r when (r.far -> batch_mean -> min(axis=-1)) > 3 where i > 0
    loss novelty[i] = r.error -> mean(axis=-1)
  }
  z = h -> mean -> dropout(0.2) -> linear(kind, name="head")
  output z
  loss cross_entropy(z, y)
}
"""
TASKS = {"a": {"classes": [0, 1]}, "b": {"classes": [2, 3]}, "c": {"classes": [4, 5]}}
PHASES = {
    "functional": {"losses": ["cross_entropy"], "epochs": 2, "lr": 0.1},
    "descriptors": {"losses": ["novelty.*"], "epochs": 2, "lr": 0.02},
}


def train_section(**algorithm: Any) -> dict[str, Any]:
    """A recipe's section `train`; keywords are keys of the algorithm."""
    return {
        "algorithm": {"name": "continual", "phases": PHASES, **algorithm},
        "batch": 6,
        "checkpoint_every": 2,
        "validation": 0.25,
        "optimizer": {"name": "sgd", "momentum": 0.9, "weight_decay": 0.01},
    }


def data_section(folder: Path) -> dict[str, Any]:
    """Its section `data`, whose arrays are written into a folder: each task lies elsewhere."""
    rng, y = np.random.default_rng(0), np.repeat(np.arange(6), 10)
    x = rng.standard_normal((60, 2, 3)) + 2.0 * (y // 2)[:, None, None] + (y % 2)[:, None, None]
    np.savez(folder / "tasks.npz", x=x.astype(np.float32), y=y)
    of = {"name": "npz", "train": str(folder / "tasks.npz")}
    return {"name": "task_sequence", "of": of, "target": "y", "input": "x", "tasks": TASKS}


def lay_out_run(folder: Path, **algorithm: Any) -> Path:
    """The spec, and the recipe beside it."""
    (folder / "growing.mod").write_text(SPEC)
    recipe = {"data": data_section(folder), "train": train_section(**algorithm)}
    (folder / "growing.yaml").write_text(json.dumps(recipe))
    return folder / "growing.mod"


def replayed_graph(run: RunDirectory) -> Graph:
    """The first graph of a run after all edits of its log."""
    edits = (edit for line in Journal(run.growth).read(read_edits) for edit in line["edits"])
    return replay_edits(run.read_graph(), edits)
