"""The page of a run: metrics over time, what was traced of it, and in notebooks."""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, expect

from modgraph.cli import main
from modgraph.drawings import draw
from modgraph.inspect.page.content import Change, Curves, Pane, Plan, Section, Table
from modgraph.inspect.page.document import page_of
from modgraph.inspect.run_sections import build_confusion, build_loads, build_recipe, build_results
from modgraph.inspect.scene import scene_of
from modgraph.program import loads
from modgraph.store.journal import LOGS, read_samples, seal_logs
from modgraph.store.run_directory import FINISHED, RunDirectory
from modgraph.training.run import finish, start_run
from modgraph.training.stored_run import load_run
from tests.inspect.browser import quiet_page
from tests.small_runs import reseal

SPEC = """
model small(experts=3) {
  input  image: float[1, 4, 4]
  target label: class[2]
  pool   expert[experts] = linear(3)
  router gate = cosine(1)
  logits = image -> patch_embed(2, 3) -> expert by gate -> mean -> linear(2)
  output logits
  loss cross_entropy(logits, label)
  loss 0.01 * importance(gate)
}
"""
MOST_BYTES = 10_000_000


def test_loads_of_a_pool_with_one_module_are_left_out() -> None:
    samples = [{"step": at, "load": {"several": [0.25, 0.75], "single": [1.0]}} for at in (1, 11)]
    (chart,) = build_loads([], samples)
    assert isinstance(chart, Curves) and chart.title == "several"


def test_a_long_list_of_the_recipe_is_written_from_its_beginning() -> None:
    tasks = [f"task {number}" for number in range(20)]
    (_, table, *_) = build_recipe({"tasks": tasks, "path": f"{'folder/' * 50}file"}, ["tasks", "path"], None).content
    assert isinstance(table, Table)
    assert table.rows[0] == ["tasks", json.dumps(tasks)], "whole"
    assert str(table.rows[1][1]).startswith("…") and str(table.rows[1][1]).endswith("/file"), "of a path the end"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three epochs."""
    folder = tmp_path_factory.mktemp("run")
    images = np.random.default_rng(0).random((16, 1, 4, 4), np.float32)
    np.savez(folder / "data.npz", image=images, label=np.arange(16) % 2)
    (folder / "small.mod").write_text(SPEC)
    data = f"{{name: npz, train: {folder}/data.npz, test: {folder}/data.npz}}"
    (folder / "small.yaml").write_text(f"data: {data}\ntrain: {{epochs: 3, batch: 4}}\n")
    with start_run(str(folder / "small.mod"), None, {}, str(folder / "run")) as engine:
        finish(engine)
    return folder / "run"


def page_data(path: Path) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.S)
    assert found is not None
    return json.loads(found[1])


def test_a_run_displays_its_metrics_and_names_the_command_that_traces_it(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    assert main(["visualize", str(run), "-o", str(path)]) == 0
    data = page_data(path)
    *results, trace = data["panes"][0]["notes"]
    assert trace == f"What its routers do on real data is shown here after: modgraph trace {run.name}"
    metrics = RunDirectory(run).read_record()["metrics"]
    assert results == [f"test: accuracy {metrics['test.accuracy']:.4g}, total_loss {metrics['test.total_loss']:.4g}"]
    titles = [each["title"] for each in data["sections"]]
    assert titles == ["Results", "Recipe", "Confusion", "Training", "Load of modules"]
    section = data["sections"][3]
    (chart,) = [each for each in section["content"] if each["title"] == "accuracy"]
    written = [json.loads(line) for line in RunDirectory(run).metrics.read_text().splitlines()]
    for series in chart["series"]:
        expected = [[row["step"], row["accuracy"]] for row in written if row["split"] == series["name"]]
        assert series["points"] == expected
        assert len(expected) == 3


def section_of(data: Any, title: str) -> list[Any]:
    (found,) = (each["content"] for each in data["sections"] if each["title"] == title)
    return list(found)


def test_results_recipe_and_confusion_are_those_of_the_run(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    draw(run, path)
    data, files = page_data(path), RunDirectory(run)
    metrics, table = files.read_record()["metrics"], section_of(data, "Results")[0]
    assert table["header"][:3] == ["metric", "test", "train"]
    assert dict(row[:2] for row in table["rows"])["accuracy"] == metrics["test.accuracy"]
    note, changed, folded = section_of(data, "Recipe")
    assert "no defaults" in note["text"]
    assert [row[0] for row in changed["rows"]] == [
        "data.name",
        "data.train",
        "data.test",
        "train.epochs",
        "train.batch",
    ]
    assert "train.optimizer.lr" in [row[0] for row in folded["content"][0]["rows"]]
    heat = section_of(data, "Confusion")[1]
    images, labels = (np.load(run.parent / "data.npz")[name] for name in ("image", "label"))
    with torch.no_grad():
        predicted = load_run(run).model()(torch.from_numpy(images)).argmax(-1).numpy()
    assert heat["values"] == [[int(((labels == i) & (predicted == j)).sum()) for j in range(2)] for i in range(2)]


def test_samples_of_steps_are_norms_and_loads_of_that_step(run: Path, tmp_path: Path) -> None:
    samples = read_samples(RunDirectory(run))
    assert [each["step"] for each in samples] == [1, 11]
    path = tmp_path / "run.html"
    draw(run, path)
    (load,) = section_of(page_data(path), "Load of modules")
    assert load["title"] == "expert"
    for module, series in enumerate(load["series"]):
        assert series["points"] == [[each["step"], round(each["load"]["expert"][module], 4)] for each in samples]
    assert all(sum(each["load"]["expert"]) == pytest.approx(1) for each in samples)
    norms: list[float] = []
    with start_run(str(run.parent / "small.mod"), None, {}, str(tmp_path / "again")) as engine:
        take = engine.state.optimizer.step

        def step() -> None:
            norms.append(
                float(sum((each.grad**2).sum() for each in engine.state.named.values() if each.grad is not None)) ** 0.5
            )
            take()

        engine.state.optimizer.step = step
        finish(engine)
    assert [each["gradient_norm"] for each in samples] == pytest.approx([norms[0], norms[10]])
    assert (tmp_path / "again/steps.jsonl").read_text() == (run / "steps.jsonl").read_text()


def test_what_an_older_run_lacks_is_said_with_the_way_to_it(run: Path, tmp_path: Path) -> None:
    old = Path(shutil.copytree(run, tmp_path / "old"))
    for name in ("steps.jsonl", "confusion.json"):
        (old / name).unlink()
    reseal(old)
    files = RunDirectory(old)
    files.mark(FINISHED, **{LOGS: seal_logs(files)})
    draw(old, tmp_path / "old.html")
    data = page_data(tmp_path / "old.html")
    assert section_of(data, "Confusion")[0]["text"].endswith("modgraph eval old --detail")
    assert "train the model anew" in section_of(data, "Training")[-1]["text"]


def test_hostile_names_of_classes_and_metrics_stay_text(browser: Browser, tmp_path: Path) -> None:
    text = "</script><script>alert(1)</script><img src=x onerror=alert(1)>a\u2028b"
    sections = [
        build_results({f"test.{text}": 1.0}, {}, {}, ["test"], [text]),
        build_recipe({text: text}, [], [text]),
        Section("Confusion", [*build_confusion({text: {text: ([text, text], [[1, 2], [3, 4]])}})]),
        Section("Load", build_loads([], [{"step": 1, "loss": 1.0, "gradient_norm": 1.0, "load": {text: [0.5, 0.5]}}])),
    ]
    path = tmp_path / "hostile.html"
    plan = Plan(text, [Change("changed", text, "logits.linear", "logits.linear")])
    program = loads("model m() { input x: float[3] logits = x -> linear(2) output logits }")
    panes = [Pane(scene_of(program.ir), label=text) for _ in range(2)]
    path.write_text(page_of(text, panes, sections, plan))
    with quiet_page(browser, path) as page:
        assert page.evaluate("document.querySelector('.plan strong').textContent") == text
        assert page.locator("img, .charts script").count() == 0


def test_a_traced_run_displays_loads_and_traffic(run: Path, tmp_path: Path, browser: Browser) -> None:
    assert main(["trace", str(run)]) == 0
    path = tmp_path / "run.html"
    assert main(["visualize", str(run), "-o", str(path)]) == 0
    assert path.stat().st_size < MOST_BYTES
    trace = json.loads((run / "trace.json").read_text())
    shares = trace["routes"]["expert"]["rounds"][-1]["use"]
    with quiet_page(browser, path) as page:
        page.keyboard.press("f")
        wanted = [f"module {at}: {100 * share:.1f} %" for at, share in enumerate(shares)]
        assert page.locator('.box[data-id="expert"] .load title').all_text_contents() == wanted
        assert page.locator("[role=tree] .strand title").all_text_contents() == wanted
        widths = page.eval_on_selector_all(
            "[role=tree] .strand", "all => all.map((one) => +one.getAttribute('stroke-width'))"
        )
        assert widths == pytest.approx([0.8 + 11 * share for share in shares], abs=0.01)
        page.locator('.box[data-id="logits.expert"] > .title').click()
        expect(page.locator(".panel")).to_contain_text(f"{100 * shares[0]:.1f} %")
        page.get_by_role("tab", name="Data").click()
        expect(page.locator(".charts")).to_contain_text("accuracy")
        assert page.evaluate("[...document.querySelectorAll('.charts img')].every((each) => each.naturalWidth > 10)")
    (run / "trace.json").unlink()


def test_damaged_metrics_are_reported(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = shutil.copytree(run, tmp_path / "run")
    metrics = RunDirectory(run).metrics
    before = metrics.read_text()
    metrics.write_text(before + '{"step": 9')  # as a training leaves it for a moment
    assert main(["visualize", str(run), "-o", str(tmp_path / "run.html")]) == 0
    for damaged, line in ((before + "{]\n", len(before.splitlines()) + 1), ("7\n" + before, 1)):
        metrics.write_text(damaged)
        reseal(run)
        capsys.readouterr()
        assert main(["visualize", str(run), "-o", str(tmp_path / "run.html")]) == 1
        errors = capsys.readouterr().err
        assert "MG141" in errors
        assert f"line {line} of" in errors


def test_drawings_of_programs_and_runs_are_pages_in_notebooks(run: Path, tmp_path: Path, browser: Browser) -> None:
    pages = loads(SPEC).visualize()._repr_html_(), draw(run)._repr_html_()
    path = tmp_path / "notebook.html"
    # a cell that is unfolded later, in a file whose encoding a browser takes for another
    path.write_text('<!DOCTYPE html><meta charset="windows-1252"><body hidden>' + "".join(pages))
    assert all(html.unescape(each).count("<!DOCTYPE html>") == 1 for each in pages)
    with quiet_page(browser, path) as page:
        page.evaluate("document.body.hidden = false")
        for at in range(2):
            frame = page.frame_locator("iframe").nth(at)
            fitted = re.compile(r"translate\([1-9].*\) scale\(.*\)")
            expect(frame.locator(".canvas > svg > .drawing")).to_have_attribute("transform", fitted)
            frame.locator('[data-fold="expert"]').click()
            expect(frame.locator('.box[data-id="expert"]')).to_have_attribute("aria-expanded", "true")
