"""Small trainings of every kind, each in a few steps: to be killed, taken up, and compared with one that was not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from modgraph.cli import main
from modgraph.files import is_partial
from tests import continual_runs

PLAIN = """
model plain() {
  input  x: float[3]
  target y: class[2]
  z = x -> linear(4) -> relu -> dropout(0.2) -> linear(2)
  output z
  loss cross_entropy(z, y)
}
"""
SAMPLED = """
model drawn() {
  input  x: float[3]
  target y: float[2]
  pool   expert[3] = linear(2)
  router choose = categorical(1)
  z = x -> expert by choose
  output z
  loss gaussian(z, y, variance=0.1)
}
"""
IMAGES = """
model images() {
  input  image: float[3, 4, 4]
  target label: class[2]
  z = image -> flatten -> linear(2)
  output z
  loss cross_entropy(z, label)
}
"""
OFTEN: dict[str, Any] = {"epochs": 3, "batch": 6, "checkpoint_every": 2, "validation": 0.25}
BEST = {"best": "validation.total_loss", "keep": 1}


@dataclass(frozen=True)
class Training:
    """A spec, and the keys of its recipe; `start` names another whose weights it starts from."""

    spec: str
    train: dict[str, Any]
    data: Callable[[Path], dict[str, Any]]
    start: str | None = None
    overrides: dict[str, Any] = field(default_factory=dict)


def numbers(folder: Path, y: Any) -> dict[str, Any]:
    x = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)
    np.savez(folder / "data.npz", x=x, y=y(x))
    return {"name": "npz", "train": str(folder / "data.npz")}


def classes(folder: Path) -> dict[str, Any]:
    return numbers(folder, lambda x: (x.sum(1) > 0).astype(int))


def vectors(folder: Path) -> dict[str, Any]:
    return numbers(folder, lambda x: x[:, :2] * 0.5)


def tasks(folder: Path) -> dict[str, Any]:
    return continual_runs.data_section(folder)


def images(folder: Path) -> dict[str, Any]:
    for at, domain in enumerate("abc"):
        for kind in range(2):
            (folder / domain / str(kind)).mkdir(parents=True)
            for number in range(5 + 3 * at):
                Image.new("RGB", (4, 4), (90 * kind, 10 * number, 40 * at)).save(
                    folder / domain / str(kind) / f"{number}.png"
                )
    return {"name": "image_folders", "root": str(folder), "held_out": "c"}


TRAININGS = {
    "backprop": Training(PLAIN, {**OFTEN, **BEST}, classes),
    "em": Training(SAMPLED, {**OFTEN, "algorithm": {"name": "em", "samples": 3, "m_steps": 2}}, vectors),
    "reinforce": Training(SAMPLED, {**OFTEN, **BEST, "algorithm": "reinforce"}, vectors),
    "start": Training(PLAIN, {**OFTEN, "optimizer": {"name": "sgd", "momentum": 0.9}}, classes, start="backprop"),
    "continual": Training(continual_runs.SPEC, continual_runs.train_section(expand="always"), tasks),
    "groups": Training(IMAGES, {**OFTEN, **BEST, "by": "domain", "batch": 3}, images),
}


def written(name: str, home: Path) -> Path:
    """A training's spec, recipe and data in a folder."""
    training = TRAININGS[name]
    (home / f"{name}.data").mkdir()
    recipe: dict[str, Any] = {"data": training.data(home / f"{name}.data"), "train": training.train}
    if training.start is not None:
        recipe["start"] = {"run": str(home / training.start)}
    (home / f"{name}.mod").write_text(training.spec)
    (home / f"{name}.yaml").write_text(json.dumps(recipe))
    return home / f"{name}.mod"


def train(spec: Path, out: Path) -> None:
    """Begin a run, or go on with it if it has begun."""
    record = json.loads((out / "run.json").read_text()) if (out / "run.json").exists() else {"status": "none"}
    begun = record["status"] in ("started", "finished")
    assert main(["train", "--resume", str(out)] if begun else ["train", str(spec), "--out", str(out)]) == 0


def left_in(run: Path) -> dict[str, bytes]:
    """Every file of a run, but for the lock, seconds, and TensorBoard's. Raises `AssertionError` for what is not
    finished."""
    paths = [path for path in sorted(run.rglob("*")) if path.is_file() and path.name not in (".lock", "seconds.jsonl")]
    assert not [path for path in paths if is_partial(path.name)]
    return {str(path.relative_to(run)): path.read_bytes() for path in paths if path.parent.name != "tensorboard"}


def scalars_in(run: Path) -> set[tuple[int, str, float]]:
    """What TensorBoard shows: a value that was logged twice is the same both times."""
    return {
        (event.step, value.tag, value.tensor.float_val[0])
        for path in (run / "tensorboard").iterdir()
        for event in EventFileLoader(str(path)).Load()
        for value in event.summary.value
    }
