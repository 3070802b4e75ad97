"""Logs of a run: what its training did not write is refused, what it wrote last may be cut off."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.store.checkpoint_record import list_steps_in
from modgraph.store.journal import check_logs
from modgraph.store.run_directory import STARTED, RunDirectory
from tests.continual_runs import lay_out_run, replayed_graph
from tests.small_runs import begin, go_on

LOGS = ("growth.jsonl", "detections.jsonl", "tasks.jsonl", "metrics.jsonl", "steps.jsonl")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A continual run that grew and came to its end, with all of its checkpoints."""
    folder = tmp_path_factory.mktemp("sealed")
    begin(lay_out_run(folder), folder / "run", train__keep=1000)
    return folder / "run"


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> RunDirectory:
    return RunDirectory(shutil.copytree(whole, tmp_path / "run"))


def changes(content: bytes) -> Iterator[tuple[str, bytes | None]]:
    """Every way to drop, change, add or move one of about four lines, the first and last included, and no file."""
    lines = content.splitlines(keepends=True)
    yield "gone", None
    yield "empty", b""
    for at in sorted({*range(0, len(lines), len(lines) // 4 + 1), len(lines) - 1}):
        line = lines[at]
        before, after = lines[:at], lines[at + 1 :]
        yield f"line {at} dropped", b"".join([*before, *after])
        yield f"line {at} changed", b"".join([*before, line[:-3] + bytes([line[-3] ^ 1]) + line[-2:], *after])
        yield f"line {at} twice", b"".join([*before, line, line, *after])
        if after and after[0] != line:
            yield f"line {at} after the next", b"".join([*before, after[0], line, *after[1:]])


@pytest.mark.parametrize("log", LOGS)
def test_a_change_of_a_line_is_refused(run: RunDirectory, log: str) -> None:
    path = run.path / log
    content = path.read_bytes()
    check_logs(run)
    for what, changed in changes(content):
        path.unlink(missing_ok=True)
        if changed is not None:
            path.write_bytes(changed)
        with pytest.raises(ModgraphError, match=f"MG621(.|\n)*{log}"):
            check_logs(run)
            pytest.fail(what)


def test_a_log_that_no_training_of_this_run_writes_is_refused_too(tmp_path: Path) -> None:
    from tests.small_runs import lay_out_run as plain

    begin(plain(tmp_path), tmp_path / "run", train__epochs=1, train__steps_per_epoch=1)
    (tmp_path / "run/tasks.jsonl").write_text("{}\n")
    with pytest.raises(ModgraphError, match="lines were added"):
        check_logs(RunDirectory(tmp_path / "run"))


@pytest.mark.parametrize("words", [["train", "--resume"], ["visualize", "-o", "x.html"], ["trace", "-o", "x.png"]])
def test_what_reads_logs_refuses_them(
    run: RunDirectory, words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *rest = run.growth.read_text().splitlines(keepends=True)
    run.growth.write_text("".join(rest))
    monkeypatch.chdir(run.path.parent)
    command, *others = words
    assert main([command, *(others if command == "train" else []), str(run.path), *others[command == "train" :]]) == 1
    errors = capsys.readouterr().err
    assert "MG621" in errors
    assert "growth.jsonl (its lines have changed)" in errors
    run.growth.write_text("".join([first, *rest]))
    check_logs(run)


def test_lines_behind_the_newest_checkpoint_are_cut_and_written_again(whole: Path, run: RunDirectory) -> None:
    """Of a training that was killed, its log may say more than its checkpoint, up to the middle of a line."""
    last = list_steps_in(run.checkpoints)[-3:]
    for path in [path for path in run.checkpoints.iterdir() if any(f"{step:08}" in path.name for step in last)]:
        path.unlink()
    run.mark(STARTED)
    run.metrics.write_bytes(run.metrics.read_bytes()[:-5])
    run.tasks.write_text(run.tasks.read_text() + '{"task"')
    check_logs(run)
    go_on(run.path)
    for log in LOGS:
        assert (run.path / log).read_bytes() == (whole / log).read_bytes(), f"{log} is another"
    assert replayed_graph(run) == run.graph_now()
    check_logs(run)
