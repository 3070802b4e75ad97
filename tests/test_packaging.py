"""modgraph is imported from any folder, the checkout's own included."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]


@pytest.mark.parametrize("there", ["checkout", "elsewhere"])
def test_modgraph_runs_as_a_module_from_any_folder(there: str, tmp_path: Path) -> None:
    folder = CHECKOUT if there == "checkout" else tmp_path
    spec = CHECKOUT / "specs" / "smn.mod"
    command = [sys.executable, "-m", "modgraph", "check", str(spec)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    code = "import modgraph; print(modgraph.loads('model m() { input x: float[2] output x }').ir.name)"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("m\n", "")


def test_every_file_that_is_no_python_is_listed_as_package_data() -> None:
    """A wheel holds no other: the grammar, the pages' scripts and styles, the layout library with its licence."""
    data = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    listed = {
        path
        for package, globs in data.items()
        for glob in globs
        for path in (CHECKOUT / package.replace(".", "/")).glob(glob)
    }
    found = subprocess.run(["git", "ls-files", "modgraph"], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    tracked = {CHECKOUT / name for name in found.stdout.splitlines() if not name.endswith(".py")}
    assert tracked - listed == set()
