"""Every bit of a small checkpoint and of a run's files: changed, it is refused or makes no difference."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from modgraph.diagnostics import ModgraphError
from modgraph.store.checkpoint import read_newest_checkpoint
from modgraph.training.run import finish, start_run
from modgraph.training.stored_run import load_run
from tests.assault.campaign import campaign
from tests.assault.damage import PARTS, damaged

SPEC = """
model small() {
  input  x: float[2]
  target y: class[2]
  z = x -> linear(2)
  output z
  loss cross_entropy(z, y)
}
"""
RECIPE = "data: {{name: npz, train: {folder}/data.npz}}\ntrain: {{epochs: 1, batch: 4, best: accuracy}}\n"
OF_RUN = ("run.json", "recipe.yaml", "ir.json", "spec.mod", "data.json")


@cache
def trained() -> tuple[tempfile.TemporaryDirectory[str], Path]:
    """A run of two steps, in a folder that lives as long as this process."""
    folder = tempfile.TemporaryDirectory()
    home = Path(folder.name)
    np.savez(home / "data.npz", x=np.eye(10, 2, dtype=np.float32), y=np.arange(10) % 2)
    (home / "small.mod").write_text(SPEC)
    (home / "small.yaml").write_text(RECIPE.format(folder=home))
    with start_run(str(home / "small.mod"), None, {}, str(home / "run")) as engine:
        finish(engine)
    return folder, home / "run"


def checkpoint_of(run: Path) -> Any:
    """All that is taken up from a checkpoint."""
    found = read_newest_checkpoint(run / "checkpoints", best=True)
    assert found is not None
    optimizer = {f"{key}.{name}": each for name, fields in found.optimizer.items() for key, each in fields.items()}
    kinds = (found.weights, optimizer, found.state)
    tensors = [
        {name: (each.dtype, each.shape, each.numpy().tobytes()) for name, each in kind.items()} for kind in kinds
    ]
    return found.epoch, found.step, found.facts, tensors


def settings_of(run: Path) -> Any:
    """All that is taken up from a run's other files."""
    found = load_run(run)
    return found.graph.hash(), found.recipe.to_yaml(), found.fingerprints, found.directory.read_record()


def assault_on(path: Path, read: Callable[[Path], Any], run: Path, part: int) -> Counter[str]:
    """What becomes of one file's damages."""
    whole, plain, counts = path.read_bytes(), read(run), Counter[str]()
    name = path.suffix if path.parent != run else path.name
    try:
        for kind, content in damaged(whole, part):
            path.write_bytes(content)
            try:
                found = read(run)
            except ModgraphError:
                counts[f"{name} {kind}: refused"] += 1
            else:
                assert found == plain, (name, kind, content)
                counts[f"{name} {kind}: no effect"] += 1
    finally:
        path.write_bytes(whole)
    return counts


def assault(part: int) -> Counter[str]:
    _, run = trained()
    counts = Counter[str]()
    for path in sorted((run / "checkpoints").iterdir()):
        counts += assault_on(path, checkpoint_of, run, part)
    for name in OF_RUN:
        counts += assault_on(run / name, settings_of, run, part)
    return counts


def test_a_run_with_a_bit_changed_is_refused_or_the_same() -> None:
    counts = assault(0)
    assert counts[".safetensors flipped: refused"] > 50
    assert counts[".json flipped: refused"] > 25
    for name in OF_RUN:
        assert counts[f"{name} flipped: refused"] > 5


@pytest.mark.slow
def test_every_bit_of_a_run() -> None:
    counts = campaign("checkpoint_bits", assault, PARTS)
    _, run = trained()
    (tensors,) = (run / "checkpoints").glob("*.safetensors")
    assert counts[".safetensors flipped: refused"] == 8 * tensors.stat().st_size
    flips = sum(count for kind, count in counts.items() if "flipped" in kind)
    assert flips > 8 * sum((run / name).stat().st_size for name in OF_RUN)
