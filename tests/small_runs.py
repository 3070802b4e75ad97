"""A small net on scikit-learn's digits, as a user would lay it out."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from modgraph.ir import Graph
from modgraph.metrics.accumulators import Accumulators
from modgraph.nn.device import Transfer
from modgraph.store.journal import seal_logs
from modgraph.store.records import seal, unseal
from modgraph.store.run_directory import RunDirectory
from modgraph.training.engine import Engine
from modgraph.training.named_parts import check_monitored
from modgraph.training.run import finish, resume_run, start_run
from modgraph.training.state import train_state

SPEC = """
model digits(hidden=16) {
  input  image: float[1, 8, 8]
  target label: class[10]
  logits = image -> flatten -> linear(hidden) -> relu -> dropout(0.2) -> linear(10)
  output logits
  loss cross_entropy(logits, label)
}
"""
RECIPE = """
data: {{name: npz, train: {folder}/digits.npz}}
train: {{epochs: 4, batch: 50, optimizer: {{name: {optimizer}, lr: 0.01}}, schedule: cosine}}
"""


def lay_out_run(folder: Path) -> Path:
    """A spec and a recipe beside it, with 600 digits."""
    from sklearn.datasets import load_digits

    data = load_digits()
    np.savez(folder / "digits.npz", image=data.images[:600, None] / 16, label=data.target[:600])
    (folder / "digits.mod").write_text(SPEC)
    (folder / "digits.yaml").write_text(RECIPE.format(folder=folder, optimizer="adam"))
    return folder / "digits.mod"


def begin(spec: Path, out: Path, **overrides: Any) -> dict[str, Any]:
    """Train a spec to the end; keywords are keys of the recipe, `__` for a dot."""
    with start_run(str(spec), None, dotted(overrides), str(out)) as engine:
        return finish(engine)


def go_on(out: Path) -> dict[str, Any]:
    with resume_run(str(out)) as engine:
        return finish(engine)


def dotted(overrides: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("__", "."): value for name, value in overrides.items()}


def final_weights(run: Path) -> bytes:
    return sorted((run / "checkpoints").glob("*.safetensors"))[-1].read_bytes()


def reseal(run: Path, *files: str) -> None:
    """Bring the digests of some files of a run, and those of its logs in its checkpoints, to what they hold now."""
    path = run / "run.json"
    record = unseal(json.loads(path.read_text()))
    digests = {name: hashlib.sha256((run / name).read_bytes()).hexdigest() for name in files}
    path.write_bytes(seal({**record, "files": {**record["files"], **digests}}))
    logs = seal_logs(RunDirectory(run))
    for path in (run / "checkpoints").glob("*.json"):
        record = unseal(json.loads(path.read_text()))
        path.write_bytes(seal({**record, "facts": {**record["facts"], "logs": logs}}))


def interrupt_at(engine: Engine, step: int) -> None:
    """Press Ctrl-C before a step."""
    plain = engine._step

    def until_cut(indices: Tensor, read: Transfer) -> None:
        if engine.progress.step == step:
            raise KeyboardInterrupt
        plain(indices, read)

    engine._step = until_cut  # type: ignore[method-assign]


def take_step(engine: Engine, examples: Tensor) -> None:
    """A step on some examples, read when it begins."""
    engine._step(examples, engine.reader.read(engine.phase.data, examples, engine.progress.step))


def change_graph(engine: Engine, graph: Graph) -> None:
    """Go on with another graph in the middle of a phase: what both have goes on as it was, what is new begins afresh.
    Raises `ModgraphError`, the state then as it was."""
    check_monitored(graph, engine.train, engine.phase.splits)
    engine.state = train_state(graph, engine.train, engine.phase, engine.processes, engine.checkpoint())
    engine.accumulators = Accumulators()
