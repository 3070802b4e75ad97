"""Trainings whose steps are compiled are those whose steps are not."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from modgraph import ModgraphError
from modgraph.training.compiled import Compiled
from modgraph.training.run import finish, started
from tests import continual_runs
from tests.small_runs import begin, dotted, go_on, interrupt_at
from tests.training.modular_in_numpy import SPEC as MODULAR
from tests.training.test_algorithms import data


@pytest.fixture
def without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are traced, there and back, and their operations then called one by one: a C++ compiler takes longer."""
    monkeypatch.setattr("modgraph.training.compiled.BACKEND", "aot_eager")


def weights(run: Path) -> dict[str, Tensor]:
    return load_file(sorted((run / "checkpoints").glob("*.safetensors"))[-1])


def same(run: Path, other: Path, atol: float = 1e-6) -> None:
    found, expected = weights(run), weights(other)
    assert found.keys() == expected.keys()
    for name, each in expected.items():
        torch.testing.assert_close(found[name], each, atol=atol, rtol=1e-5, msg=name)


def both(spec: Path, folder: Path, **overrides: Any) -> None:
    """Train with and without, and hold weights and metrics against each other."""
    plain, compiled = (begin(spec, folder / str(on), train__compile=on, **overrides) for on in (False, True))
    assert compiled == pytest.approx(plain, rel=1e-4)
    same(folder / "True", folder / "False")


@pytest.mark.usefixtures("without_kernels")
def test_a_compiled_training_is_the_plain_one_interrupted_or_not(spec: Path, tmp_path: Path) -> None:
    begin(spec, tmp_path / "plain", train__epochs=2)
    overrides = dotted({"train__epochs": 2, "train__compile": True, "train__checkpoint_every": 3})
    with started(str(spec), None, overrides, str(tmp_path / "cut")) as engine:
        interrupt_at(engine, 14)
        with pytest.raises(KeyboardInterrupt):
            finish(engine)
    go_on(tmp_path / "cut")
    same(tmp_path / "cut", tmp_path / "plain")


@pytest.mark.slow
@pytest.mark.usefixtures("without_kernels")
@pytest.mark.parametrize("algorithm", ["em", "reinforce"])
def test_decisions_are_learnt_alike(algorithm: str, tmp_path: Path) -> None:
    import numpy as np

    np.savez(tmp_path / "m.npz", **data().values)
    (tmp_path / "m.mod").write_text(MODULAR)
    train = f"{{algorithm: {algorithm}, epochs: 5, batch: 5}}"
    (tmp_path / "m.yaml").write_text(f"data: {{name: npz, train: {tmp_path}/m.npz}}\ntrain: {train}\n")
    both(tmp_path / "m.mod", tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("without_kernels")
def test_a_model_that_grows_is_compiled_anew(tmp_path: Path) -> None:
    both(continual_runs.laid_out(tmp_path), tmp_path)


@pytest.mark.slow
def test_kernels_train_alike(spec: Path, tmp_path: Path) -> None:
    both(spec, tmp_path)


class Broken(nn.Module):
    """What torch cannot take whole."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        y = x * self.weight
        torch._dynamo.graph_break()
        return y + 1


@pytest.mark.usefixtures("without_kernels")
def test_what_cannot_be_compiled_whole_is_compiled_in_pieces_and_says_so_once() -> None:
    module, said = Broken(), io.StringIO()
    step = Compiled(module, said)
    for _ in range(2):
        assert step(torch.ones(3)).equal(torch.full((3,), 2.0))
    step(torch.ones(3)).sum().backward()
    assert module.weight.grad is not None and module.weight.grad.equal(torch.ones(3))
    assert said.getvalue().count("train.compile: the step is compiled in pieces") == 1
    assert len(said.getvalue().splitlines()) == 1


def test_without_a_compiler_nothing_begins(spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor.cpp_builder import cpp_compiler_search

    monkeypatch.setenv("PATH", str(tmp_path))  # in which there is none
    cpp_compiler_search.cache_clear()
    with pytest.raises(ModgraphError) as told:
        begin(spec, tmp_path / "run", train__compile=True)
    cpp_compiler_search.cache_clear()
    assert [each.code for each in told.value.diagnostics] == ["MG875"]
    assert not (tmp_path / "run").exists()
