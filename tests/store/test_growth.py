"""What a run tells of its growth, its checkpoints and graphs opened, and what views make of them."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from modgraph.backends.torch import build
from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, Grow, replay_edits, to_json
from modgraph.store.architecture import Kind, read_architecture
from modgraph.store.checkpoint import read_newest_checkpoint, write_checkpoint
from modgraph.store.growth import find_threshold, read_detection, read_edits, read_growth
from modgraph.store.journal import Journal
from modgraph.store.run_directory import RunDirectory
from tests.continual_runs import SPEC, lay_out_run
from tests.small_runs import begin, reseal

POOL, DESCRIPTOR = "layer.1.adapter", "layer.1.descriptor"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that learnt three tasks; in the second one module was added, and every checkpoint is there."""
    folder = tmp_path_factory.mktemp("grown")
    metrics = begin(lay_out_run(folder), folder / "run", train__keep=1000)
    assert metrics[f"modules.{POOL}"] == 2
    return folder / "run"


def checkpoints(run: Path) -> list[Path]:
    return sorted((run / "checkpoints").glob("*.json"))


def at_growth(run: Path) -> tuple[Path, Path]:
    """The checkpoints before and after the pool grew."""
    return next(
        pair
        for pair in pairwise(checkpoints(run))
        if len({modules(read_architecture(each).graph) for each in pair}) > 1
    )


def modules(graph: Graph) -> int:
    return graph.pools()[POOL].size


def answer(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    capsys.readouterr()
    assert main([*map(str, words)]) == code
    return capsys.readouterr().out


# ---------------------------------------------------------------- logs


def test_a_run_lists_its_modules_by_task_and_what_they_were_added_for(run: Path) -> None:
    difference = read_growth(RunDirectory(run))
    assert difference is not None
    assert difference["tasks"] == ["a", "b", "c"]
    assert [[*each["accuracies"]] for each in difference["accuracies"]] == [["a"], ["a", "b"], ["a", "b", "c"]]
    ((name, pool),) = difference["pools"].items()
    assert (name, pool["modules"], pool["threshold"]) == (POOL, [1, 2, 2], 3.0)
    (added,), (first, second) = pool["added"], pool["detections"]
    assert (added["task"], added["module"], added["batch"]) == ("b", 1, first["batch"])
    assert first["novelty"][first["batch"]] == added["novelty"]
    assert (second["task"], second["batch"]) == ("c", None)
    assert all(min(batch) <= 3 for batch in second["novelty"])


def test_the_edits_that_are_read_lead_from_the_first_graph_to_the_last(run: Path) -> None:
    directory = RunDirectory(run)
    graph = directory.read_graph()
    for edited in Journal(directory.growth).read(read_edits):
        graph = replay_edits(graph, edited["edits"])
        assert graph.hash() == edited["hash"]
    assert graph == directory.graph_now()


def test_a_condition_that_is_no_comparison_with_a_number_has_no_threshold(tmp_path: Path) -> None:
    (tmp_path / "m.mod").write_text(
        SPEC.replace("(r.far -> batch_mean -> min(axis=-1)) > 3", "min(batch_mean(r.far), axis=-1)")
    )
    graph = read_architecture(tmp_path / "m.mod").graph
    assert [find_threshold(graph, node) for node in graph.growths()] == [None]


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"task": "a", "scan": 0, "pool": "p", "novelty": [["x"]]}'])
def test_a_damaged_line_is_reported_and_one_without_an_end_is_not(run: Path, tmp_path: Path, line: str) -> None:
    directory = RunDirectory(shutil.copytree(run, tmp_path / "run"))
    whole = directory.detections.read_text()
    directory.detections.write_text(f"{whole}{line}")
    assert len(Journal(directory.detections).read(read_detection)) == len(whole.splitlines())
    directory.detections.write_text(f"{whole}{line}\n")
    with pytest.raises(ModgraphError, match=rf"MG617(.|\n)*line {len(whole.splitlines()) + 1} of"):
        read_growth(directory)


# ---------------------------------------------------------------- checkpoints and graphs, opened


def test_a_checkpoint_opens_with_its_graph_and_the_places_in_its_spec(run: Path) -> None:
    for path, size in zip(at_growth(run), (1, 2), strict=True):
        for each in (path, path.with_suffix(".safetensors")):
            found = read_architecture(each)
            assert (found.kind, modules(found.graph)) == (Kind.CHECKPOINT, size)
            assert found.source is not None
            assert all(node.span is not None for node in found.graph)
    first = read_architecture(run / "ir.json")
    assert (first.kind, first.source is not None) == (Kind.GRAPH, True)
    assert first.graph == read_architecture(checkpoints(run)[0]).graph


def test_a_checkpoint_opens_without_its_run(run: Path, tmp_path: Path) -> None:
    path = at_growth(run)[1]
    standalone = read_architecture(shutil.copy(path, tmp_path))
    assert standalone.graph == read_architecture(path).graph
    assert (standalone.source, standalone.run) == (None, None)


def test_diff_of_two_checkpoints_says_the_edit_and_that_old_weights_are_as_they_were(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = at_growth(run)
    difference = json.loads(answer(capsys, "diff", before, after.with_suffix(".safetensors"), "--json", code=2))
    assert (difference["before"]["kind"], difference["after"]["kind"]) == ("checkpoint", "checkpoint")
    assert not difference["added"] and not difference["removed"]
    sizes = {each["after"]: a for each in difference["changed"] for a in each["attributes"] if a["name"] == "size"}
    assert {name: (a["before"], a["after"]) for name, a in sizes.items()} == {POOL: (1, 2), DESCRIPTOR: (1, 2)}
    reshaped = {each["after"] for each in difference["weights"]["reshaped"]["list"]}
    assert {"head.weight", "layer.1.r.gates.linear.weight"} <= reshaped
    assert "(graph) → " in answer(capsys, "diff", run / "ir.json", run, code=2)
    assert answer(capsys, "diff", run, checkpoints(run)[-1])


def test_diff_of_two_checkpoints_says_which_weights_have_learnt_since(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    difference = json.loads(answer(capsys, "diff", at_growth(run)[1], checkpoints(run)[-1], "--json", code=2))
    new = ("layer.1.adapter.1.", "layer.1.descriptor.1.", "layer.1.r.", "head.")
    assert difference["values"]["different"]
    assert all(name.startswith(new) for name in difference["values"]["different"])


def test_diff_reports_of_longer_weights_whether_their_old_values_are_there(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last = read_newest_checkpoint(run / "checkpoints")
    assert last is not None and last.graph is not None
    graph = Grow(POOL).apply(last.graph)
    weights = build(graph, 0).state_dict()
    for name, old in last.weights.items():
        weights[name][tuple(map(slice, old.shape))] = old
    longer = {name for name, old in last.weights.items() if old.shape != weights[name].shape}
    weights["layer.1.r.gates.linear.bias"][0] += 1
    grown = write_checkpoint(tmp_path, replace(last, step=last.step + 1, weights=weights, optimizer={}, graph=graph))
    difference = json.loads(answer(capsys, "diff", checkpoints(run)[-1], grown, "--json", code=2))
    assert not difference["values"]["different"]
    assert {*difference["values"]["longer"]} == longer - {"layer.1.r.gates.linear.bias"}
    said = answer(capsys, "diff", checkpoints(run)[-1], grown, code=2)
    assert f"of {len(longer)} reshaped, {len(longer) - 1} have every old value" in said


def test_show_and_cost_take_checkpoints_and_runs(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parameters = []
    for path in at_growth(run):
        assert f"pool[{modules(read_architecture(path).graph)}]" in answer(capsys, "show", path)
        parameters.append(json.loads(answer(capsys, "cost", path, "--json"))["parameters"])
    assert parameters[0] < parameters[1]
    (tmp_path / "printed.json").write_text(answer(capsys, "show", run, "--format", "json"))
    assert read_architecture(tmp_path / "printed.json").graph == read_architecture(run).graph
    assert json.loads((tmp_path / "printed.json").read_text()) == to_json(read_architecture(run).graph)


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("x.json", "{", "MG618"),
        ("x.json", "{}", "MG618"),
        ("none.json", None, "MG618"),
        ("step-00000004.json", "[]", "MG603"),
        ("x.safetensors", "", "MG603"),
    ],
)
def test_what_is_no_graph_is_reported(tmp_path: Path, name: str, content: str | None, code: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(ModgraphError) as caught:
        read_architecture(tmp_path / name)
    assert {each.code for each in caught.value.diagnostics} == {code}


# ---------------------------------------------------------------- views


def page_data(path: Path) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.S)
    assert found is not None
    return json.loads(found[1])


@pytest.mark.slow
def test_the_page_of_a_grown_run_displays_both_graphs_and_marks_what_was_added(run: Path, tmp_path: Path) -> None:
    assert main(["visualize", str(run), "-o", str(tmp_path / "run.html")]) == 0
    data = page_data(tmp_path / "run.html")
    assert [pane["label"] for pane in data["panes"]] == ["as it began", "as it is now"]
    assert "the grown model is the spec with -s layers=[1, 2] -s classes=6" in " ".join(data["panes"][1]["notes"])
    marks = data["panes"][1]["marks"]
    assert marks.keys() >= {POOL, DESCRIPTOR, "head", "y"}
    assert not marks.keys() & {"layer.0.adapter", "layer.0.h.linear", "layer.1.h.linear"}  # which are frozen
    (section,) = [each for each in data["sections"] if each["title"] == "Growth"]
    tables = [each for each in section["content"] if each["kind"] == "table"]
    assert tables[0]["header"] == ["modules after task", "a", "b", "c"]
    assert tables[0]["rows"] == [[POOL, 1, 2, 2], ["all", 1, 2, 2]]
    assert [row[0] for row in tables[2]["rows"]] == ["a", "b", "c"]
    (chart,) = [each for each in section["content"] if each["kind"] == "curves"]
    assert [line["name"] for line in chart["series"]] == ["module 0", "module 1"]
    assert [name for name, _ in chart["levels"]] == ["threshold"]
    assert main(["visualize", str(at_growth(run)[1]), "-o", str(tmp_path / "one.html")]) == 0
    assert len(page_data(tmp_path / "one.html")["panes"]) == 1


@pytest.mark.slow
def test_a_trace_reports_growth_and_draws_it(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = json.loads(answer(capsys, "trace", run, "-o", tmp_path / "x.png", "--view", "growth", "--json"))
    assert summary["growth"] == json.loads(json.dumps(read_growth(RunDirectory(run))))
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert (run / "trace/growth.png").exists()
    assert main(["trace", str(run), "--html", str(tmp_path / "x.html")]) == 0
    assert "Growth" in {each["title"] for each in page_data(tmp_path / "x.html")["sections"]}
    still = shutil.copytree(run, tmp_path / "still", ignore=shutil.ignore_patterns("*.jsonl"))
    reseal(still)
    capsys.readouterr()
    assert main(["trace", str(still), "-o", str(tmp_path / "y.png"), "--view", "growth"]) == 1
    assert "MG842" in capsys.readouterr().err
