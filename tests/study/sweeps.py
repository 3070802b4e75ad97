"""A small spec with a recipe, and sweeps of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from modgraph.diagnostics import ModgraphError, render_all
from modgraph.study.file import read_sweep_file
from modgraph.study.plan import Plan, make_plan
from modgraph.study.sweep import Sweep

SPEC = """
model net(experts=2, width=8, heads=2, sparse=[0], scale=1.0) {
  input  x: float[5, 4]
  target label: class[2]
  tokens = x -> linear(width)
  h = tokens -> attention(heads) -> mean
  pool expert[experts] = linear(width) -> relu
  gates = h -> linear(expert) -> softmax
  y = h -> expert by gates
  logits = y -> linear(2)
  output logits
  loss cross_entropy(logits, label)
}
"""
RECIPE = """
model: {width: 12}
data: {name: npz, train: FOLDER/data.npz}
train: {epochs: 1, batch: 8, optimizer: {name: sgd, lr: 0.1}}
"""


def lay_out_spec(folder: Path) -> Path:
    """Write a spec, its recipe, and 16 examples."""
    import numpy as np

    generator = np.random.default_rng(0)
    x = generator.normal(size=(16, 5, 4)).astype("float32")
    np.savez(folder / "data.npz", x=x, label=(x.sum((1, 2)) > 0).astype("int64"))
    (folder / "net.mod").write_text(SPEC)
    (folder / "net.yaml").write_text(RECIPE.replace("FOLDER", str(folder)))
    return folder / "net.mod"


def plan(folder: Path, **facts: Any) -> Plan:
    """Plan one sweep of the spec in a folder."""
    return make_plan([Sweep(spec=folder / "net.mod", **facts)], folder / "out")


def plan_file(folder: Path, text: str) -> Plan:
    """Plan the sweeps of a file in the current folder, NET for the spec."""
    path = folder / "sweep.yaml"
    path.write_text(text.replace("NET", "net.mod"))
    found = read_sweep_file(path)
    return make_plan(found.sweeps, folder / "out", found.tables)


def find_mistakes(folder: Path, text: str) -> str:
    """The rendered mistakes of a sweep file."""
    try:
        plan_file(folder, text)
    except ModgraphError as error:
        return render_all(error.diagnostics)
    raise AssertionError("the file has no mistake")
