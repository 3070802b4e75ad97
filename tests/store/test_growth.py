"""What a run tells of its growth, its checkpoints and graphs opened, and what views make of them."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.ir import replayed, to_json
from modgraph.store.growth import growth_of, read_detections, read_edits, threshold_of
from modgraph.store.opened import Kind, opened
from modgraph.store.run_directory import RunDirectory
from tests.grown_runs import POOLS, TASKS, grown_run
from tests.small_runs import forget_digests


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return grown_run(tmp_path_factory.mktemp("grown"))


def checkpoints(run: Path) -> list[Path]:
    return sorted((run / "checkpoints").glob("*.json"))


def answer(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    capsys.readouterr()
    assert main([*map(str, words)]) == code
    return capsys.readouterr().out


# ---------------------------------------------------------------- logs


def test_replaying_the_log_on_the_first_graph_gives_the_last(run: Path) -> None:
    directory = RunDirectory(run)
    graph = directory.read_graph()
    for edited in read_edits(directory):
        graph = replayed(graph, edited.edits)
        assert graph.hash() == edited.hash
    assert graph == directory.graph_now()


def test_a_run_tells_its_modules_by_task_and_what_they_were_added_for(run: Path) -> None:
    told = growth_of(RunDirectory(run))
    assert told is not None
    assert told["tasks"] == list(TASKS)
    assert {name: pool["modules"] for name, pool in told["pools"].items()} == {POOLS[0]: [2, 2], POOLS[1]: [2, 3]}
    assert {pool["threshold"] for pool in told["pools"].values()} == {2.0}
    (added,) = told["pools"][POOLS[1]]["added"]
    assert (added["task"], added["module"], added["novelty"], added["batch"]) == ("third", 2, (2.5, 3.5), 4)
    assert [each["accuracies"] for each in told["accuracies"]] == [{"second": 0.5}, {"second": 0.5, "third": 0.75}]
    assert [(each["task"], each["scan"]) for each in told["pools"][POOLS[0]]["detections"]] == [
        ("second", 0),
        ("second", 1),
        ("third", 0),
    ]


def test_a_condition_that_is_no_comparison_with_a_number_has_no_threshold(tmp_path: Path) -> None:
    from tests.examples import NOVEL

    text = NOVEL.replace("(r.distance -> batch_mean -> min(axis=-1)) > 2", "r.distance -> batch_mean -> min(axis=-1)")
    (tmp_path / "m.mod").write_text(text)
    graph = opened(tmp_path / "m.mod").graph
    assert [threshold_of(graph, node) for node in graph.growths()] == [None]


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"task": "a", "scan": 0, "pool": "p", "novelty": [["x"]]}'])
def test_a_damaged_line_is_told_and_one_without_an_end_is_not(run: Path, tmp_path: Path, line: str) -> None:
    directory = RunDirectory(shutil.copytree(run, tmp_path / "run"))
    whole = directory.detections.read_text()
    directory.detections.write_text(f"{whole}{line}")
    assert len(read_detections(directory)) == len(whole.splitlines())
    directory.detections.write_text(f"{whole}{line}\n")
    with pytest.raises(ModgraphError, match=rf"MG617(.|\n)*line {len(whole.splitlines()) + 1} of"):
        growth_of(directory)


# ---------------------------------------------------------------- checkpoints and graphs, opened


def test_a_checkpoint_opens_with_its_graph_and_the_places_in_its_spec(run: Path) -> None:
    sizes = []
    for record in checkpoints(run):
        for path in (record, record.with_suffix(".safetensors")):
            found = opened(path)
            assert found.kind is Kind.CHECKPOINT
        sizes.append([pool.size for name, pool in found.graph.pools().items() if name in POOLS])
        assert found.source is not None
        assert all(node.span is not None for node in found.graph)
    assert sizes == [[1, 2], [2, 2], [2, 3]]
    first = opened(run / "ir.json")
    assert (first.kind, first.source is not None) == (Kind.GRAPH, True)
    assert first.graph == opened(checkpoints(run)[0]).graph


def test_a_checkpoint_opens_without_its_run_and_one_without_a_graph_with_it(run: Path, tmp_path: Path) -> None:
    for path in checkpoints(run)[1:2]:
        shutil.copy(path, tmp_path)
        alone = opened(tmp_path / path.name)
        assert alone.graph == opened(path).graph
        assert (alone.source, alone.run) == (None, None)
    older = shutil.copytree(run, tmp_path / "older")
    forget_digests(older)
    assert opened(checkpoints(older)[-1]).graph == opened(run / "ir.json").graph


def test_diff_of_two_checkpoints_says_the_edit_and_that_old_weights_are_as_they_were(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = checkpoints(run)[1:]
    told = json.loads(answer(capsys, "diff", before, after.with_suffix(".safetensors"), "--json", code=2))
    assert (told["before"]["kind"], told["after"]["kind"]) == ("checkpoint", "checkpoint")
    assert not told["added"] and not told["removed"]
    sizes = {each["after"]: a for each in told["changed"] for a in each["attributes"] if a["name"] == "size"}
    assert {name: (a["before"], a["after"]) for name, a in sizes.items()} == {
        "blocks.1.adapter": (2, 3),
        "blocks.1.descriptor": (2, 3),
    }
    assert not told["values"]["different"]
    reshaped = [each["after"] for each in told["weights"]["reshaped"]["list"]]
    assert told["values"]["longer"] == reshaped == ["blocks.1.r.scores.linear.weight", "blocks.1.r.scores.linear.bias"]
    assert "of 2 reshaped, 2 have every old value" in answer(capsys, "diff", before, after, code=2)
    assert "(graph) → " in answer(capsys, "diff", run / "ir.json", run, code=2)
    assert answer(capsys, "diff", run, checkpoints(run)[-1])


def test_show_and_cost_take_checkpoints_and_runs(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parameters = []
    for path in checkpoints(run):
        assert "pool[2]" in answer(capsys, "show", path)
        parameters.append(json.loads(answer(capsys, "cost", path, "--json"))["parameters"])
    assert [after - before for before, after in itertools.pairwise(parameters)] == [84, 84]
    (tmp_path / "printed.json").write_text(answer(capsys, "show", run, "--format", "json"))
    assert opened(tmp_path / "printed.json").graph == opened(run).graph
    assert json.loads((tmp_path / "printed.json").read_text()) == to_json(opened(run).graph)


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
def test_what_is_no_graph_is_told(tmp_path: Path, name: str, content: str | None, code: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(ModgraphError) as caught:
        opened(tmp_path / name)
    assert {each.code for each in caught.value.diagnostics} == {code}


# ---------------------------------------------------------------- views


def page_data(path: Path) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.S)
    assert found is not None
    return json.loads(found[1])


def test_the_page_of_a_grown_run_shows_both_graphs_and_marks_what_was_added(run: Path, tmp_path: Path) -> None:
    assert main(["visualize", str(run), "-o", str(tmp_path / "run.html")]) == 0
    data = page_data(tmp_path / "run.html")
    assert [pane["label"] for pane in data["panes"]] == ["as it began", "as it is now"]
    marks = data["panes"][1]["marks"]
    assert {id for id in marks if marks[id]["lines"] and "size" in marks[id]["lines"][0]} == {
        f"blocks.{block}.{pool}" for block in (0, 1) for pool in ("adapter", "descriptor")
    }
    assert not any("frozen" in line and "size" not in line for id in ("logits.linear",) for line in marks.get(id, []))
    (section,) = [each for each in data["sections"] if each["title"] == "Growth"]
    table = section["content"][0]
    assert table["header"] == ["modules after task", *TASKS]
    assert table["rows"] == [[POOLS[0], 2, 2], [POOLS[1], 2, 3], ["all", 4, 5]]
    (accuracy,) = [each for each in section["content"] if each["title"] == "test accuracy"]
    assert accuracy["rows"] == [["second", 0.5, None, 0.5], ["third", 0.5, 0.75, 0.5]]
    charts = [each for each in section["content"] if each["kind"] == "curves"]
    assert [[line["name"] for line in each["series"]] for each in charts] == [
        ["module 0", "module 1", "threshold"],
        ["module 0", "module 1", "module 2", "threshold"],
    ]
    assert main(["visualize", str(checkpoints(run)[1]), "-o", str(tmp_path / "one.html")]) == 0
    assert len(page_data(tmp_path / "one.html")["panes"]) == 1


def test_a_trace_tells_growth_and_draws_it(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = json.loads(answer(capsys, "trace", run, "-o", tmp_path / "x.png", "--view", "growth", "--json"))
    assert summary["growth"] == json.loads(json.dumps(growth_of(RunDirectory(run))))
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert (run / "trace/growth.png").exists()
    assert main(["trace", str(run), "--html", str(tmp_path / "x.html")]) == 0
    assert "Growth" in {each["title"] for each in page_data(tmp_path / "x.html")["sections"]}
    still = shutil.copytree(run, tmp_path / "still", ignore=shutil.ignore_patterns("*.jsonl"))
    capsys.readouterr()
    assert main(["trace", str(still), "-o", str(tmp_path / "y.png"), "--view", "growth"]) == 1
    assert "MG842" in capsys.readouterr().err
