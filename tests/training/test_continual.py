"""Continual trainings: what grows, what learns and what stays; logs that can be replayed; the same after any end."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import modgraph
from modgraph.backends.torch import build
from modgraph.cli import main
from modgraph.data import Arrays
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, Grow, edit_from_json, find_module_axes, replay_edits, weights_of
from modgraph.nn import CrossEntropy
from modgraph.store.checkpoint import Checkpoint, read_checkpoint
from modgraph.store.journal import Journal
from modgraph.store.run_directory import RunDirectory
from modgraph.training.continual import evaluation as measures
from modgraph.training.continual.evaluation import scan_batches
from modgraph.training.recipe import read_recipe
from modgraph.training.run import finish, resume_run, start_run
from modgraph.training.stages import part_name
from modgraph.training.stored_run import load_run
from tests.continual_runs import PHASES, SPEC, lay_out_run, replayed_graph
from tests.small_runs import begin, dotted, interrupt_at

LOGS = ("growth.jsonl", "detections.jsonl", "tasks.jsonl", "metrics.jsonl")
POOL = "layer.1.adapter"


def trained(folder: Path, **algorithm: Any) -> Path:
    """A run that kept every checkpoint, and its last metrics beside it."""
    metrics = begin(lay_out_run(folder, **algorithm), folder / "run", train__keep=1000)
    (folder / "last.json").write_text(json.dumps(metrics))
    return folder / "run"


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which the upper layer grew in each task but the first."""
    return trained(tmp_path_factory.mktemp("always"), expand="always")


@pytest.fixture(scope="module")
def novel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that grew where batches were novel."""
    return trained(tmp_path_factory.mktemp("novel"))


def checkpoints(run: Path) -> list[Checkpoint]:
    return [read_checkpoint(path.with_suffix(".safetensors")) for path in sorted((run / "checkpoints").glob("*.json"))]


def lines(run: Path, log: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / log).read_text().splitlines()]


def graph_of(checkpoint: Checkpoint) -> Graph:
    assert checkpoint.graph is not None
    return checkpoint.graph


# ------------------------------------------------------------ what stays, what learns


def fixed(checkpoint: Checkpoint) -> dict[str, torch.Tensor]:
    """What of a checkpoint's weights must never move again."""
    graph, weights = graph_of(checkpoint), checkpoint.weights
    axes = find_module_axes(graph)
    frozen = {weight.name: axes.get(weight.name) for weight in weights_of(graph) if weight.frozen}
    return {n: weights[n] if of is None else weights[n].narrow(of.axis, 0, of.old) for n, of in frozen.items()}


def test_old_weights_stay_bit_for_bit_from_the_first_task_on(grown: Path) -> None:
    """With momentum and a weight decay that would move them."""
    found = [(fixed(each), each.weights) for each in checkpoints(grown)]
    for (stays, _), (_, after) in pairwise(found):
        for name, value in stays.items():
            assert after[name][tuple(map(slice, value.shape))].equal(value), name
    assert [len(stays) for stays, _ in found] == sorted(len(stays) for stays, _ in found)
    assert found[-1][0].keys() == found[-1][1].keys()


def test_the_optimizer_holds_only_what_is_new(grown: Path) -> None:
    phases = {
        tuple(sorted(name.partition("[")[0] if "[" not in name else name for name in each.optimizer))
        for each in checkpoints(grown)
        if each.step > 8 and each.optimizer
    }
    adapter = [f"{POOL}.{{0}}.{linear}.{part}" for linear in ("linear", "linear2") for part in ("bias", "weight")]
    descriptor = [name.replace("adapter", "descriptor") for name in adapter]
    gates = "layer.1.r.gates.linear"
    expected = set()
    for module, classes in ((1, "[2:4]"), (2, "[4:6]")):
        columns = [f"{gates}.{part}{part_name('', module, module + 1)}" for part in ("bias", "weight")]
        rows = [f"head.{part}{classes}" for part in ("bias", "weight")]
        expected.add(tuple(sorted([*(name.format(module) for name in adapter), *columns, *rows])))
        expected.add(tuple(sorted(name.format(module) for name in descriptor)))
    assert phases == expected


def test_what_is_new_learns(grown: Path) -> None:
    last = checkpoints(grown)[-1]
    fresh = build(graph_of(last), seed=0).state_dict()
    for name in (f"{POOL}.2.linear.weight", "layer.1.descriptor.2.linear.weight"):
        assert not last.weights[name].equal(fresh[name])
    for name, since in (("head.weight", 4), ("layer.1.r.gates.linear.weight", 2)):
        assert not last.weights[name][since:].equal(fresh[name][since:])
    errors = last.weights["layer.1.r.errors.value"]
    assert errors.shape == (3, 20) and (errors != 0).all()


def test_without_the_new_column_the_old_outputs_return(grown: Path) -> None:
    """The column's logit at −∞, of the classes that there were."""
    found = checkpoints(grown)
    before = next(each for each in found if graph_of(each).pools()[POOL].size == 2)
    after = [each for each in found if graph_of(each).pools()[POOL].size == 2][-1]
    first = next(each for each in found[::-1] if graph_of(each).pools()[POOL].size == 1)
    assert not before.weights["head.weight"].equal(after.weights["head.weight"])
    old, new = (build(graph_of(each)).eval() for each in (first, after))
    old.load_state_dict(first.weights)
    gate = "layer.1.r.gates.linear."
    masked = {name: value.clone() for name, value in after.weights.items()}
    masked[gate + "weight"][1], masked[gate + "bias"][1] = 0, -torch.inf
    new.load_state_dict(masked)
    x = torch.randn(32, 2, 3)
    torch.testing.assert_close(new(x)[:, :2], old(x)[:, :2], rtol=1e-6, atol=1e-6)


# ------------------------------------------------------------ growth


def test_the_edits_of_the_log_make_the_last_graph_of_the_first(grown: Path) -> None:
    directory = RunDirectory(grown)
    graph = directory.read_graph()
    for line in lines(grown, "growth.jsonl"):
        graph = replay_edits(graph, [edit_from_json(edit) for edit in line["edits"]])
        assert graph.hash() == line["hash"]
    assert graph == directory.graph_now() == replayed_graph(directory)
    growths = [(line["task"], line["module"]) for line in lines(grown, "growth.jsonl") if "pool" in line]
    assert growths == [("b", 1), ("c", 2)]


def test_a_pool_grows_where_no_module_knows_a_batch(novel: Path) -> None:
    scans = lines(novel, "detections.jsonl")
    assert {line["pool"] for line in scans} == {POOL}
    assert [(line["task"], line["scan"]) for line in scans] == [("b", 0), ("c", 1)]
    grew = [line for line in scans if line["batch"] is not None]
    assert [line["novelty"] for line in lines(novel, "growth.jsonl") if "pool" in line] == [
        line["novelty"][line["batch"]] for line in grew
    ]
    assert grew and all(min(line["novelty"][-1]) > 3 for line in grew)
    assert all(min(batch) <= 3 for line in scans if line["batch"] is None for batch in line["novelty"])


PADDED = """
router far() for p {
  input x: float[tokens, dim]
  distance = x -> abs -> linear(p)
  record gates = distance -> softmax, distance: novelty
  y = x -> p by (distance -> softmax)
  output y
}
model padded() {
  input x: float[time, 3]
  pool p[2] = linear(3)
  router r = far
  y = x -> p by r
  output y
  grow p by r when (r.distance -> batch_mean -> max(axis=-1)) > 1000
}
"""


def test_novelty_is_a_mean_over_what_is_no_padding() -> None:
    graph = modgraph.loads(PADDED).ir
    model, x = build(graph), np.random.default_rng(0).standard_normal((8, 5, 3)).astype(np.float32)
    lengths = np.array([5, 1, 2, 3, 4, 5, 1, 2])
    x[np.arange(5) >= lengths[:, None]] = np.inf
    (name,) = graph.length_inputs.values()
    found = scan_batches(model, Arrays({"x": x, name: lengths}), ["p.growth"], batch=8, seed=0, number=0)
    weight = {n: each.detach().numpy() for n, each in model.named_parameters() if n.startswith("r.")}
    unpadded = np.abs(x[np.arange(5) < lengths[:, None]])
    expected = (unpadded @ weight["r.distance.linear.weight"].T + weight["r.distance.linear.bias"]).mean(0)
    assert found.grows is None
    assert found.novelty["p.growth"] == [pytest.approx(expected, rel=1e-5)]


@pytest.mark.slow
def test_nothing_grows_but_classes_where_nothing_is_to(tmp_path: Path) -> None:
    """What is named goes on learning all the same."""
    run = trained(tmp_path, expand="never", learns=["head.*"])
    assert not (run / "detections.jsonl").exists()
    edits = [edit for line in lines(run, "growth.jsonl") for edit in line["edits"]]
    assert [edit for edit in edits if edit["edit"] == "grow"] == [Grow("kind", 2).as_json()] * 2
    phases = {(line["task"], line["phase"]) for line in lines(run, "metrics.jsonl")}
    assert phases == {("a", "functional"), ("a", "descriptors"), ("b", "functional"), ("c", "functional")}

    first, last = (each.weights["head.weight"] for each in (checkpoints(run)[0], checkpoints(run)[-1]))
    assert not last[:2].equal(first)


def test_the_run_says_which_spec_its_model_has(grown: Path) -> None:
    record = json.loads((grown / "run.json").read_text())
    assert record["grown"] == {"layers": [1, 3], "classes": 6}
    spec = modgraph.loads(SPEC, **record["grown"]).ir
    assert {name: weight.shape for name, weight in build(spec).state_dict().items()} == {
        name: weight.shape for name, weight in load_run(grown).checkpoint().weights.items()
    }


# ------------------------------------------------------------ what is measured


def test_the_last_metrics_are_those_of_the_log(grown: Path) -> None:
    metrics = json.loads((grown.parent / "last.json").read_text())
    ends = lines(grown, "tasks.jsonl")
    assert [end["task"] for end in ends] == ["a", "b", "c"]
    assert [*ends[-1]["accuracies"]] == ["a", "b", "c"]
    assert metrics["average_accuracy"] == pytest.approx(np.mean([end["accuracy"] for end in ends]))
    assert metrics["last_accuracy"] == pytest.approx(metrics["test.accuracy"])
    assert metrics[f"modules.{POOL}"] == 3
    assert ends[-1]["modules"] == {POOL: 3} and ends[-1]["classes"] == {"kind": 6}


def test_the_task_incremental_accuracy_is_that_among_the_classes_of_each_task(grown: Path) -> None:
    metrics, run = json.loads((grown.parent / "last.json").read_text()), load_run(grown)
    model, test, right = run.model(), run.test_data()["test"], []
    for first, task in zip((0, 2, 4), "abc", strict=True):
        rows = np.flatnonzero(test.groups["task"] == task)
        logits = model(torch.from_numpy(test.values["x"][rows])).detach().numpy()[:, first : first + 2]
        right.append((logits.argmax(1) + first == test.values["y"][rows]).mean())
    assert metrics["task_incremental_accuracy"] == pytest.approx(np.mean(right))
    assert metrics["task_incremental_accuracy"] >= np.mean(list(lines(grown, "tasks.jsonl")[-1]["accuracies"].values()))


@given(st.integers(1, 6), st.integers(0, 100))
def test_measures_are_those_of_numpy(tasks: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 50, tasks)
    right = rng.random((tasks, tasks))
    found = [list(right[task, : task + 1]) for task in range(tasks)]
    after = [(right[task, : task + 1] * counts[: task + 1]).sum() / counts[: task + 1].sum() for task in range(tasks)]
    measured = measures.summary(found, counts.tolist())
    assert measured["average_accuracy"] == pytest.approx(np.mean(after))
    assert measured["last_accuracy"] == pytest.approx(after[-1])
    lost = [right[task:-1, task].max() - right[-1, task] for task in range(tasks - 1)]
    assert measured["forgetting"] == pytest.approx(np.mean(lost) if lost else 0.0)


@given(st.integers(0, 1000), st.sampled_from([None, 9]))
def test_classes_before_the_first_have_no_share(seed: int, ignore: int | None) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(7, 4, 5, generator=generator, requires_grad=True)
    label = torch.randint(2, 5, (7, 4), generator=generator)
    if ignore is not None:
        label[torch.rand(7, 4, generator=generator) < 0.3] = ignore
    masked = CrossEntropy(ignore=ignore, since=2)(logits, label)
    apart = CrossEntropy(ignore=None if ignore is None else 7)(logits[..., 2:], label - 2)
    torch.testing.assert_close(masked, apart)
    masked.sum().backward()
    assert logits.grad is not None and not logits.grad[..., :2].any() and logits.grad.isfinite().all()


# ------------------------------------------------------------ leaving and taking up


def same(run: Path, other: Path) -> None:
    assert [path.name for path in sorted((run / "checkpoints").iterdir())][-2:] == [
        path.name for path in sorted((other / "checkpoints").iterdir())
    ][-2:]
    newest = sorted((run / "checkpoints").iterdir())[-2:]
    assert all(path.read_bytes() == (other / "checkpoints" / path.name).read_bytes() for path in newest)
    assert all((run / log).read_bytes() == (other / log).read_bytes() for log in LOGS if (run / log).exists())
    assert (run / "run.json").read_bytes() == (other / "run.json").read_bytes()


def taken_up(run: Path, folder: Path, step: int) -> Path:
    """The run as it was when its checkpoint of a step was the newest, with what it logged later; gone on with."""
    cut = folder / "cut"
    shutil.copytree(run, cut)
    for path in (cut / "checkpoints").iterdir():
        if int(path.name.removeprefix("step-").partition(".")[0]) > step:
            path.unlink()
    with resume_run(str(cut)) as engine:
        finish(engine)
    return cut


def steps_of(run: Path) -> list[int]:
    return [each.step for each in checkpoints(run)]


@pytest.mark.parametrize("step", [14, pytest.param(20, marks=pytest.mark.slow)])
def test_a_run_is_taken_up_from_any_checkpoint(grown: Path, tmp_path: Path, step: int) -> None:
    """In the middle of an expansion, and before the next task."""
    assert step in steps_of(grown)
    same(grown, taken_up(grown, tmp_path, step))


@pytest.mark.slow
def test_a_run_is_taken_up_from_every_checkpoint(novel: Path, tmp_path: Path) -> None:
    for step in steps_of(novel):
        same(novel, taken_up(novel, tmp_path / str(step), step))


@pytest.mark.slow
@pytest.mark.parametrize(("log", "line"), [("growth.jsonl", 1), pytest.param("tasks.jsonl", 1, marks=pytest.mark.slow)])
def test_a_run_that_ends_at_a_line_of_a_log_goes_on_to_the_same(
    grown: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str, line: int
) -> None:
    """The line is there, or a part of it, and no checkpoint knows of it."""
    plain, written = Journal.add, []

    def cut(journal: Journal, *records: dict[str, Any]) -> None:
        plain(journal, *records)
        if journal.path.name == log:
            written.append(records)
            if len(written) == line + 1:
                text = journal.path.read_text()
                journal.path.write_text(text + text[: len(text) // 3].rstrip())
                raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "add", cut)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, expand="always")
    monkeypatch.undo()
    with resume_run(str(tmp_path / "run")) as engine:
        finish(engine)
    for path in LOGS:
        assert (tmp_path / "run" / path).read_bytes() == (grown / path).read_bytes()
    names = [sorted((run / "checkpoints").iterdir())[-1] for run in (grown, tmp_path / "run")]
    assert names[0].read_bytes() == names[1].read_bytes()


# ------------------------------------------------------------ mistakes


MISTAKES = {
    "MG720": {"by": "domain"},
    "MG721": {"phases": {"one": {"losses": ["cross_entropi"]}}},
    "MG722": {"learns": ["hed.*"]},
    "MG723": {"phases": {"one": {"losses": ["novelty.*"]}}},
}


@pytest.mark.parametrize("code", MISTAKES)
def test_mistakes_are_reported_before_there_is_a_run(tmp_path: Path, code: str) -> None:
    spec = lay_out_run(tmp_path, **MISTAKES[code])
    if code == "MG723":
        spec.write_text(SPEC.replace("pool   descriptor[adapter] = linear(2) -> linear(3)", FROZEN))
    with pytest.raises(ModgraphError) as caught:
        begin(spec, tmp_path / "run")
    assert [each.code for each in caught.value.diagnostics] == [code]
    assert not (tmp_path / "run/run.json").exists()


FROZEN = "frozen { pool descriptor[adapter] = linear(2) -> linear(3) }"


def test_labels_of_the_first_task_lie_in_its_classes(tmp_path: Path) -> None:
    spec = lay_out_run(tmp_path)
    spec.write_text(SPEC.replace("classes=2", "classes=1"))
    with pytest.raises(ModgraphError, match="contains class 1, but the model has 1"):
        begin(spec, tmp_path / "run")


CONTRADICTIONS = {
    "train__best": "accuracy",
    "train__early_stop__patience": 3,
    "train__labels__y__weights": "balanced",
}


@pytest.mark.parametrize("key", CONTRADICTIONS)
def test_what_is_of_one_phase_does_not_go_with_many(tmp_path: Path, key: str) -> None:
    spec = lay_out_run(tmp_path)
    with pytest.raises(ModgraphError, match="continual"):
        read_recipe(spec.with_suffix(".yaml"), dotted({key: CONTRADICTIONS[key]}))


def test_a_recipe_reads_back(tmp_path: Path) -> None:
    recipe = read_recipe(lay_out_run(tmp_path).with_suffix(".yaml"))
    (tmp_path / "again.yaml").write_text(recipe.to_yaml())
    assert read_recipe(tmp_path / "again.yaml") == recipe
    assert recipe.train.plain()["algorithm"]["phases"]["functional"] == PHASES["functional"]


def test_in_the_middle_a_run_is_measured_on_the_tasks_so_far(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, out = lay_out_run(tmp_path, expand="never"), tmp_path / "run"
    with (
        pytest.raises(KeyboardInterrupt),
        start_run(str(spec), None, {"data.of.test": str(tmp_path / "tasks.npz")}, str(out)) as engine,
    ):
        interrupt_at(engine, 14)
        finish(engine)
    assert main(["eval", str(out), "--detail", "--json"]) == 0
    output, note = capsys.readouterr()
    assert len(json.loads(output)["test.y.confusion"]) == 4 and "20 of 60 examples of test" in note
