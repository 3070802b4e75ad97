"""Facts of runs, and folders of runs that no training wrote, for tests of tables."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from modgraph.ir import Graph, to_json
from modgraph.program import loads
from modgraph.store.records import seal
from modgraph.tables.facts import RunFacts

SPEC = """model net(experts=2) {
  input  x: float[4]
  target label: class[3]
  logits = x -> linear(8 * experts) -> relu -> linear(3)
  output logits
  loss cross_entropy(logits, label)
}
"""
HISTORY = [
    {"step": 10, "epoch": 1, "split": "train", "total_loss": 1.0},
    {"step": 20, "epoch": 2, "split": "train", "total_loss": 0.5},
]


def make_seeds(name: str, values: Sequence[float], metric: str = "test.accuracy", **settings: Any) -> list[RunFacts]:
    """Facts of runs that differ in their seeds."""
    return [
        RunFacts(
            Path(f"{name}{seed}"),
            f"{name}{seed}",
            "finished",
            settings={"train.seed": seed, **settings},
            metrics={metric: value},
        )
        for seed, value in enumerate(values)
    ]


@cache
def build_graph(experts: int) -> Graph:
    return loads(SPEC, experts=experts).ir


@cache
def store_graph(experts: int) -> bytes:
    return json.dumps(to_json(build_graph(experts))).encode()


def write_run(
    folder: Path,
    experts: int = 2,
    seed: int = 0,
    metrics: Mapping[str, float | None] | None = None,
    recipe: Mapping[str, Any] | None = None,
    history: Sequence[Mapping[str, Any]] = (),
    seconds: float | None = None,
    status: str = "finished",
    start: Path | None = None,
) -> Path:
    """Write the folder of a run as a training leaves it, without weights."""
    folder.mkdir(parents=True)
    train = {"seed": seed, "epochs": 2, "optimizer": {"name": "adam", "lr": 0.001}, "validation": 0.0}
    content = {"model": {"experts": experts}, "data": {"name": "npz", "seed": 0}, "train": {**train, **(recipe or {})}}
    content |= {} if start is None else {"start": {"run": str(start)}}
    files = {
        "spec.mod": SPEC.encode(),
        "ir.json": store_graph(experts),
        "recipe.yaml": json.dumps(content).encode(),
        "data.json": b'{"format": 1, "splits": {}}',
    }
    for name, text in files.items():
        (folder / name).write_bytes(text)
    log = "".join(json.dumps(line) + "\n" for line in history).encode()
    if log:
        (folder / "metrics.jsonl").write_bytes(log)
    digests = {name: hashlib.sha256(text).hexdigest() for name, text in files.items()}
    record: dict[str, Any] = {"status": status, "files": digests, "step": 0, "format": 2, "modgraph": "0.1.0"}
    if status == "finished":
        logs = {"metrics.jsonl": {"bytes": len(log), "sha256": hashlib.sha256(log).hexdigest()}} if log else {}
        record |= {"metrics": {"epochs": 2, "steps": 20, **(metrics or {})}, "logs": logs}
    (folder / "run.json").write_bytes(seal(record))
    if seconds is not None:
        (folder / "seconds.jsonl").write_text(json.dumps({"since": 0, "step": 20, "seconds": seconds}) + "\n")
    return folder


def write_sweep(folder: Path, points: Sequence[Mapping[str, Any]], **facts: Any) -> None:
    """Write the record of a sweep whose runs may follow."""
    content = {"format": 1, "modgraph": "0.1.0", "command": "modgraph sweep …", "repeats": {}, "tables": {}}
    folder.mkdir(parents=True, exist_ok=True)
    named = [{"identity": point["run"], **point} for point in points]
    (folder / "sweep.json").write_bytes(seal({**content, "points": named, **facts}))
