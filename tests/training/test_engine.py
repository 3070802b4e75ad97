"""Training: that it learns, what a recipe can ask of it, and what it says when it cannot go on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.metrics.metrics import measure
from modgraph.training.run import finish, resume_run, start_run
from modgraph.training.stored_run import load_run
from tests.small_runs import SPEC, begin, dotted, go_on


def test_training_learns_and_leaves_a_whole_run(spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    assert main(["train", str(spec), "--out", str(out), "-s", "train.epochs=15", "-s", "hidden=32"]) == 0
    metrics = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert metrics["test.accuracy"] > 0.8
    names = {path.name for path in out.iterdir()}
    assert names - {".lock"} == set(
        "spec.mod ir.json recipe.yaml data.json run.json metrics.jsonl steps.jsonl seconds.jsonl confusion.json "
        "tensorboard checkpoints".split()
    )
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == list(range(1, 16))
    assert lines[-1]["total_loss"] < lines[0]["total_loss"]
    run = load_run(out)
    assert run.graph.parameters == {"hidden": 32}
    assert not run.model().training
    assert main(["eval", str(out), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["test.accuracy"] == pytest.approx(metrics["test.accuracy"])
    assert main(["cost", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"] == 64 * 32 + 32 + 32 * 10 + 10


def test_it_stops_early_when_the_metric_is_reached(spec: Path, tmp_path: Path) -> None:
    metrics = begin(spec, tmp_path / "run", train__early_stop__at=0.15, train__epochs=50)
    assert metrics["epochs"] < 50
    assert go_on(tmp_path / "run") == metrics


def test_a_run_is_not_overwritten(spec: Path, tmp_path: Path) -> None:
    begin(spec, tmp_path / "run", train__epochs=1)
    with pytest.raises(ModgraphError, match="already contains a run"):
        begin(spec, tmp_path / "run")


def test_a_loss_that_is_not_a_number_stops_the_training(spec: Path, tmp_path: Path) -> None:
    with pytest.raises(ModgraphError, match="the loss is"):
        begin(spec, tmp_path / "run", train__optimizer__name="sgd", train__optimizer__lr=1e30)


def test_there_must_be_something_to_learn(spec: Path, tmp_path: Path) -> None:
    spec.write_text(SPEC.replace("loss cross_entropy(logits, label)", ""))
    with pytest.raises(ModgraphError, match="declares no loss"):
        begin(spec, tmp_path / "run")


DATA_MISTAKES = {
    "shape": ({"image": np.zeros((5, 8, 8)), "label": np.zeros(5, int)}, "needs 4 axes"),
    "size": ({"image": np.zeros((5, 1, 9, 8)), "label": np.zeros(5, int)}, "needs 8 where it has 9"),
    "missing": ({"image": np.zeros((5, 1, 8, 8))}, 'no array "label"'),
    "range": ({"image": np.zeros((5, 1, 8, 8)), "label": np.full(5, 10)}, "allows 0 to 9"),
    "negative": ({"image": np.zeros((5, 1, 8, 8)), "label": np.full(5, -1)}, "allows 0 to 9"),
    "real label": ({"image": np.zeros((5, 1, 8, 8)), "label": np.zeros(5)}, "whole numbers"),
    "nan": ({"image": np.full((5, 1, 8, 8), np.nan), "label": np.zeros(5, int)}, "infinite, NaN or too large"),
    "text": ({"image": np.full((5, 1, 8, 8), "x"), "label": np.zeros(5, int)}, "not numbers"),
    "numbers differ": ({"image": np.zeros((5, 1, 8, 8)), "label": np.zeros(4, int)}, "has 4 examples"),
    "empty": ({"image": np.zeros((0, 1, 8, 8)), "label": np.zeros(0, int)}, "no examples"),
}


@pytest.mark.parametrize("mistake", DATA_MISTAKES)
def test_arrays_that_do_not_fit_are_reported(spec: Path, tmp_path: Path, mistake: str) -> None:
    arrays, words = DATA_MISTAKES[mistake]
    np.savez(tmp_path / "digits.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(ModgraphError, match=words):
        begin(spec, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04junk", b"\x80\x04\x95", b"hello"])
def test_files_that_are_no_npz_are_reported(spec: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "digits.npz").write_bytes(content)
    with pytest.raises(ModgraphError) as caught:
        begin(spec, tmp_path / "run")
    assert caught.value.diagnostics[0].code == "MG510"


def test_pickled_arrays_are_refused(spec: Path, tmp_path: Path) -> None:
    objects = np.array([{"a": 1}] * 5, dtype=object)
    np.savez(tmp_path / "digits.npz", image=objects, label=np.zeros(5, int))
    with pytest.raises(ModgraphError, match=r"(?i)pickle"):
        begin(spec, tmp_path / "run")


@pytest.mark.parametrize(
    "command", [["train"], ["train", "--resume", "nowhere"], ["eval", "nowhere"], ["cost", "specs"]]
)
def test_commands_without_a_run_say_so(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 1
    assert "error[MG" in capsys.readouterr().err


def test_the_best_epoch_is_what_a_run_ends_with(spec: Path, tmp_path: Path) -> None:
    """A rate that first learns and then ruins: the best is in the middle, and evaluation and export use it."""
    options = {"train__epochs": 6, "train__validation": 0.25, "train__best": "validation.accuracy", "train__keep": 1}
    metrics = begin(spec, tmp_path / "run", **options, train__optimizer__lr=0.3)
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    measured = {line["step"]: line["accuracy"] for line in lines if line["split"] == "validation"}
    assert len(measured) == 6
    assert measured[metrics["best_step"]] == max(measured.values())
    run = load_run(tmp_path / "run")
    assert run.checkpoint().step == metrics["best_step"]
    validation = measure(run.model(), run.splits()["validation"])
    assert validation["accuracy"] == pytest.approx(max(measured.values()))


def test_patience_ends_a_training_that_no_longer_improves(spec: Path, tmp_path: Path) -> None:
    stop = {"train__early_stop__metric": "validation.total_loss", "train__early_stop__patience": 2}
    metrics = begin(spec, tmp_path / "run", train__epochs=60, train__validation=0.3, train__optimizer__lr=0.1, **stop)
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    losses = [line["total_loss"] for line in lines if line["split"] == "validation"]
    assert metrics["epochs"] == len(losses) < 60
    assert min(losses) == losses[-3]


def test_validation_examples_are_not_learnt_from(spec: Path, tmp_path: Path) -> None:
    begin(spec, tmp_path / "run", train__epochs=1, train__validation=0.25)
    splits = load_run(tmp_path / "run").splits()
    rows = {name: {row.tobytes() for row in arrays.values["image"]} for name, arrays in splits.items()}
    assert len(splits["validation"]) == 120
    assert len(splits["train"]) == 360
    assert not rows["train"] & rows["validation"]


def test_clipping_bounds_the_move(spec: Path, tmp_path: Path) -> None:
    """One step of plain descent at rate 1 moves all weights by the gradient: at most by its largest norm."""
    settings = {"train__batch": 480, "train__epochs": 1, "train__optimizer__name": "sgd", "train__optimizer__lr": 1.0}
    with start_run(str(spec), None, dotted({**settings, "train__clip": 0.01}), str(tmp_path / "run")) as engine:
        before = [weight.detach().clone() for weight in engine.state.named.values()]
        finish(engine)
        moves = [(new - old).flatten() for new, old in zip(engine.state.named.values(), before, strict=True)]
    assert torch.cat(moves).norm().item() == pytest.approx(0.01, rel=1e-4)


def test_ignored_labels_and_class_weights_are_as_if_computed_by_hand(spec: Path, tmp_path: Path) -> None:
    data = dict(np.load(tmp_path / "digits.npz"))
    data["label"][::3] = 255
    np.savez(tmp_path / "digits.npz", **data)
    with pytest.raises(ModgraphError, match="allows 0 to 9"):
        begin(spec, tmp_path / "refused")
    options = {"train__labels__label__ignore": 255, "train__labels__label__weights": "balanced", "train__epochs": 1}
    metrics = begin(spec, tmp_path / "run", **options)
    run = load_run(tmp_path / "run")
    train, test = run.splits()["train"].values, run.splits()["test"].values
    known = train["label"][train["label"] != 255]
    weights = len(known) / (10 * np.bincount(known, minlength=10))
    logits = run.model()(torch.from_numpy(test["image"])).detach().double().numpy()
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    counts = test["label"] != 255
    losses = [-weights[y] * row[y] if y != 255 else 0 for row, y in zip(log_p, test["label"], strict=True)]
    assert metrics["test.total_loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    right = (logits.argmax(1) == test["label"])[counts].mean()
    assert metrics["test.accuracy"] == pytest.approx(right)


@pytest.mark.some(1)
@pytest.mark.parametrize("precision", ["bfloat16", "float64"])
def test_other_precisions_learn_too_and_leave_float32_models(spec: Path, tmp_path: Path, precision: str) -> None:
    metrics = begin(spec, tmp_path / "run", train__precision=precision, train__epochs=15)
    assert metrics["test.accuracy"] > 0.75
    with resume_run(str(tmp_path / "run")) as engine:
        kinds = {weight.dtype for weight in engine.state.named.values()}
    assert kinds == {torch.float64 if precision == "float64" else torch.float32}
    assert next(load_run(tmp_path / "run").model().parameters()).dtype == torch.float32


WISHES = {
    "train__device=cuda:99": "MG513",
    "train__device=tpu": "MG513",
    "train__best=validation.accuracy": "MG514",
    "train__best=accurcy": "MG514",
    "train__early_stop__metric=loss.cross_entropy": "MG514",
    "train__labels__lable__ignore=1": "MG515",
    "start__run=nowhere": "MG516",
    "train__validation=0.5": None,
}


@pytest.mark.parametrize("wish", WISHES)
def test_wishes_that_cannot_be_met_are_reported_before_the_folder_is_made(
    spec: Path, tmp_path: Path, wish: str
) -> None:
    key, _, text = wish.partition("=")
    values: dict[str, object] = {key: float(text) if text[0].isdigit() and "." in text else text}
    if "early_stop" in key:
        values["train__early_stop__at"] = 0.5
    if "ignore" in key:
        values[key] = 1
    if WISHES[wish] is None:
        assert begin(spec, tmp_path / "run", **values)
        return
    with pytest.raises(ModgraphError) as caught:
        begin(spec, tmp_path / "run", **values)
    assert caught.value.diagnostics[0].code == WISHES[wish]
    assert not (tmp_path / "run/run.json").exists()


def test_details_name_what_is_confused(spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin(spec, tmp_path / "run", train__epochs=1)
    capsys.readouterr()
    assert main(["eval", str(tmp_path / "run"), "--json", "--detail"]) == 0
    found = json.loads(capsys.readouterr().out)
    matrix = np.array(found["test.label.confusion"])
    run = load_run(tmp_path / "run")
    test = run.splits()["test"].values
    predicted = run.model()(torch.from_numpy(test["image"])).argmax(1).numpy()
    assert matrix.sum() == len(predicted)
    assert matrix.trace() / matrix.sum() == pytest.approx(found["test.accuracy"])
    assert matrix[3, 5] == ((test["label"] == 3) & (predicted == 5)).sum()
    assert main(["eval", str(tmp_path / "run"), "--detail"]) == 0
    assert "true class by row" in capsys.readouterr().out
