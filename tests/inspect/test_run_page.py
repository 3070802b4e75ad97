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
from playwright.sync_api import Browser, expect

from modgraph.cli import main
from modgraph.drawings import draw
from modgraph.program import loads
from modgraph.store.run_directory import RunDirectory
from modgraph.training.run import finish, start_run
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
    assert data["panes"][0]["notes"] == [
        f"What its routers do on real data is shown here after: modgraph trace {run.name}"
    ]
    (section,) = data["sections"]
    (chart,) = [each for each in section["content"] if each["title"] == "accuracy"]
    written = [json.loads(line) for line in RunDirectory(run).metrics.read_text().splitlines()]
    for series in chart["series"]:
        expected = [[row["step"], row["accuracy"]] for row in written if row["split"] == series["name"]]
        assert series["points"] == expected
        assert len(expected) == 3


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
        assert page.locator(".strand title").all_text_contents() == wanted
        widths = page.eval_on_selector_all(".strand", "all => all.map((one) => +one.getAttribute('stroke-width'))")
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
