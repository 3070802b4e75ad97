"""What an installed package holds: an editable install would hide what is missing."""

from __future__ import annotations

import tomllib
from pathlib import Path


def test_every_package_is_installed() -> None:
    listed = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = {".".join(path.parent.parts) for path in Path("modgraph").rglob("__init__.py")}
    assert set(listed) == (found - {"modgraph.grammar"}) | {"modgraph.grammar"}
