"""The page of a model whose data do not say how inputs are made: it takes numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.inspect import browser as chromium
from tests.small_runs import begin, lay_out_run
from tests.web.served import assert_as_in_python, last, made, opened, runs, settled

modgraph_web = pytest.importorskip("modgraph_web", reason="pip install ./export/web")
if not modgraph_web.available():
    pytest.skip("modgraph_web has no WebAssembly: pip install ./export/web, with npm", allow_module_level=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("numbers")
    begin(lay_out_run(folder), folder / "run", train__epochs=1)
    return folder / "run"


def test_numbers_are_typed_and_what_does_not_fit_is_reported(run: Path, tmp_path: Path) -> None:
    folder = made(tmp_path, run)
    for browser in chromium.started():
        with opened(browser, folder) as page:
            displayed = np.array(json.loads(page.input_value("textarea")), np.float32)
            assert np.array_equal(last(page, "inputs")["image"], displayed[None])
            before = runs(page)
            page.fill("textarea", json.dumps((1 - displayed).tolist()))
            settled(page, before)
            assert np.array_equal(last(page, "inputs")["image"], 1 - displayed[None])
            assert_as_in_python(page, folder)
            page.fill("textarea", "[[[1, 2], [3, 4]]]")
            page.wait_for_selector('.outputs >> text="image" has the shape [1, 1, 2, 2]')
            page.fill("textarea", "[[[1, 2], [3]]]")
            page.wait_for_selector(".outputs >> text=the rows of image differ in length")
            page.fill("textarea", "1 2 three")
            page.wait_for_selector('.outputs >> text="three" is no number')
            assert page.locator(".routes").is_hidden()


def test_a_page_without_examples_waits_for_its_visitor(run: Path, tmp_path: Path) -> None:
    folder = made(tmp_path, run, "--no-examples")
    assert json.loads((folder / "examples.json").read_text())["examples"] == []
    for browser in chromium.started():
        with opened(browser, folder, begins="text=Draw, type or choose something.") as page:
            page.fill("textarea", json.dumps(np.zeros((1, 8, 8)).tolist()))
            page.wait_for_selector("body[data-runs]")
            assert_as_in_python(page, folder)
