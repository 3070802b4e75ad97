"""How values print themselves in a session, and show themselves in a notebook."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import modgraph
from modgraph.api.runs import Runs
from modgraph.inspect.notebook import render_table, render_text
from modgraph.tables.facts import FINISHED, RunFacts
from tests.api.digits import RECIPE, SPEC, own_data

SPECS = Path(__file__).parents[2] / "specs"
SHIPPED = sorted(path for path in SPECS.rglob("*.mod") if "parts" not in path.parts)
MOST = 300_000  # letters of what a notebook holds of a value
LONGEST = 300  # letters of a line


@pytest.mark.some(1)
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_spec_displays_itself_in_a_notebook_of_bounded_size(path: Path) -> None:
    program = modgraph.load(path)
    for value in (program, program.cost(), modgraph.diff(program, SPECS / "smn.mod")):
        html = value._repr_html_()
        assert len(html) < MOST, f"{type(value).__name__}: {len(html):,}"
        assert "<script" not in html, "a notebook runs none of it"
    assert "<img" in program._repr_html_(), "the picture"
    assert "data:image/svg+xml;base64" in program._repr_html_()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> modgraph.Run:
    return modgraph.train(modgraph.loads(SPEC), RECIPE, data=own_data(), out=tmp_path_factory.mktemp("run") / "digits")


def test_values_print_themselves_in_a_line(run: modgraph.Run) -> None:
    program = modgraph.loads(SPEC)
    wider = modgraph.diff(program, modgraph.loads(SPEC, hidden=32))
    values: list[Any] = [run, program, program.cost(), wider, program.visualize()]
    lines = {repr(value) for value in values}
    assert {line for line in lines if "\n" in line or len(line) > LONGEST or " at 0x" in line} == set()
    assert f"<Comparison of <string> and <string>: {wider}>" in lines
    assert repr(program.visualize()) == "<Drawing of digits: 9 boxes>"


def test_a_run_displays_its_metrics_in_a_notebook(run: modgraph.Run) -> None:
    html = run._repr_html_()
    assert len(html) < MOST
    assert "test.accuracy" in html
    assert f"{run.metrics['test.accuracy']:.4g}" in html


def test_epochs_fit_a_notebook_by_the_metrics_that_say_most(run: modgraph.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"route.{at}.H_a" for at in range(40)] + ["loss.part", "total_loss", "f1", "accuracy", "state.warmth"]
    records = [
        {"step": 9, "epoch": 1, "split": split, **dict.fromkeys(names, 0.5)} for split in ("train", "validation")
    ]
    monkeypatch.setattr("modgraph.api.run.read_metrics", lambda directory: records)
    html = run._repr_html_()
    header = re.search(r"the last epochs(.*?)</p>.*?<thead><tr>(.*?)</tr>", html, re.S)
    assert header is not None
    assert re.findall(r"<th>(.*?)</th>", header[2]) == ["epoch", "step", "split", "accuracy", "f1", "total_loss"]
    assert header[1] == "; Run.history has 42 more metrics"
    assert html.count("<table>") == html.count('overflow-x: auto"><table>') == 2, "each scrolls in a frame of its own"


def test_many_runs_display_the_first_ones_in_a_notebook(tmp_path: Path) -> None:
    found = [
        RunFacts(tmp_path / f"r{n}", f"lr={n},seed=0", FINISHED, settings={"lr": n}, metrics={"test.accuracy": n / 500})
        for n in range(500)
    ]
    html = Runs(tuple(found))._repr_html_()
    assert len(html) < MOST and "<script" not in html
    assert "500 finished" in html and "lr=3,seed=0" in html and "and 440 more rows" in html
    assert "more rows" not in Runs(tuple(found[:60]))._repr_html_()


def test_results_are_records_that_pandas_takes(run: modgraph.Run) -> None:
    """A list of dictionaries of plain values: with pandas, `pandas.DataFrame(records)`."""
    tables = {"cost": modgraph.loads(SPEC).cost().as_table(), "history": run.history}
    for name, records in tables.items():
        assert records, name
        values = [value for record in records for value in record.values()]
        assert {type(value) for value in values} <= {str, int, float, bool}, name
    assert tables["cost"][0] == {"node": "", **modgraph.loads(SPEC).cost().counts}, "the whole stands first"
    assert (
        sum(row["parameters"] for row in tables["cost"] if row["node"] == "logits") == tables["cost"][0]["parameters"]
    )
    assert {type(value) for value in run.metrics.values()} <= {int, float}


def test_a_table_of_a_notebook_is_cut_and_says_so() -> None:
    html = render_table([{"at": at, "name": "<b>"} for at in range(100_000)])
    assert len(html) < MOST
    assert "99,940 more rows" in html
    assert "<b>" not in html, "texts are escaped"
    assert re.search(r"and [\d,]+ more letters", render_text("x" * MOST))


def test_without_v8_a_notebook_lacks_only_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modgraph.extras.is_installed", lambda module: module != "py_mini_racer")
    html = modgraph.loads(SPEC)._repr_html_()
    assert "<img" not in html
    assert "modgraph-compiler[visualize]" in html, "it says what is missing"
    assert "multiply-accumulates" in html, "costs need no picture"
