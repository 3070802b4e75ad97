"""Trainings with stored pools: checkpoints do not say whether a pool is stored, and growth goes on."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from modgraph.backends.torch.stored import StoredPool
from modgraph.cli import main
from modgraph.ir import grow
from modgraph.store.checkpoint import Checkpoint
from modgraph.training.engine import Engine
from modgraph.training.run import start_run
from modgraph.training.state import train_state
from tests.small_runs import change_graph, final_weights, take_step

SPEC = """
model small(modules=4) {
  input  x: float[5, 8]
  target y: class[3]
  pool   p[modules] = layer_norm -> linear(8) -> gelu -> linear(6)
  router r = noisy_top_k(2)
  z = x -> p by r -> mean -> linear(3)
  output z
  loss cross_entropy(z, y)
  loss importance(r)
}
"""
RECIPE = "data: {{name: npz, train: {folder}/data.npz}}\n"
RECIPE += "train: {{epochs: 2, batch: 8, precision: float64, clip: 1.0, optimizer: {{name: {optimizer}}}}}\n"


@pytest.fixture(params=["adamw", "sgd, momentum: 0.9"])
def small(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "data.npz", x=rng.standard_normal((40, 5, 8)), y=rng.integers(0, 3, 40))
    (tmp_path / "small.mod").write_text(SPEC)
    (tmp_path / "small.yaml").write_text(RECIPE.format(folder=tmp_path, optimizer=request.param))
    return tmp_path / "small.mod"


@contextmanager
def begin(spec: Path, name: str, pools: str) -> Iterator[Engine]:
    with start_run(str(spec), None, {"train.pools": pools}, str(spec.with_name(name))) as engine:
        yield engine


def is_stored(engine: Engine) -> bool:
    return isinstance(engine.state.model.lookup("p"), StoredPool)


def copy(checkpoint: Checkpoint) -> tuple[dict[str, Any], dict[str, Any]]:
    optimizer = {name: {k: v.clone() for k, v in each.items()} for name, each in checkpoint.optimizer.items()}
    return {name: each.clone() for name, each in checkpoint.weights.items()}, optimizer


def assert_same(one: tuple[Any, Any], other: tuple[Any, Any]) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
    assert one[0].keys() == other[0].keys()
    assert one[1].keys() == other[1].keys()


def test_checkpoints_have_the_same_names_and_numbers(small: Path) -> None:
    runs = {}
    for pools in ("stored", "modules"):
        with begin(small, pools, pools) as engine:
            assert is_stored(engine) == (pools == "stored")
            first = engine.checkpoint()
            engine.save()
            runs[pools] = [copy(first), final_weights(small.with_name(pools))]
            engine.run()
            runs[pools].append(copy(engine.checkpoint()))
    (stored, start, after), (modules, same, other) = runs.values()
    assert start == same, "the first checkpoints are not equal byte for byte"
    assert_same(stored, modules)
    assert_same(after, other)


@pytest.mark.some(2)
@pytest.mark.parametrize("pools", ["stored", "modules"])
def test_a_training_goes_on_with_the_other_storage(small: Path, pools: str) -> None:
    other = {"stored": "modules", "modules": "stored"}[pools]
    with begin(small, "whole", pools) as engine:
        for at in (0, 8, 16):
            take_step(engine, torch.arange(at, at + 8))
        expected = copy(engine.checkpoint())
    with begin(small, "changed", pools) as engine:
        take_step(engine, torch.arange(8))
        train = replace(engine.train, pools=other)
        engine.train = train
        engine.state = train_state(engine.graph, train, engine.phase, engine.processes, engine.checkpoint())
        assert is_stored(engine) == (other == "stored")
        for at in (8, 16):
            take_step(engine, torch.arange(at, at + 8))
        assert_same(copy(engine.checkpoint()), expected)


def test_a_pool_that_grows_is_as_one_that_is_not_stored(small: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "modgraph")
    found = []
    for pools in ("stored", "modules"):
        with begin(small, pools, pools) as engine:
            take_step(engine, torch.arange(8))
            change_graph(engine, grow(engine.graph, "p", 2))
            take_step(engine, torch.arange(8, 16))
            assert not is_stored(engine)
            said = "pool p is not stored: its modules have taken different numbers of steps"
            assert (said in caplog.messages) == (pools == "stored")
            caplog.clear()
            found.append(copy(engine.checkpoint()))
    assert_same(*found)


def test_a_recipe_that_asks_for_what_cannot_be_is_refused(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small.write_text(SPEC.replace("-> gelu", "-> dropout(0.5)"))
    assert main(["train", str(small), "-s", "train.pools=stored", "--out", str(small.with_name("run"))]) == 1
    error = capsys.readouterr().err
    assert 'pool "p" cannot be stored: dropout is random in training' in error
    assert "small.mod:5" in error
    assert main(["train", str(small), "-s", "train.pools=all", "--out", str(small.with_name("run"))]) == 1
    assert "auto" in capsys.readouterr().err
