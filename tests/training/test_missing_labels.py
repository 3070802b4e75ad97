"""Several tasks, of which most examples have some labels only: losses and metrics are over those that there are."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import modgraph
from modgraph.cli import main
from modgraph.data import Arrays
from modgraph.data.declaration import check
from modgraph.diagnostics import ModgraphError
from modgraph.ir import comparisons, with_missing_labels
from modgraph.metrics.metrics import measure
from modgraph.store.journal import read_metrics
from modgraph.training.losses import weigh_losses
from modgraph.training.named_parts import balance_classes, ignore_labels, weigh_classes
from modgraph.training.run import start_run
from modgraph.training.sections import Labels
from modgraph.training.stored_run import load_run
from tests.small_runs import begin, final_weights, go_on, interrupt_at, take_step

SPEC = """
model tasks() {
  input  x: float[time, 3]
  target kind: class[3]
  target tag: class[time, 4]
  target size: float[2]
  target place: float[time, 2]
  h = x -> linear(8) -> tanh
  a = h -> mean -> linear(3)
  b = h -> linear(4)
  c = h -> mean -> linear(2)
  d = h -> linear(2)
  output a
  output b
  output c
  output d
  loss task["kind"] = cross_entropy(a, kind, class_weights=[1, 2, 3])
  loss task["tag"] = cross_entropy(b, tag, ignore=3)
  loss task["size"] = mse(c, size)
  loss task["place"] = gaussian(d, place, variance=0.5)
}
"""
TARGETS = ("kind", "tag", "size", "place")
MISSING = {name: Labels(weights=None, ignore=None, missing=True) for name in TARGETS}
N, TIME = 90, 5


def arrays(seed: int = 0) -> dict[str, Any]:
    """The first 30 examples have nothing but tags; of the others half of everything is missing."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, TIME + 1, N)
    tag, place = rng.integers(0, 4, (N, TIME)), rng.normal(size=(N, TIME, 2))
    kind, size = rng.integers(0, 3, N), rng.normal(size=(N, 2))
    kind[rng.random(N) < 0.5] = -1
    tag[rng.random((N, TIME)) < 0.5] = -1
    size[rng.random((N, 2)) < 0.5] = np.nan
    place[rng.random((N, TIME, 2)) < 0.5] = np.nan
    kind[:30], size[:30], place[:30] = -1, np.nan, np.nan
    data = {"kind": kind, "tag": tag, "size": size, "place": place, "time_length": lengths}
    return {**data, "x": rng.normal(size=(N, TIME, 3))}


def recipe(folder: Path, **train: Any) -> Path:
    (folder / "tasks.mod").write_text(SPEC)
    np.savez(folder / "tasks.npz", **arrays())
    labels = {name: {"missing": True} for name in TARGETS}
    common = {"epochs": 3, "batch": 10, "precision": "float64", "validation": 0.2, "labels": labels}
    data = {"name": "npz", "train": str(folder / "tasks.npz")}
    (folder / "tasks.yaml").write_text(json.dumps({"data": data, "train": {**common, **train}}))
    return folder / "tasks.mod"


def by_hand(outputs: dict[str, Any], data: dict[str, Any]) -> tuple[dict[str, float], dict[str, float]]:
    """Losses, means over the examples that have any label, and what is measured of each, over labels."""
    mask = np.arange(TIME) < data["time_length"][:, None]
    a, b, c, d = (outputs[name].double().detach().numpy() for name in "abcd")
    losses: dict[str, list[float]] = {name: [] for name in TARGETS}
    seen: dict[str, list[float]] = {name: [] for name in TARGETS}
    for at in range(len(a)):
        if (label := data["kind"][at]) >= 0:
            losses["kind"].append((1 + label) * -log_softmax(a[at])[label])
            seen["kind"].append(a[at].argmax() == label)
        tags = [(t, data["tag"][at, t]) for t in range(TIME) if mask[at, t] and data["tag"][at, t] in (0, 1, 2)]
        if tags:
            losses["tag"].append(np.mean([-log_softmax(b[at, t])[label] for t, label in tags]))
            seen["tag"] += [b[at, t].argmax() == label for t, label in tags]
        errors = [(c[at, i] - y) ** 2 for i, y in enumerate(data["size"][at]) if not np.isnan(y)]
        losses["size"] += [np.mean(errors)] if errors else []
        seen["size"] += errors
        steps = []
        for t in range(TIME):
            errors = [(d[at, t, i] - y) ** 2 for i, y in enumerate(data["place"][at, t]) if mask[at, t] and y == y]
            seen["place"] += errors
            if errors:
                steps.append(sum(errors) / 0.5 / 2 + len(errors) / 2 * np.log(2 * np.pi * 0.5))
        losses["place"] += [np.mean(steps)] if steps else []
    averages = {f"loss.task.{name}": float(np.mean(each)) if each else 0.0 for name, each in losses.items()}
    return averages, {name: float(np.mean(each)) if each else 0.0 for name, each in seen.items()}


def log_softmax(x: Any) -> Any:
    return x - np.log(np.exp(x - x.max()).sum()) - x.max()


def tensors(data: dict[str, Any]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(each) for name, each in data.items()}


def test_a_loss_is_the_mean_over_the_examples_that_have_any_label() -> None:
    graph = ignore_labels(modgraph.loads(SPEC).ir, MISSING)
    assert with_missing_labels(graph) == set(TARGETS)
    model, batch = modgraph.backends.torch.build(graph, 1).double(), tensors(arrays())
    computed = model.compute(batch)
    losses, _ = by_hand(computed.outputs, arrays())
    assert {name: value.item() for name, value in computed.losses.items()} == pytest.approx(losses, rel=1e-12)
    computed.loss.backward()
    assert all(torch.isfinite(weight.grad).all() for weight in model.parameters() if weight.grad is not None)


def test_a_batch_without_any_label_of_a_task_gives_it_zero(tmp_path: Path) -> None:
    """Also where padding and what is missing hold what is no number."""
    graph = ignore_labels(modgraph.loads(SPEC).ir, MISSING)
    model = modgraph.backends.torch.build(graph, 1).double()
    computed = model.compute({name: each[:30] for name, each in tensors(arrays()).items()})
    for name in ("kind", "size", "place"):
        assert computed.losses[f"loss.task.{name}"] == 0
    computed.loss.backward()
    decoders = {name: weight.grad for name, weight in model.named_parameters() if name[0] in "acd"}
    assert all(grad is not None and not grad.any() for grad in decoders.values())
    assert model.get_parameter("b.linear.weight").grad.any()
    found = measure(model, check(Arrays({name: each[:30] for name, each in arrays().items()}), graph, "some"))
    assert found["loss.task.kind"] == found["loss.task.place"] == 0
    assert found["loss.task.tag"] > 0


def test_metrics_are_over_labels_and_losses_over_labelled_examples_of_a_split() -> None:
    """More examples than a batch of an evaluation has, and unlike shares of labels in each."""
    graph = ignore_labels(modgraph.loads(SPEC).ir, MISSING)
    parts = [arrays(seed) for seed in range(4)]
    data = {name: np.concatenate([each[name] for each in parts]) for name in parts[0]}
    data["kind"][256:] = -1
    data["kind"][300] = 2
    model = modgraph.backends.torch.build(graph, 1).double()
    outputs = model.compute(tensors(data), losses=False).outputs
    found = measure(model, check(Arrays(data), graph, "all"))
    losses, seen = by_hand(outputs, data)
    assert {name: found[name] for name in losses} == pytest.approx(losses, rel=1e-5)
    assert found["total_loss"] == pytest.approx(sum(losses.values()), rel=1e-5)
    assert [found["kind.accuracy"], found["tag.accuracy"]] == pytest.approx([seen["kind"], seen["tag"]])
    assert [found["size.mse"], found["place.mse"]] == pytest.approx([seen["size"], seen["place"]], rel=1e-5)


def test_a_step_descends_on_these_averages_times_the_weights_of_losses(tmp_path: Path) -> None:
    spec = recipe(tmp_path, losses={"task.*": 0.5, "loss.task.size": 2}, optimizer={"name": "sgd", "lr": 0.1})
    with start_run(str(spec), None, {}, str(tmp_path / "run")) as engine:
        before = {name: each.clone() for name, each in engine.state.weights.items()}
        data = {name: each[:20] for name, each in engine.phase.data.values.items()}
        take_step(engine, torch.arange(20))
        after = engine.state.weights
    plain = modgraph.backends.torch.build(ignore_labels(modgraph.loads(SPEC).ir, MISSING)).double()
    plain.load_state_dict(before)
    losses = plain.compute(
        {name: t.double() if t.is_floating_point() else t for name, t in tensors(data).items()}
    ).losses
    weights = {name: 2 if name == "loss.task.size" else 0.5 for name in losses}
    sum(weights[name] * value for name, value in losses.items()).backward()  # type: ignore[union-attr]
    for name, weight in plain.named_parameters():
        torch.testing.assert_close(after[name], before[name] - 0.1 * weight.grad)


def test_a_training_goes_on_from_anywhere_and_its_log_has_the_same_averages(tmp_path: Path) -> None:
    spec = recipe(tmp_path, losses={"task.kind": 2}, checkpoint_every=4)
    begin(spec, tmp_path / "whole")
    with start_run(str(spec), None, {}, str(tmp_path / "cut")) as engine, suppress(KeyboardInterrupt):
        interrupt_at(engine, 10)
        engine.run()
    go_on(tmp_path / "cut")
    assert final_weights(tmp_path / "cut") == final_weights(tmp_path / "whole")
    assert (tmp_path / "cut/metrics.jsonl").read_bytes() == (tmp_path / "whole/metrics.jsonl").read_bytes()
    run = load_run(tmp_path / "whole")
    last = read_metrics(run.directory)[-1]
    outputs = run.model().double().compute(batch := placed(run.splits()["validation"].values), losses=False).outputs
    losses, _ = by_hand(outputs, {name: each.numpy() for name, each in batch.items()})
    losses["loss.task.kind"] *= 2
    assert {name: last[name] for name in losses} == pytest.approx(losses, rel=1e-4)
    assert main(["eval", str(tmp_path / "whole"), "--json", "--detail"]) == 0


def placed(values: Any) -> dict[str, torch.Tensor]:
    return {name: t.double() if t.is_floating_point() else t for name, t in tensors(dict(values)).items()}


def test_class_weights_are_balanced_over_the_labels_that_there_are() -> None:
    labels = {"kind": Labels(weights="balanced", ignore=None, missing=True)}
    graph = ignore_labels(modgraph.loads(SPEC).ir, labels)
    data = arrays()
    weighed = weigh_classes(graph, labels, Arrays(data))
    compared = next(each for each in comparisons(weighed) if each.target == "kind")
    counts = np.bincount(data["kind"][data["kind"] >= 0], minlength=3)
    assert compared.class_weights == pytest.approx(counts.sum() / (3 * counts))
    assert balance_classes(np.array([-1, 0, 0, 1]), 2) == (0.75, 1.5)


# ------------------------------------------------------------ what is told


def diagnose(folder: Path, text: str = SPEC, **train: Any) -> Any:
    spec = recipe(folder, **train)
    spec.write_text(text)
    with pytest.raises(ModgraphError) as caught:
        begin(spec, folder / "run")
    assert not (folder / "run").exists()
    return caught.value.diagnostics


def test_labels_that_are_missing_are_refused_with_the_key_that_allows_them(tmp_path: Path) -> None:
    found = diagnose(tmp_path, labels={"tag": {"missing": True}, "kind": {"ignore": 2}})
    ways = {each.reason.split('"')[1]: each.advice() for each in found}
    assert ways.keys() == {"kind", "size", "place"}
    assert all("{missing: true}" in way and name in way for name, way in ways.items())


OTHER = SPEC.replace('loss task["size"] = mse(c, size)', 'loss task["size"] = (c - size) ** 2 -> mean(axis=-1)')


def test_what_cannot_be_is_reported_before_a_folder_is_made(tmp_path: Path) -> None:
    extra = SPEC.replace('  loss task["size"]', '  loss off = (c - size) ** 2 -> mean(axis=-1)\n  loss task["size"]')
    for code, text, train, words in (
        ("MG553", SPEC, {"losses": {"task.kin": 2}}, 'did you mean "task.kind"'),
        ("MG515", SPEC, {"labels": {"sizes": {"missing": True}}}, 'did you mean "size"'),
        ("MG515", SPEC, {"labels": {"size": {"ignore": 1}}}, "kind"),
        ("MG515", OTHER, {"labels": {"size": {"missing": True}}}, "kind"),
        ("MG554", extra, {}, "gaussian or mse"),
    ):
        (message,) = diagnose(tmp_path, text, **train)
        assert message.code == code
        assert words in message.text() + message.advice()


def test_a_task_that_no_example_has_a_label_of_is_reported(tmp_path: Path) -> None:
    spec = recipe(tmp_path)
    np.savez(tmp_path / "tasks.npz", **{**arrays(), "size": np.full((N, 2), np.nan)})
    with pytest.raises(ModgraphError, match='no training example has a label of "size"'):
        begin(spec, tmp_path / "run")


def test_algorithms_that_judge_decisions_refuse_missing_labels() -> None:
    from modgraph.training.algorithms.decisions import DecisionLikelihood

    text = Path("specs/modular_networks.mod").read_text()
    graph = modgraph.loads(text).ir
    (target,) = {each.target for each in comparisons(graph)}
    with pytest.raises(ModgraphError) as caught:
        DecisionLikelihood.build(ignore_labels(graph, {target: MISSING["kind"]}), "em")
    assert caught.value.diagnostics[0].code == "MG619"


def test_a_weight_of_one_changes_no_graph() -> None:
    graph = modgraph.loads(SPEC).ir
    assert weigh_losses(graph, {"*": 1}) == graph
    weighed = weigh_losses(graph, {"*": 3, "task.tag": 1})
    assert [name for name, result in weighed.losses.items() if result.node.endswith("weighed")] == [
        f"loss.task.{name}" for name in ("kind", "size", "place")
    ]
