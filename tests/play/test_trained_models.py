"""The script that trains models for the playground of the site, and the hook that puts them there."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.pages import CHECKOUT
from tests.web.served import TEXT, WORDS, WORDS_RECIPE, trained

modgraph_web = pytest.importorskip("modgraph_web", reason="needs pip install -e ./export/web")
pytestmark = pytest.mark.skipif(not modgraph_web.available(), reason="needs pip install -e ./export/web")
SCRIPTS = CHECKOUT / "docs/site"


def test_pages_of_finished_runs_are_exported_once_and_put_into_the_documents(tmp_path: Path) -> None:
    script: dict[str, Any] = runpy.run_path(str(SCRIPTS / "train_runs.py"))
    assert all((CHECKOUT / f"specs/{name}.yaml").exists() for name in script["MODELS"])
    for name in ("runs", "site"):
        (tmp_path / name).mkdir()
    (tmp_path / "words.txt").write_text(TEXT)
    trained(tmp_path, WORDS, WORDS_RECIPE).rename(tmp_path / "runs/said")
    assert script["make_pages"](tmp_path, {"said": ()}) == 0
    model = tmp_path / "pages/said/model.onnx"
    written = model.stat().st_mtime_ns
    assert script["make_pages"](tmp_path, {"said": ()}) == 0
    assert model.stat().st_mtime_ns == written, "what is there is kept"
    assert script["make_pages"](tmp_path, {"missing": (), "said": ()}) == 1, "a command that fails ends it"
    runpy.run_path(str(SCRIPTS / "playground.py"))["on_post_build"]({"site_dir": str(tmp_path / "site")})
    (run,) = json.loads((tmp_path / "site/playground/runs.json").read_text())["entries"]
    assert (run["title"], run["about"]) == ("said", "said")
    assert (tmp_path / "site/playground/runs/1/model.onnx").read_bytes() == model.read_bytes()
