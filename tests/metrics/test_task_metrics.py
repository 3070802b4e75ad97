"""Metrics by task: what a recipe asks for, against its equations in numpy; means over tasks; what runs make of them."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from modgraph.backends.torch import Model, build
from modgraph.cli import main
from modgraph.data import Arrays
from modgraph.data.declaration import check
from modgraph.diagnostics import ModgraphError
from modgraph.metrics.accumulators import Accumulators
from modgraph.metrics.metrics import evaluate, measure, metrics_of
from modgraph.program import loads
from modgraph.store.journal import read_metrics
from modgraph.training.named_parts import ignore_labels
from modgraph.training.run import start_run
from modgraph.training.stored_run import load_run
from tests.small_runs import begin, final_weights, go_on, interrupt_at
from tests.training.test_missing_labels import MISSING, SPEC, arrays, recipe, tensors

ASKED = {"kind": ["f1", "auc"], "tag": ["f1"], "size": "r2", "place": ["mae", "r2"]}
TWO = "model two() { input x: float[3] target y: class[2] z = x -> linear(2) output z loss cross_entropy(z, y) }"


def measured() -> tuple[Model, dict[str, Any], Arrays]:
    """A model, and more examples than a batch of an evaluation has."""
    parts = [arrays(seed) for seed in range(4)]
    data = {name: np.concatenate([each[name] for each in parts]) for name in parts[0]}
    graph = ignore_labels(loads(SPEC).ir, MISSING)
    return build(graph, 1).double(), data, check(Arrays(data), graph, "all")


def pairs_won(scores: Any, is_it: Any) -> float:
    """The share of pairs in which what it is has the larger score, half of a tie."""
    off = scores[is_it][:, None] - scores[~is_it]
    return float(((off > 0) + 0.5 * (off == 0)).mean())


def f1(truth: Any, guess: Any) -> float:
    found = []
    for each in sorted({*truth.tolist(), *guess.tolist()}):
        right = ((truth == each) & (guess == each)).sum()
        found.append(2 * right / ((truth == each).sum() + (guess == each).sum()))
    return float(np.mean(found))


def test_what_is_asked_for_is_measured_of_the_labels_that_there_are() -> None:
    model, data, split = measured()
    found = measure(model, split, asked=ASKED)
    assert list(found) == metrics_of(model.graph, split, None, ASKED).names
    out = {name: each.detach().numpy() for name, each in model.compute(tensors(data), losses=False).outputs.items()}
    mask = np.arange(5) < data["time_length"][:, None]
    here = data["kind"] >= 0
    assert found["kind.f1"] == pytest.approx(f1(data["kind"][here], out["a"][here].argmax(-1)))
    odds = out["a"][here] - out["a"][here].max(-1, keepdims=True)
    p = np.exp(odds) / np.exp(odds).sum(-1, keepdims=True)
    assert found["auc"] == pytest.approx(np.mean([pairs_won(p[:, k], data["kind"][here] == k) for k in range(3)]))
    here = mask & (data["tag"] >= 0) & (data["tag"] != 3)
    assert found["tag.f1"] == pytest.approx(f1(data["tag"][here], out["b"][here].argmax(-1)))
    assert found["f1"] == pytest.approx((found["kind.f1"] + found["tag.f1"]) / 2)
    here = mask[..., None] & ~np.isnan(data["place"])
    off = np.abs(out["d"] - data["place"])[here]
    assert found["mae"] == pytest.approx(off.mean(), rel=1e-5)
    for name, made, there in (("place", out["d"], here), ("size", out["c"], ~np.isnan(data["size"]))):
        truth = data[name][there]
        expected = 1 - ((made[there] - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()
        assert found[f"{name}.r2"] == pytest.approx(expected, rel=1e-5)
    assert found["accuracy"] == pytest.approx((found["kind.accuracy"] + found["tag.accuracy"]) / 2)
    assert found["mse"] == pytest.approx((found["size.mse"] + found["place.mse"]) / 2)


def test_the_area_under_the_curve_of_two_classes_is_that_of_the_second() -> None:
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=(300, 3)).astype(np.float32), "y": rng.integers(0, 2, 300)}
    model = build(loads(TWO).ir, 1)
    z = model(torch.from_numpy(data["x"])).detach().double().numpy()
    found = measure(model, Arrays(data), asked={"y": "auc"})
    assert found["auc"] == pytest.approx(pairs_won(z[:, 1] - z[:, 0], data["y"] == 1))
    assert metrics_of(model.graph, Arrays(data), None, {"y": "auc"}).larger_is_better["auc"]


def test_parts_of_a_split_come_to_the_whole_and_so_do_its_groups() -> None:
    model, _, split = measured()
    groups = replace(split, groups={"half": np.where(np.arange(len(split)) % 2, "odd", "even")})
    whole, metrics = measure(model, groups, "half", ASKED), metrics_of(model.graph, groups, "half", ASKED)
    parts = [evaluate(model, groups, part, 2, "half", ASKED) for part in range(2)]
    assert metrics.values(Accumulators.merge(parts)) == pytest.approx(whole, nan_ok=True)
    odd = measure(model, split.take(np.arange(1, len(split), 2)), asked=ASKED)
    assert whole["half.odd.f1"] == pytest.approx(odd["f1"])
    assert whole["half.kind.auc" if "half.kind.auc" in whole else "half.auc"] == pytest.approx(
        (whole["half.odd.auc"] + whole["half.even.auc"]) / 2
    )


def test_a_task_without_labels_is_left_out_of_the_averages() -> None:
    model, data, _ = measured()
    rows = check(Arrays({name: each[:30] for name, each in data.items()}), model.graph, "tags alone")
    found = measure(model, rows, asked=ASKED)
    assert np.isnan([found["kind.accuracy"], found["kind.f1"], found["auc"], found["size.mse"], found["mse"]]).all()
    assert found["accuracy"] == found["tag.accuracy"] > 0
    assert found["f1"] == found["tag.f1"]


# ------------------------------------------------------------ runs

BEST = ["validation.kind.accuracy", "validation.f1"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    spec = recipe(folder, metrics=ASKED, best=BEST, epochs=4, optimizer={"name": "adam", "lr": 0.05}, validation=0.3)
    (folder / "last.json").write_text(json.dumps(begin(spec, folder / "run")))
    return folder / "run"


def test_the_best_epoch_is_that_of_the_best_mean(run: Path, tmp_path: Path) -> None:
    last = json.loads(run.with_name("last.json").read_text())
    lines = [line for line in read_metrics(load_run(run).directory) if line["split"] == "validation"]
    averages = [(line["kind.accuracy"] + line["f1"]) / 2 for line in lines]
    assert last["best"] == pytest.approx(max(averages))
    assert last["best_step"] == lines[int(np.argmax(averages))]["step"]
    assert "test.kind.f1" in last
    with start_run(str(run.with_name("tasks.mod")), None, {}, str(tmp_path / "cut")) as engine:
        interrupt_at(engine, 13)
        with suppress(KeyboardInterrupt):
            engine.run()
    assert go_on(tmp_path / "cut") == pytest.approx(last, nan_ok=True)
    assert final_weights(tmp_path / "cut") == final_weights(run)


def test_details_report_each_task(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", str(run), "--json", "--detail"]) == 0
    model = json.loads(capsys.readouterr().out)
    split = load_run(run).splits()["test"].values
    assert model["test.labels_by_target"]["kind"] == (split["kind"] >= 0).sum()
    assert model["test.f1_by_target"].keys() == {"kind", "tag"}
    assert model["test.mae_by_target"] == {"place": model["test.mae"]}
    assert np.sum(model["test.kind.confusion"]) == model["test.labels_by_target"]["kind"]
    assert main(["eval", str(run), "--detail"]) == 0
    text = capsys.readouterr().out
    assert f"size: {(~np.isnan(split['size'])).sum()} labels  mse" in text


MISTAKES: dict[str, tuple[dict[str, Any], str, str]] = {
    "a number has no curve": ({"metrics": {"size": ["auc"]}}, "MG724", "mae, r2"),
    "no such metric": ({"metrics": {"kind": ["f2"]}}, "MG724", "auc, f1"),
    "no such target": ({"metrics": {"kin": "f1"}}, "MG724", 'did you mean "kind"'),
    "unlike metrics": ({"best": ["validation.accuracy", "validation.mse"]}, "MG725", "one direction"),
    "one is not measured": ({"best": ["validation.accuracy", "validation.f1"]}, "MG514", "did you mean"),
    "none": ({"early_stop": {"metric": [], "patience": 2}}, "MG514", "this training measures"),
    "not of steps": ({"metrics": {"kind": "f1"}, "best": "train.f1"}, "MG514", "did you mean"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_will_not_be_measured_is_reported_before_a_folder_is_made(tmp_path: Path, name: str) -> None:
    train, code, words = MISTAKES[name]
    with pytest.raises(ModgraphError) as caught:
        begin(recipe(tmp_path, **train), tmp_path / "run")
    (message,) = caught.value.diagnostics
    assert message.code == code
    assert words in message.text() + message.advice()
    assert not (tmp_path / "run").exists()
