"""How the processes of a sweep end, and what is reported of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from queue import SimpleQueue

import pytest
from filelock import FileLock

from modgraph.study import worker as training
from modgraph.study import workers
from modgraph.study.workers import ENDED, Answer, Worker, describe_end


def listen_to(program: str) -> tuple[Worker, list[Answer]]:
    """What is heard of a worker that is this program, to its end."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    worker, answers = Worker(0, process), SimpleQueue[tuple[Worker, Answer]]()
    worker.listen(answers)
    heard = [answers.get(timeout=60) for _ in range(answers.qsize())]
    assert all(each is worker for each, _ in heard)
    return worker, [answer for _, answer in heard]


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ("import os; os.kill(os.getpid(), 9)", -9, "its process was ended by signal 9"),
        ("raise ValueError('odd')", 1, "its process ended: ValueError: odd"),
        ("raise SystemExit(4)", 4, "its process ended: exit code 4"),
    ],
)
def test_the_end_of_a_worker_is_described(program: str, code: int, said: str) -> None:
    worker, answers = listen_to(program)
    assert answers == [{"kind": ENDED, "code": code}]
    assert describe_end(worker, code) == said


def test_half_an_answer_is_none() -> None:
    _, answers = listen_to('import sys; sys.stdout.write(\'{"kind": "ready"}\\n{"kind": "fin\')')
    assert [each["kind"] for each in answers] == ["ready", ENDED], "the line that a kill cut off is left out"


def test_what_a_library_prints_is_no_answer() -> None:
    worker, answers = listen_to("""print('loading ...', '3', '{"kind": "ready"}', '[]', sep=chr(10))""")
    assert [each["kind"] for each in answers] == ["ready", ENDED]
    assert [*worker.tail] == ["loading ...", "3", "[]"], "it is kept for the message of a failure"


def test_a_process_that_outlives_a_worker_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "LAST_ANSWERS", 0.2)
    monkeypatch.setattr(workers, "LAST_WORDS", 0.2)
    other = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']).pid)"
    worker, answers = listen_to(other)
    os.kill(int(worker.tail[0]), 9)
    assert answers == [{"kind": ENDED, "code": 0}], "both of its streams are still open"


def test_a_lock_that_another_process_keeps_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "WAIT", 0.01)
    monkeypatch.setattr(training, "receive_tasks", lambda: None)
    monkeypatch.setattr(os, "dup2", lambda *_: None)
    with FileLock(tmp_path / "lock"), pytest.raises(SystemExit, match="another process has locked"):
        training.main(str(tmp_path / "lock"), "20")
