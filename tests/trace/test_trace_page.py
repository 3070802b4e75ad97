"""The page of a trace: it holds what trace.json says, with the graph, in one file that stays small."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from modgraph.cli import main
from modgraph.inspect.trace_sections import MOST_POSITIONS, build_sections, find_loads
from modgraph.ir import comparisons
from modgraph.program import loads
from modgraph.store.run_directory import RunDirectory
from modgraph.store.stored_trace import read_trace
from modgraph.trace.summary import as_json
from tests.trace.test_trace import SPEC, TRANSFORMER, trained
from tests.trace.test_trace_statistics import TASKS, B, M, N, routed, traced

LARGEST = 10_000_000
ROUTE = "blocks.0.expert"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a trace, and beside it the page."""
    folder = tmp_path_factory.mktemp("page")
    path = trained(folder, TRANSFORMER)
    assert main(["trace", str(path), "--html", f"{folder}/page.html"]) == 0
    return path


def data_of(page: Path) -> dict[str, Any]:
    """What a page is drawn from."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.S)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def trace_of(run: Path) -> dict[str, Any]:
    kept = read_trace(RunDirectory(run))
    assert kept is not None
    return dict(kept.content)


def test_the_page_has_the_graph_and_what_was_traced(run: Path) -> None:
    page = run.parent / "page.html"
    assert page.stat().st_size < LARGEST
    data, trace = data_of(page), trace_of(run)
    (pane,) = data["panes"]
    assert pane["loads"] == {route["node"]: route["rounds"][-1]["use"] for route in trace["routes"].values()}
    sections = {section["title"]: section for section in data["sections"]}
    assert list(sections) == ["Routes", *trace["routes"], "Co-activation between layers", "Paths", "Pictures"]
    for name, route in trace["routes"].items():
        assert sections[name]["nodes"] == [route["node"], route["pool"]]
        bars = {each["title"]: each["values"] for each in sections[name]["content"] if each["kind"] == "bars"}
        assert bars == {"load: times chosen": route["load"], "importance: sum of gates": route["importance"]}
    (joint,) = [each for each in sections["Co-activation between layers"]["content"] if each["kind"] == "heatmap"]
    assert joint["values"] == trace["coactivation"][0]["joint"]
    assert [each["title"] for each in sections["Pictures"]["content"]] == ["places"]
    (paths,) = [each for each in sections["Paths"]["content"] if each["kind"] == "paths"]
    pairs = 2 * np.array(paths["shares"][0])  # each module goes with two modules of the next route
    np.testing.assert_allclose(np.sum(paths["flows"][0], 1), pairs)


def test_every_node_that_a_section_speaks_of_is_in_the_graph(run: Path) -> None:
    data = data_of(run.parent / "page.html")
    text = json.dumps(data["panes"][0]["scene"])
    assert all(f'"id": "{node}"' in text for section in data["sections"] for node in section["nodes"])


def test_a_map_of_each_module_over_the_image_has_one_scale(run: Path) -> None:
    trace = trace_of(run)["routes"][ROUTE]
    section = build_sections({"split": "test", "examples": 40, "routes": {ROUTE: trace}})[1].as_json()
    maps = [each for each in section["content"] if each.get("title", "").startswith("expert.")]
    use = np.array(trace["positions"]["use"])[1:].reshape(2, 3, 4)
    np.testing.assert_allclose(np.stack([each["values"] for each in maps], -1), use)
    assert len({each["most"] for each in maps}) == 1


def test_many_positions_are_taken_together() -> None:
    graph = loads(TRANSFORMER).ir
    trace = as_json(traced(graph, [routed((B, 150), 2), routed((B, 150))]))["routes"][ROUTE]
    section = build_sections({"split": "test", "examples": B, "routes": {ROUTE: trace}})[1].as_json()
    (table,) = [each for each in section["content"] if each.get("title") == "share of modules by token"]
    use = np.array(trace["positions"]["use"])
    assert len(table["rows"]) == 50 <= MOST_POSITIONS
    np.testing.assert_allclose(table["values"], use.reshape(50, 3, M).mean(1))
    assert table["rows"][-1] == "token 147–149"


@pytest.mark.slow
def test_rounds_and_tasks_have_their_place(tmp_path: Path) -> None:
    run = trained(tmp_path, SPEC)
    assert main(["trace", str(run), "-o", str(tmp_path / "page.html")]) == 0
    (_, section, *_) = data_of(tmp_path / "page.html")["sections"]
    (rounds,) = [each for each in section["content"] if each.get("title") == "share of modules by round"]
    assert rounds["values"] == [each["use"] for each in trace_of(run)["routes"]["p"]["rounds"]]
    graph = loads(TASKS).ir
    predictions = {each.target: each.prediction for each in comparisons(graph)}
    trace = as_json(traced(graph, [routed((B, N)), routed((B, N))], predictions=predictions))
    tasks = build_sections(trace)[-1].as_json()
    assert tasks["title"] == "Tasks"
    assert tasks["content"][1]["values"] == list(trace["by_task"]["expert"].values())
    assert [*find_loads(trace)] == [route["node"] for route in trace["routes"].values()]


def test_pictures_that_the_page_cannot_hold_are_named(run: Path) -> None:
    pictures = {"places": b"p" * LARGEST, "further": b"p", "groups": b"p"}
    *_, section = build_sections(trace_of(run), pictures)
    further, places = (each.as_json() for each in section.content)
    assert (further["kind"], further["title"], places["kind"]) == ("picture", "further", "text")
    assert "--view places" in places["text"]


@pytest.mark.parametrize("arguments", [["--html", "t.json"], ["-o", "t.htm"], ["--view", "paths", "--html", "t.html"]])
def test_other_files_are_no_pages(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["trace", str(run), *arguments]) == 1
    assert "error[MG8" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "t.html").write_text("<p>mine</p>")
    assert main(["trace", str(run), "--html", "t.html"]) == 1
    assert "MG121" in capsys.readouterr().err
