"""Trainings whose steps are compiled are those whose steps are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend

import modgraph
from modgraph import ModgraphError
from modgraph.backends.torch import Model
from modgraph.cli import main
from modgraph.training.compiled import compile_blocks, compile_step
from modgraph.training.run import finish, start_run
from modgraph.training.state import Objective
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
    with start_run(str(spec), None, overrides, str(tmp_path / "cut")) as engine:
        interrupt_at(engine, 14)
        with pytest.raises(KeyboardInterrupt):
            finish(engine)
    go_on(tmp_path / "cut")
    same(tmp_path / "cut", tmp_path / "plain")


@pytest.mark.slow
@pytest.mark.usefixtures("without_kernels")
@pytest.mark.parametrize("algorithm", ["em", "reinforce"])
def test_decisions_are_learnt_the_same_way(algorithm: str, tmp_path: Path) -> None:
    import numpy as np

    np.savez(tmp_path / "m.npz", **data().values)
    (tmp_path / "m.mod").write_text(MODULAR)
    train = f"{{algorithm: {algorithm}, epochs: 5, batch: 5}}"
    (tmp_path / "m.yaml").write_text(f"data: {{name: npz, train: {tmp_path}/m.npz}}\ntrain: {train}\n")
    both(tmp_path / "m.mod", tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("without_kernels")
def test_a_model_that_grows_is_compiled_anew(tmp_path: Path) -> None:
    both(continual_runs.lay_out_run(tmp_path), tmp_path)


@pytest.mark.slow
def test_kernels_train_the_same_way(spec: Path, tmp_path: Path) -> None:
    both(spec, tmp_path)


def stepped(module: nn.Module, model: Model, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """The losses of a step and its gradients, noise drawn as at any other time."""
    model.zero_grad()
    torch.manual_seed(0)
    losses: dict[str, Tensor] = module(batch)[1]
    torch.stack([each.mean() for each in losses.values()]).sum().backward()
    gradients = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
    return {name: each.detach().clone() for name, each in (losses | gradients).items()}


@pytest.mark.slow
def test_rounds_of_one_definition_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = CompileCounterWithBackend("aot_eager")
    monkeypatch.setattr("modgraph.training.compiled.BACKEND", counter)
    model = modgraph.load("specs/zoo/mixtral.mod", vocab_size=9, num_hidden_layers=4, num_local_experts=3).build()
    plain, blocks, said = Objective(model, []), Objective(model, []), list[str]()
    compile_blocks(blocks, model, said.append)
    for lengths in ([6, 6], [6, 2]):
        words = {name: torch.randint(9, (2, 6)) for name in ("words", "next")}
        batch = {**words, "time_length": torch.tensor(lengths)}
        expected, found = stepped(plain, model, batch), stepped(blocks, model, batch)
        assert expected.keys() == found.keys()
        for name, each in expected.items():
            torch.testing.assert_close(found[name], each, atol=0, rtol=0, msg=name)
    assert counter.frame_count == 1, "four rounds of one definition are one compilation"
    assert not said
    evaluated = model.eval().compute(batch).outputs["logits"]
    assert counter.frame_count == 1 and evaluated.isfinite().all(), "evaluations run as ever"


def test_a_model_without_rounds_and_blocks_says_that_nothing_is_compiled() -> None:
    model = modgraph.loads(
        "model m() { input x: float[2] y = x -> linear(1) -> mean(axis=-1) output y loss mse(y, x -> mean(axis=-1)) }"
    ).build()
    said = list[str]()
    compile_blocks(Objective(model, []), model, said.append)
    assert said == ["train.compile: blocks: the model has no rounds and no blocks to compile"]


@pytest.mark.usefixtures("without_kernels")
@pytest.mark.parametrize("quiet", [False, True])
def test_notices_of_compilation_are_lines_of_the_log(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], quiet: bool
) -> None:
    settings = ["-s", "train.compile=blocks", "-s", "train.epochs=1"]
    assert main(["train", str(spec), "--out", str(tmp_path / "run"), *settings, *(["-q"] if quiet else [])]) == 0
    said = capsys.readouterr().err
    assert ("the model has no rounds and no blocks to compile" in said) is not quiet, said


ROUNDS = """
model small(modules=3) {
  input  image: float[1, 8, 8]
  target label: class[10]
  pool   p[modules] = linear(8)
  router r = noisy_top_k(k=2)
  x = image -> conv(8, kernel=4, stride=4) -> tokens
  repeat layer[i] in 0..3 { x = x -> p by r -> dropout(0.1) }
  logits = x -> mean -> linear(10)
  output logits
  loss cross_entropy(logits, label)
}
"""


@pytest.mark.usefixtures("without_kernels")
def test_a_training_by_blocks_is_the_plain_one(spec: Path, tmp_path: Path) -> None:
    spec.write_text(ROUNDS)
    for name, how in (("plain", False), ("blocks", "blocks")):
        begin(spec, tmp_path / name, train__compile=how, train__epochs=2)
    same(tmp_path / "blocks", tmp_path / "plain")


def test_another_word_for_compile_is_refused(spec: Path, tmp_path: Path) -> None:
    with pytest.raises(ModgraphError) as caught:
        begin(spec, tmp_path / "run", train__compile="block")
    assert 'must be one of "blocks"' in str(caught.value)


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
    module, said = Broken(), list[str]()
    compile_step(module, said.append)
    for _ in range(2):
        assert module(torch.ones(3)).equal(torch.full((3,), 2.0))
    module(torch.ones(3)).sum().backward()
    assert module.weight.grad is not None and module.weight.grad.equal(torch.ones(3))
    assert len(said) == 1 and said[0].startswith("train.compile: the step is compiled in pieces"), said


def test_without_a_compiler_nothing_begins(spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor.cpp_builder import cpp_compiler_search

    monkeypatch.setenv("PATH", str(tmp_path))  # in which there is none
    cpp_compiler_search.cache_clear()
    with pytest.raises(ModgraphError) as caught:
        begin(spec, tmp_path / "run", train__compile=True)
    cpp_compiler_search.cache_clear()
    assert [each.code for each in caught.value.diagnostics] == ["MG875"]
    assert not (tmp_path / "run").exists()
