"""modgraph is imported from any folder, the checkout's own included."""

from __future__ import annotations

import subprocess
import sys
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
