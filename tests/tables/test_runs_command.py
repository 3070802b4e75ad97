"""`modgraph runs`: lists and tables of runs on disk, in every format, and the messages of wrong calls."""

from __future__ import annotations

import csv
import io
import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from modgraph.cli import main
from tests.tables.runs_for_tables import HISTORY, write_run, write_sweep

GOLDEN = Path(__file__).parent / "golden"
ACCURACIES = {2: [0.80, 0.82, 0.84], 4: [0.90, 0.92, 0.91], 8: [0.904, 0.915, 0.91]}
TABLES = {
    "experts": {"rows": ["experts"], "columns": {"acc.": "test.accuracy", "MACs": "active_macs"}, "percent": True},
    "seeds": {"rows": ["train.seed"], "columns": ["test.accuracy", "seconds"]},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs in `runs`, a sweep with two tables, a failure and a damaged run in `sweep`, and a folder without runs."""
    folder = tmp_path_factory.mktemp("tables")
    points = []
    for experts, accuracies in ACCURACIES.items():
        for seed, accuracy in enumerate(accuracies):
            name = f"experts={experts},seed={seed}"
            metrics = {"test.accuracy": accuracy, "test.total_loss": 1 - accuracy, "test.use.0": 0.5}
            write_run(folder / "runs" / name, experts, seed, metrics, history=HISTORY, seconds=10.0 * experts + seed)
            write_run(folder / "sweep" / name, experts, seed, metrics, seconds=10.0 * experts + seed)
            points.append({"run": name, "sweep": "", "values": {"experts": experts, "train.seed": seed}})
    points.append({"run": "experts=16,seed=0", "sweep": "", "values": {"experts": 16, "train.seed": 0}})
    write_sweep(folder / "sweep", points, tables=TABLES)
    failure = {
        "run": "experts=16,seed=0",
        "identity": "experts=16,seed=0",
        "codes": ["MG720"],
        "message": "it diverged",
    }
    (folder / "sweep/failures.jsonl").write_text(json.dumps(failure) + "\n")
    (write_run(folder / "broken/a") / "ir.json").write_text("{}")
    write_run(folder / "broken/b", status="started", history=HISTORY[:1])
    (folder / "empty").mkdir()
    (folder / "notes.md").write_text("my own notes\n")
    return folder


COMMANDS = """\
runs
runs sweep
runs --list
runs broken --list
runs --rows train.seed --columns test.accuracy,seconds,runs
runs --rows train.seed --across experts --columns test.accuracy --percent
runs --against 2 --columns test.accuracy --format markdown
runs --choose test.accuracy --sort=-experts --format csv
runs --where test.accuracy>=0.91 --where experts!=2 --sort=-test.accuracy --list --columns test.accuracy
runs sweep --table seeds
runs --compare experts=2 experts=4
runs --compare runs/experts=2,seed=0 runs/experts=4,seed=0
"""
WRONG = """\
runs nowhere
runs empty
runs notes.md
runs --columns acuracy
runs --rows expert
runs --where experts
runs --where experts>many
runs --where accuracy>0.9
runs --where experts=3
runs --sort lr
runs --table experts
runs sweep --table expert
runs --against 16
runs --length time=64
runs --length time
runs broken
runs --format latex
runs -o notes.md
runs -o none/table.md
runs --choose test.acc
runs --compare experts=2 experts=3
runs --compare experts=2 runs/none
"""


@pytest.mark.parametrize(("commands", "golden"), [(COMMANDS, "tables.txt"), (WRONG, "wrong_calls.txt")])
def test_what_is_printed(
    commands: str,
    golden: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "100")
    before = sorted(folder.rglob("*"))
    found = []
    for line in commands.splitlines():
        try:
            code = main(shlex.split(line))
        except SystemExit as error:
            code = int(str(error.code))
        printed = capsys.readouterr()
        assert code == int(commands is WRONG), f"{line}: {printed.err}"
        assert "Traceback" not in printed.err
        found.append(f"$ modgraph {line}\n{printed.out}{printed.err}")
        assert max(map(len, printed.out.splitlines() or [""])) <= 100, f"{line}: wider than a terminal"
    text = "\n".join(found)
    if request.config.getoption("--refresh"):
        (GOLDEN / golden).write_text(text)
    assert text == (GOLDEN / golden).read_text()
    assert sorted(folder.rglob("*")) == before, "nothing is written"


def test_every_format_has_the_same_numbers(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(folder)
    texts = {}
    for suffix in ("csv", "json", "md", "txt"):
        path = tmp_path / f"table.{suffix}"
        assert main(["runs", "--columns", "test.accuracy", "-o", str(path)]) == 0
        texts[suffix] = path.read_text()
    assert capsys.readouterr().out == "", "the tables stand in the files"
    rows = list(csv.DictReader(io.StringIO(texts["csv"])))
    table = json.loads(texts["json"])["tables"][0]
    for row, stored in zip(rows, table["rows"], strict=True):
        (cell,) = stored["cells"]
        assert float(row["test.accuracy"]) == cell["mean"] and len(stored["runs"]) == cell["count"] == 3
        assert float(row["test.accuracy.deviation"]) == cell["deviation"]
        mean, deviation = (f"{cell[name]:.4f}" for name in ("mean", "deviation"))
        for suffix in ("md", "txt"):
            assert f"{mean} ± {deviation}" in texts[suffix], suffix
    best = [row["test.accuracy"] for row in rows if row["experts"] == "4"]
    assert best == [max(row["test.accuracy"] for row in rows)]
    assert "**0.9100 ± 0.0100**" in texts["md"] and "0.9100 ± 0.0100 *" in texts["txt"], "marked"


def test_five_hundred_runs_are_listed_in_seconds_without_torch_and_numpy(tmp_path: Path) -> None:
    for at in range(500):
        write_run(tmp_path / f"runs/{at}", 2 + at % 4, at, {"test.accuracy": at / 500}, history=HISTORY, seconds=1.0)
    code = """
import sys
from modgraph.cli import main
assert main(["runs", "--list", "--sort=-test.accuracy"]) == 0
assert not {"torch", "numpy", "pandas", "scipy"} & sys.modules.keys(), "a list needs none of them"
"""
    start = time.process_time()
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 500
    assert time.monotonic() - started < 20, f"{time.monotonic() - started:.1f} s ({time.process_time() - start:.1f})"


def test_without_scipy_a_table_says_what_would_add_p(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("modgraph.extras.is_installed", lambda module: module not in ("scipy", "pandas"))
    assert main(["runs"]) == 0
    printed = capsys.readouterr().out
    assert (
        "no p: Welch's t-test needs the packages pandas and scipy: pip install 'modgraph-compiler[tables]'" in printed
    )
    assert "±" in printed, "the table is there"
