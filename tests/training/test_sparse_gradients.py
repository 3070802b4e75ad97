"""Sparse gradients of large tables: a training uses them where its optimizer moves only rows, and learns the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import modgraph
from modgraph.backends.torch import Model, build
from modgraph.backends.torch.step_memory import Rehearsal
from modgraph.passes.gradients import drop_sparse_gradients

SPEC = """model m(sparse=true) {
  input words: token[5, 40] target label: class[3]
  weight w: float[40, 8] = normal(1.0)
  logits = (w, words) -> lookup(sparse=sparse) -> mean -> linear(3)
  output logits loss cross_entropy(logits, label) }"""


def train(out: Path, optimizer: str, sparse: bool, **more: object) -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(0)
    data = {"train": {"words": rng.integers(0, 40, (24, 5)), "label": rng.integers(0, 3, 24)}}
    recipe = {"train": {"epochs": 1, "batch": 8, "optimizer": {"name": optimizer, "lr": 0.1}, **more}}
    run = modgraph.train(modgraph.loads(SPEC, sparse=sparse), recipe, data=data, out=out)
    return {name: each.clone() for name, each in run.model().state_dict().items()}


@pytest.mark.parametrize(("optimizer", "more"), [("sgd", {}), ("adam", {}), ("sgd", {"clip": 1.0})])
def test_a_training_learns_the_same(optimizer: str, more: dict[str, object], tmp_path: Path) -> None:
    sparse, dense = (train(tmp_path / str(each), optimizer, each, **more) for each in (True, False))
    assert sparse.keys() == dense.keys()
    for name, each in dense.items():
        torch.testing.assert_close(sparse[name], each)


def gradient_of(model: Model) -> torch.Tensor:
    batch = {"words": torch.tensor([[1, 2, 2, 3, 1]]), "label": torch.tensor([0])}
    model.compute(batch).loss.backward()  # type: ignore[no-untyped-call]
    found = model.get_parameter("w").grad
    assert found is not None
    return found


def test_the_gradient_has_the_rows_that_were_read() -> None:
    graph = modgraph.loads(SPEC).ir
    sparse, dense = gradient_of(build(graph, seed=0)), gradient_of(build(drop_sparse_gradients(graph), seed=0))
    assert sparse.is_sparse and not dense.is_sparse
    assert sparse.coalesce().indices().tolist() == [[1, 2, 3]], "other rows"
    torch.testing.assert_close(sparse.to_dense(), dense)


def test_the_memory_of_a_step_is_measured_with_dense_gradients() -> None:
    assert Rehearsal(modgraph.loads(SPEC).ir, "float32").measure(2, {}).most > 0
