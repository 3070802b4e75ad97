"""Every benchmark runs: `--quick` shows that it ends and prints numbers, not what they are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
SHARED = {"options", "trees"}  # what benchmarks have in common
NEEDS = {
    "mixtral": ["transformers"],
    "generation": ["transformers"],
    "page_clicks": ["playwright"],
    "playground": ["playwright", "modgraph_web"],
}
NAMES = sorted({path.stem for path in (CHECKOUT / "benchmarks").glob("*.py")} - SHARED)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_runs_quickly_and_prints_numbers(name: str, tmp_path: Path) -> None:
    if missing := [each for each in NEEDS.get(name, []) if find_spec(each) is None]:
        pytest.skip(f"needs {', '.join(missing)}")
    before = _files()
    done = subprocess.run(
        [sys.executable, f"benchmarks/{name}.py", "--quick"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=1800,  # a guard: they take seconds, compilers of torch a minute
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d", done.stdout), "it prints no number"
    assert _files() == before, "it leaves files in the checkout"


def _files() -> str:
    return subprocess.run(["git", "status", "--porcelain"], cwd=CHECKOUT, capture_output=True, text=True).stdout


def test_every_benchmark_takes_its_options_as_the_others_do() -> None:
    without = [name for name in NAMES if "parse_options(" not in (CHECKOUT / f"benchmarks/{name}.py").read_text()]
    assert without == [], "they have no --quick"


def test_every_command_on_the_page_about_speed_is_a_benchmark() -> None:
    commands = re.findall(r"^\$ python benchmarks/(\w+)\.py", (CHECKOUT / "docs/speed.md").read_text(), re.MULTILINE)
    assert commands, "it shows no command"
    assert set(commands) <= set(NAMES), "it names what is not there"
