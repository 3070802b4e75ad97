"""What the Python package gives to pages."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

modgraph_web = pytest.importorskip("modgraph_web", reason="needs pip install -e ./export/web")

WEB = Path("export/web")


def test_a_page_is_given_every_file_that_its_scripts_import() -> None:
    if not modgraph_web.available():
        pytest.skip("needs pip install -e ./export/web")
    files = modgraph_web.files()
    assert all(path.is_file() for path in files.values())
    for name in modgraph_web.SCRIPTS:
        for imported in re.findall(r'(?:from|import\()\s*"\./([^"]+)"', files[name].read_text()):
            assert imported in files, f"{name} imports {imported}"
    assert {path.name for path in modgraph_web.FOLDER.glob("*.js")} == set(modgraph_web.SCRIPTS)


def test_a_package_that_was_not_built_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(modgraph_web, "FOLDER", tmp_path)
    assert not modgraph_web.available()
    with pytest.raises(modgraph_web.MissingWebAssembly, match="needs npm"):
        modgraph_web.files()


def test_versions_agree_and_the_lock_names_no_host() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text())["packages"]
    project = tomllib.loads((WEB / "pyproject.toml").read_text())["project"]
    extra = tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"]["web"]
    assert project["version"] == lock[""]["version"]
    assert extra[0] == f"modgraph-web=={project['version']}"
    assert not any("resolved" in each for each in lock.values())
    assert all("integrity" in each for name, each in lock.items() if name)
