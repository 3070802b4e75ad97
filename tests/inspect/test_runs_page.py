"""The page of many runs: tables, curves with bands, metrics against costs, and the list of runs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import mean, stdev
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from modgraph.api.runs import Runs
from modgraph.diagnostics import ModgraphError
from modgraph.store.records import seal
from modgraph.store.run_directory import FORMAT
from modgraph.tables.facts import FAILED, FINISHED, UNFINISHED, RunFacts
from modgraph.tables.group import make_list, make_table
from modgraph.tables.layout import make_layout
from modgraph.tables.page import write_page
from modgraph.tables.table import Table
from tests.inspect.browser import find_wide, quiet_page

EPOCHS, STEPS = 4, 10  # of a run; steps of an epoch


def accuracy(experts: int, width: int, seed: int, epoch: int) -> float:
    return round(0.1 * epoch + 0.01 * experts + 0.002 * width + 0.003 * seed * epoch, 6)


def make_run(folder: Path, experts: int, width: int, seed: int, epochs: int = EPOCHS) -> RunFacts:
    """The facts of a finished run, whose log is in the folder."""
    name = f"experts={experts},width={width},seed={seed}"
    found = [accuracy(experts, width, seed, epoch) for epoch in range(1, epochs + 1)]
    (folder / name).mkdir(parents=True)
    lines = [
        {"step": STEPS * at, "epoch": at, "split": split, "accuracy": value, "total_loss": 1 / value, "use.0": 0.5}
        for at, value in enumerate(found, start=1)
        for split in ("train", "validation")
    ]
    (folder / name / "run.json").write_bytes(seal({"format": FORMAT, "status": FINISHED, "step": 0}))
    segments = [{"since": STEPS * at, "step": STEPS * (at + 1), "seconds": 0.5 * width} for at in range(epochs)]
    (folder / name / "seconds.jsonl").write_text("".join(json.dumps(each) + "\n" for each in segments))
    (folder / name / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return RunFacts(
        path=folder / name,
        name=name,
        state=FINISHED,
        model="digits",
        settings={"experts": experts, "width": width, "train.seed": seed},
        metrics={"steps": STEPS * epochs, "epochs": epochs, "test.accuracy": found[-1], "test.total_loss": 1.0},
        latest={"validation.accuracy": found[-1]},
        costs={"parameters": 1000 * experts, "active_macs": 100 * width**2, "seconds": 3.5 * width + seed},
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[RunFacts]:
    """Six rows of two runs, the second of the last one shorter; a run that failed, and one that is not finished."""
    folder = tmp_path_factory.mktemp("runs")
    found = [make_run(folder, experts, width, seed) for experts in (1, 2, 4) for width in (8, 32) for seed in (0, 1)]
    found[-1] = make_run(folder / "short", 4, 32, 1, epochs=2)
    failed = RunFacts(folder / "bad", "<b>bad</b>", FAILED, "MG630 the loss is nan & <i>", settings={"experts": 8})
    return [*found, failed, RunFacts(folder / "gone", "later", UNFINISHED)]


def compute_mean(row: tuple[int, int], epoch: int) -> tuple[float, float]:
    values = [accuracy(*row, seed, epoch) for seed in (0, 1)]
    return mean(values), stdev(values)


def make_tables(runs: list[RunFacts]) -> list[Table]:
    layout = make_layout(rows="width", columns=("test.accuracy", "seconds"))
    return [make_table(runs, title="first"), make_table(runs, layout, "by width")]


def data_of(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found is not None, "the page has data"
    return json.loads(found[1])


@pytest.fixture
def page(browser: Browser, runs: list[RunFacts], tmp_path: Path) -> Iterator[Page]:
    path = tmp_path / "runs.html"
    path.write_text(write_page(runs, make_tables(runs), "Runs of <digits>"))
    with quiet_page(browser, path) as page:
        yield page


def names_in(page: Page) -> list[str]:
    return page.locator("table.runs td.name").all_text_contents()


def lines_of(page: Page, row: str) -> Locator:
    """The curve of a row where all of its runs have a value."""
    return page.locator(f'figure.curves .mark-line path[aria-label="{row}"]:not([stroke-dasharray])')


def test_curves_are_those_of_the_logs(runs: list[RunFacts]) -> None:
    data = data_of(write_page(runs, make_tables(runs)))
    for run, record in zip(runs[:12], data["records"], strict=False):
        lines = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
        of_split = [line for line in lines if line["split"] == "validation"]
        part = record["curves"]["validation"]
        assert part["steps"] == [line["step"] for line in of_split], run.name
        assert part["values"]["accuracy"] == pytest.approx([line["accuracy"] for line in of_split], rel=1e-4)
        assert part["seconds"] == [0.5 * run.settings["width"] * line["epoch"] for line in of_split]
        assert "use.0" not in part["values"], "metrics of single modules are left out"
    page = write_page(runs, make_tables(runs))
    for first in ("test.accuracy", "validation.accuracy", "active_macs"):
        assert f'value="{first}" selected' in page


def test_values_across_columns_have_curves_of_their_own(runs: list[RunFacts]) -> None:
    page = write_page(runs, [make_table(runs, make_layout(rows="experts", across="width", columns="test.accuracy"))])
    (table,) = data_of(page)["tables"]
    assert "<h2>Results: test.accuracy by width</h2>" in page
    found = {name: [runs[at].name for at in part] for name, part in zip(table["rows"], table["runs"], strict=True)}
    assert page.count("<tbody><tr>") + page.count('</tr><tr><td class="numeric">') == 3, "three rows"
    assert len(found) == 6, "a row has two curves"
    assert found["experts=2, width=32"] == ["experts=2,width=32,seed=0", "experts=2,width=32,seed=1"]


def test_each_run_of_a_list_has_a_curve(runs: list[RunFacts]) -> None:
    (table,) = data_of(write_page(runs, [make_list(runs)]))["tables"]
    assert table["runs"] == [[at] for at in range(len(runs))]
    assert table["rows"] == [run.name for run in runs]


def test_many_long_logs_are_thinned_to_their_ends(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, experts, 8, 0, epochs=500 + experts) for experts in range(1, 5)]
    for run, record in zip(runs, data_of(write_page(runs, [make_table(runs)]))["records"], strict=True):
        steps = record["curves"]["train"]["steps"]
        assert 100 < len(steps) < 410 and steps[-1] == run.metrics["steps"], "few points, and the last one"


def test_the_best_of_many_rows_are_displayed_at_first(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, experts, 8, 0) for experts in range(1, 21)]
    (table,) = data_of(write_page(runs, [make_table(runs)]))["tables"]
    names = [table["rows"][at] for at in table["displayed"]]
    assert names == [f"experts={experts}" for experts in range(9, 21)], "more experts have a better accuracy"


def test_the_pointer_reads_the_mean_and_deviation_of_a_row(page: Page) -> None:
    place = page.locator("figure.curves svg")
    box, end = place.bounding_box(), lines_of(page, "experts=1, width=8").bounding_box()
    assert box is not None and end is not None
    page.mouse.move(end["x"] + end["width"] - 20, end["y"] + 10)
    expected, deviation = compute_mean((1, 8), EPOCHS)
    expect(page.locator(".tip:visible")).to_have_text(
        re.compile(rf"experts=1, width=8\nstep {STEPS * EPOCHS}, 16 s: {expected:.4g} ± {deviation:.3g}, 2 runs")
    )
    expect(lines_of(page, "experts=1, width=32")).to_have_attribute("opacity", "0.2")
    expect(lines_of(page, "experts=1, width=8")).to_have_attribute("opacity", "1")
    page.mouse.move(0, 0)


def test_where_only_some_runs_came_the_curve_is_dotted(page: Page) -> None:
    """One of two runs of the last row ended at half of the steps."""
    whole, half = (lines_of(page, f"experts={experts}, width=32").bounding_box() for experts in (2, 4))
    assert whole is not None and half is not None and half["width"] == pytest.approx(whole["width"] / 3, rel=0.05)
    dotted = page.locator('figure.curves .mark-line path[stroke-dasharray][aria-label="experts=4, width=32"]')
    expect(dotted).to_have_count(1)


def point_of(page: Page, name: str) -> Locator:
    return page.locator(f'figure.points .mark-symbol path[aria-label^="{name}"]')


def test_each_finished_run_is_a_point_that_leads_to_its_row(page: Page) -> None:
    points = page.locator("figure.points")
    expect(points.locator(".mark-symbol path")).to_have_count(12)
    expect(points).to_contain_text("active MACs (log scale)")
    point_of(page, name := "experts=4,width=32,seed=1").hover()
    expect(page.locator(".tip")).to_contain_text(f"{name}\ntest.accuracy 0.31\nactive MACs 102k", use_inner_text=True)
    point_of(page, name).click()
    expect(page.locator("tr.pointed")).to_contain_text("experts=4,width=32,seed=1")
    expect(page.locator("tr.pointed")).to_be_focused()


def test_a_rectangle_selects_runs_and_words_fade_the_others(page: Page) -> None:
    plot = page.locator("figure.points svg")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 48, box["y"] + 15)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 300, steps=3)
    page.mouse.up()
    names = [name for name in names_in(page) if "width=8" in name]
    expect(page.locator("#runs output")).to_have_text("6 of 14")
    assert page.locator("table.runs tbody tr:visible td.name").all_text_contents() == names, "the half with few MACs"
    page.mouse.dblclick(box["x"] + 200, box["y"] + 100)
    expect(page.locator("#runs output")).to_have_text("")
    page.get_by_label("filter").fill("experts=2")
    expect(point_of(page, "experts=1,width=8,seed=0")).to_have_attribute("opacity", "0.2")
    expect(point_of(page, "experts=2,width=8,seed=0")).to_have_attribute("opacity", "0.9")
    page.get_by_label("filter").fill("")


def test_metrics_rows_scales_and_colours_follow_the_keyboard(page: Page) -> None:
    curves, points, metric = page.locator("figure.curves"), page.locator("figure.points"), page.get_by_label("metric")
    metric.first.select_option("train.total_loss")
    expect(curves).to_contain_text("train.total_loss")
    page.locator("select[name=over]").select_option("training time [s]")
    expect(curves).to_contain_text("training time [s]")
    page.get_by_role("checkbox", name="experts=1, width=8").press("Space")
    expect(lines_of(page, "experts=1, width=8")).to_have_count(0)
    expect(lines_of(page, "experts=1, width=32")).to_have_count(1)
    page.get_by_label("log scale").first.press("Space")
    expect(curves).to_contain_text("train.total_loss (log scale)")
    page.get_by_label("rows of").select_option("by width")
    expect(page.locator("fieldset:visible label")).to_have_count(2)
    page.get_by_role("button", name="none").press("Enter")
    expect(curves).to_have_text("no run of these rows has this metric here")
    metric.last.select_option("validation.accuracy")
    page.get_by_label("against").select_option("seconds")
    expect(points).to_contain_text("validation.accuracy")
    expect(points).not_to_contain_text("log scale")
    page.get_by_label("colour").select_option("experts")
    expect(points.locator(".role-legend")).to_contain_text("1248experts")


def test_runs_are_sorted_and_filtered(page: Page, runs: list[RunFacts]) -> None:
    assert names_in(page)[0] == runs[0].name and len(names_in(page)) == len(runs)
    head = page.locator("table.runs th", has_text="test.accuracy")
    for order, reverse in (("ascending", False), ("descending", True)):
        head.get_by_role("button").press("Enter")
        expect(head).to_have_attribute("aria-sort", order)
        values = [value for run in runs if (value := run.metrics.get("test.accuracy")) is not None]
        cells = page.eval_on_selector_all(
            "table.runs tbody tr", "rows => rows.map((row) => row.cells[5].dataset.value)"
        )
        assert [float(each) for each in cells[:12]] == sorted(values, reverse=reverse)
        assert cells[12:] == [None, None], "runs without the metric come last"
    page.get_by_label("filter").fill("experts=2 seed=1")
    expect(page.locator("table.runs tbody tr:visible")).to_have_count(2)
    expect(page.locator("#runs output")).to_have_text(f"2 of {len(runs)}")


def test_runs_that_are_not_finished_are_listed_with_the_reason(page: Page) -> None:
    expect(page.locator(".counts")).to_have_text("14 runs: 12 finished, 1 failed, 1 unfinished")
    failed = page.locator("table.runs tr", has=page.locator(".state-failed"))
    expect(failed).to_contain_text("<b>bad</b>MG630 the loss is nan & <i>")
    expect(page.locator("h1")).to_have_text("Runs of <digits>")


def test_tables_mark_the_best_and_name_the_test(page: Page) -> None:
    first = page.locator("table.results").first
    expect(first.locator("td:has(b)").first).to_contain_text("*")
    expect(first.locator("tbody tr")).to_have_count(6)
    expect(page.locator("#tables")).to_contain_text("Welch's t-test against the best row")
    expect(page.locator("#tables")).not_to_contain_text("--")


@pytest.mark.some(1)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_fits_a_phone_in_both_themes(
    browser: Browser, runs: list[RunFacts], tmp_path: Path, theme: str
) -> None:
    path = tmp_path / "runs.html"
    path.write_text(write_page(runs, make_tables(runs)))
    with quiet_page(browser, path, width=390, theme=theme) as page:
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        assert not find_wide(page), "only tables scroll sideways"
        page.get_by_role("button", name="switch between light and dark").click()
        assert page.evaluate("document.documentElement.dataset.theme") != theme


NOTHING: Mapping[str, list[str]] = {"no run": [], "none finished": ["later"]}


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", NOTHING)
def test_a_page_without_finished_runs_says_so(browser: Browser, tmp_path: Path, kind: str) -> None:
    path, runs = tmp_path / "runs.html", [RunFacts(tmp_path / name, name, UNFINISHED) for name in NOTHING[kind]]
    empty = Table("first", (), (), (), (), ("none of its runs is finished",))
    path.write_text(write_page(runs, [empty]))
    with quiet_page(browser, path) as page:
        expect(page.locator("#tables")).to_have_text("firstnone of its runs is finished")
        expect(page.locator("#charts")).to_contain_text("There are no metrics of these runs yet.")
        expect(page.locator("table.runs tbody tr")).to_have_count(len(runs))


def test_a_picture_has_the_charts_that_the_page_has_at_first(runs: list[RunFacts], tmp_path: Path) -> None:
    path = Runs(tuple(runs)).write_picture(tmp_path / "runs.svg", *make_tables(runs))
    texts = ElementTree.parse(path).getroot().itertext()
    found = Counter(text.strip() for text in texts)
    expected = {"experts=4, width=32": 2, "validation.accuracy": 2, "test.accuracy": 2, "active MACs (log scale)": 2}
    assert {text: found[text] for text in expected} == expected
    with pytest.raises(ModgraphError, match="MG946"):
        Runs((runs[-1],)).write_picture(tmp_path / "none.svg", Table("first", (), (), (), ()))
