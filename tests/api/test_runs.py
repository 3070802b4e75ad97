"""`modgraph.runs`: many runs as a sequence, selected, sorted, as tables and as a data frame."""

from __future__ import annotations

from pathlib import Path

import pytest

import modgraph
from modgraph import ModgraphError
from modgraph.tables.layout import agree_on_lengths, make_layout
from tests.tables.runs_for_tables import write_run, write_sweep

ACCURACIES = {2: [0.80, 0.84], 4: [0.90, 0.92]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    points = []
    for experts, accuracies in ACCURACIES.items():
        for seed, accuracy in enumerate(accuracies):
            name = f"experts={experts},seed={seed}"
            write_run(folder / name, experts, seed, {"test.accuracy": accuracy, "test.total_loss": 1 - accuracy})
            points.append({"run": name, "values": {"experts": experts, "train.seed": seed}})
    points.append({"run": "experts=8,seed=0", "values": {"experts": 8, "train.seed": 0}})
    tables = {"accuracies": {"rows": ["experts"], "columns": {"acc.": "test.accuracy"}}}
    write_sweep(folder, points, tables=tables)
    return folder


def test_runs_are_a_sequence_of_what_is_known_of_each(folder: Path) -> None:
    runs = modgraph.runs(folder)
    assert [run.find("experts") for run in runs] == [2, 2, 4, 4, None]
    assert len(runs[1:3]) == 2 and isinstance(runs[1:3], modgraph.Runs)
    assert runs[0].metrics["test.accuracy"] == 0.80 and runs[-1].state == "planned"
    assert repr(runs) == "<Runs: 4 finished, 1 planned>"
    assert "experts=4,seed=1  finished" in str(runs), "printed, it is a list"


def test_conditions_are_texts_or_values(folder: Path) -> None:
    runs = modgraph.runs(folder)
    four = runs.where("test.accuracy>0.8", experts=4)
    assert [run.find("train.seed") for run in four] == [0, 1]
    assert list(modgraph.runs(folder, where={"experts": 4})) == list(four)
    assert list(modgraph.runs(folder, where="experts=4")) == list(four)
    with pytest.raises(ModgraphError, match='no run has "expert"'):
        runs.where(expert=4)


def test_the_best_run_follows_the_direction_of_the_metric(folder: Path) -> None:
    runs = modgraph.runs(folder)
    wanted = runs.sort("-test.accuracy")[0]
    assert runs.best("test.accuracy") == wanted == runs.best("test.total_loss")
    assert wanted.find("test.accuracy") == 0.92
    with pytest.raises(ModgraphError, match="no run has"):
        runs.best("accuracy")


def test_tables_are_those_of_the_sweep_and_by_keys(folder: Path) -> None:
    runs = modgraph.runs(folder)
    table = runs.tables()["accuracies"]
    assert isinstance(table, modgraph.Table)
    assert str(runs.table("accuracies")) == str(table)
    assert [row.values for row in runs.table("accuracies", sort="-experts")] == [(4,), (2,)]
    assert [record["test.accuracy"] for record in runs.table(rows=["experts"]).list_records()] == [
        pytest.approx(0.82),
        pytest.approx(0.91),
    ]
    with pytest.raises(ModgraphError, match=r'unknown key "rowz"[^?]*did you mean "rows"'):
        runs.table(rowz=["experts"])
    with pytest.raises(ModgraphError, match='unknown table "accuracy"'):
        runs.table("accuracy")


def test_a_notebook_displays_tables_without_scripts(folder: Path) -> None:
    runs = modgraph.runs(folder)
    for html in (runs._repr_html_(), runs.table("accuracies")._repr_html_()):
        assert "<table>" in html and "<b>0.9" in html and "<script" not in html


def test_a_data_frame_has_a_row_for_each_run(folder: Path) -> None:
    frame = modgraph.runs(folder).where(state="finished").frame()
    assert frame.groupby("experts")["test.accuracy"].mean().to_dict() == pytest.approx({2: 0.82, 4: 0.91})
    assert {"run", "state", "train.optimizer.lr", "active_macs"} <= {*frame.columns}


def test_without_pandas_a_data_frame_names_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modgraph.extras.is_installed", lambda module: module != "pandas")
    with pytest.raises(ModgraphError, match=r"MG119[\s\S]*modgraph-compiler\[tables\]"):
        modgraph.runs(folder).frame()


def test_a_page_is_written_and_no_file_of_others_overwritten(folder: Path, tmp_path: Path) -> None:
    path = modgraph.runs(folder).write_page(tmp_path / "page.html", title="My sweep")
    assert "My sweep" in path.read_text() and "accuracies" in path.read_text()
    modgraph.runs(folder).write_page(path)
    path.write_text("<p>mine</p>")
    with pytest.raises(ModgraphError, match="MG121"):
        modgraph.runs(folder).write_page(path)


def test_what_is_no_folder_of_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModgraphError, match="no runs in"):
        modgraph.runs(tmp_path)
    with pytest.raises(ModgraphError, match="there is no such folder"):
        modgraph.runs(tmp_path / "none")
    with pytest.raises(TypeError, match="paths of folders, not int"):
        modgraph.runs(3)  # type: ignore[arg-type]


def test_costs_count_the_lengths_on_which_tables_agree() -> None:
    layouts = [make_layout(lengths=each) for each in ({"time": 64}, {"time": 64, "word": 3}, {"word": 4}, None)]
    assert agree_on_lengths(layouts) == {"time": 64}


def test_a_table_itself_takes_no_lengths(folder: Path) -> None:
    with pytest.raises(TypeError, match="lengths="):
        modgraph.runs(folder).table(lengths={"time": 64})
