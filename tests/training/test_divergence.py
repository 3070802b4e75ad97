"""Trainings that go astray: what is told, and that no checkpoint and no file of theirs ever holds it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.metrics.accumulators import Accumulators
from modgraph.training.divergence import FiniteCheck
from modgraph.training.engine import Engine
from modgraph.training.progress import Progress
from modgraph.training.run import finish, resume_run, start_run
from modgraph.training.sections import EarlyStop, Train
from tests.small_runs import begin, dotted, go_on, interrupt_at

ASTRAY = {"train__optimizer__name": "sgd", "train__optimizer__lr": 1e30}


def message_of(caught: pytest.ExceptionInfo[ModgraphError]) -> str:
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "MG604"
    return diagnostic.text()


def tensors_of(run: Path) -> Iterator[Tensor]:
    for path in (run / "checkpoints").glob("*.safetensors"):
        yield from load_file(path).values()


def spoil(engine: Engine, step: int, name: str, value: float) -> None:
    """Let a gradient be no number at a step, whatever the loss is."""

    def hook(gradient: Tensor) -> Tensor:
        return torch.full_like(gradient, value) if engine.progress.step == step else gradient

    engine.state.named[name].register_hook(hook)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float64"])
def test_weights_that_are_no_numbers_after_a_last_finite_loss_are_reported(
    spec: Path, tmp_path: Path, precision: str
) -> None:
    """One step at a rate that no number holds: its loss is finite, and nothing else would look at the weights."""
    rate = 1e300 if precision == "float64" else 1e38
    options = {**ASTRAY, "train__optimizer__lr": rate, "train__optimizer__weight_decay": rate, "train__epochs": 1}
    with pytest.raises(ModgraphError) as caught:
        begin(spec, tmp_path / "run", **options, train__batch=480, train__precision=precision)
    assert "is not finite at step 1" in message_of(caught)
    assert not list((tmp_path / "run/checkpoints").glob("*"))
    assert json.loads((tmp_path / "run/run.json").read_text())["status"] == "started"


@pytest.mark.parametrize("clip", [None, 1.0])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_gradient_that_is_no_number_is_reported_by_name(
    spec: Path, tmp_path: Path, clip: float | None, value: float
) -> None:
    with start_run(str(spec), None, dotted({"train__clip": clip}), str(tmp_path / "run")) as engine:
        name = list(engine.state.named)[1]
        spoil(engine, 13, name, value)
        with pytest.raises(ModgraphError) as caught:
            finish(engine)
    assert message_of(caught) == f"the gradient of {name} is not finite at step 13"
    assert all(tensor.isfinite().all() for tensor in tensors_of(tmp_path / "run"))


def test_a_run_that_went_astray_goes_on_from_its_last_good_checkpoint(spec: Path, tmp_path: Path) -> None:
    whole = begin(spec, tmp_path / "whole")
    with start_run(str(spec), None, {}, str(tmp_path / "run")) as engine, pytest.raises(ModgraphError):
        spoil(engine, 25, next(iter(engine.state.named)), float("nan"))
        finish(engine)
    with resume_run(str(tmp_path / "run")) as engine:
        assert engine.progress.step == 20
        spoil(engine, 25, next(iter(engine.state.named)), float("nan"))
        with pytest.raises(ModgraphError):
            finish(engine)
    assert go_on(tmp_path / "run") == whole


def test_a_norm_that_overflows_is_reported_only_where_clipping_needs_it() -> None:
    weight = torch.nn.Parameter(torch.zeros(4))
    weight.grad = torch.full((4,), 1e30)
    FiniteCheck(1).gradients({"w": weight}, 5, None)
    with pytest.raises(ModgraphError) as caught:
        FiniteCheck(1).gradients({"w": weight}, 5, 1.0)
    assert message_of(caught) == "the norm of the gradient, which clipping needs, is inf at step 5"


def test_clipping_is_that_of_torch(spec: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    own, theirs = ([torch.nn.Parameter(torch.zeros(3, n)) for n in range(1, 9)] for _ in range(2))
    for one, other in zip(own, theirs, strict=True):
        one.grad = torch.randn(one.shape, generator=generator)
        other.grad = one.grad.clone()
    FiniteCheck(1).gradients({str(i): each for i, each in enumerate(own)}, 0, 0.1)
    torch.nn.utils.clip_grad_norm_(theirs, 0.1)
    for one, other in zip(own, theirs, strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert torch.equal(one.grad, other.grad)


# ------------------------------------------------------------ JSON


def strict(text: str) -> Any:
    return json.loads(text, parse_constant=pytest.fail)


def test_files_and_output_of_a_run_without_numbers_are_json(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every metric is made infinite or not a number; the training itself is sound, and is left and taken up."""
    out = tmp_path / "run"
    plain = Accumulators.averages
    monkeypatch.setattr(Accumulators, "averages", lambda self: {name: float("nan") for name in plain(self)})
    monkeypatch.setattr(Accumulators, "mean", lambda self, name: float("nan"))
    options = {"train.validation": 0.2, "train.best": "validation.total_loss", "train.checkpoint_every": 3}
    with pytest.raises(KeyboardInterrupt), start_run(str(spec), None, options, str(out)) as engine:
        engine.accumulators.add("accuracy", float("inf"), 1.0)
        interrupt_at(engine, 5)
        finish(engine)
    (record,) = (strict(path.read_text()) for path in (out / "checkpoints").glob("*.json"))
    assert record["facts"]["accumulators"]["sums"]["accuracy"] == "inf"
    assert main(["train", "--resume", str(out)]) == 0
    metrics = strict(capsys.readouterr().out.splitlines()[-1])
    assert metrics["test.total_loss"] is None
    assert metrics["best_step"] is None
    assert strict((out / "run.json").read_text())["metrics"] == metrics
    lines = [strict(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert {line["accuracy"] for line in lines} == {None}
    for path in (out / "checkpoints").glob("*.json"):
        assert strict(path.read_text())["facts"]["best"] is None
    assert main(["eval", str(out), "--json", "--detail"]) == 0
    assert strict(capsys.readouterr().out)["test.accuracy"] is None


def test_averages_that_are_no_numbers_come_back_as_they_were() -> None:
    accumulators = Accumulators()
    for name, value in {"a": 0.1, "b": float("inf"), "c": -float("inf"), "d": float("nan")}.items():
        accumulators.add(name, value, 3.0)
    text = json.dumps(accumulators.facts(), allow_nan=False)
    assert repr(Accumulators.read(json.loads(text))) == repr(accumulators)
    for wrong in ({"sums": {"a": True}}, {"sums": {"a": None}}, {"sums": {"a": "1"}}, {"sums": {"a": "infinity"}}):
        with pytest.raises(ValueError, match="mean"):
            Accumulators.read({"weights": {"a": 1.0}, **wrong})


@pytest.mark.parametrize("metric", ["accuracy", "total_loss"])
def test_a_value_that_is_no_number_is_never_the_best(metric: str) -> None:
    train = Train(best=metric, early_stop=EarlyStop(metric=metric, patience=3))
    nothing = [float("nan"), float("inf"), -float("inf")]
    progress, seen = Progress(), list[tuple[float | None, int | None, bool]]()
    for value in (*nothing[:2], 0.5, *nothing):
        progress = replace(progress, step=progress.step + 1)
        progress = progress.close_epoch(train, {"train": {metric: value}}, {metric: metric == "accuracy"})
        seen.append((progress.best, progress.best_step, progress.enough))
    assert seen == [(None, None, False)] * 2 + [(0.5, 3, False)] * 3 + [(0.5, 3, True)]
