"""How the processes of a sweep end, and what is reported of it."""

from __future__ import annotations

import subprocess
import sys
from queue import SimpleQueue

import pytest

from modgraph.study.workers import ENDED, Answer, Worker, describe_end


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ("import os; os.kill(os.getpid(), 9)", -9, "its process was ended by signal 9"),
        ("raise ValueError('odd')", 1, "its process ended: ValueError: odd"),
        ("raise SystemExit(4)", 4, "its process ended: exit code 4"),
    ],
)
def test_the_end_of_a_worker_is_described(program: str, code: int, said: str) -> None:
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    worker, answers = Worker(0, process), SimpleQueue[tuple[Worker, Answer]]()
    worker.listen(answers)
    assert answers.get() == (worker, {"kind": ENDED, "code": code})
    assert describe_end(worker, code) == said


def test_half_an_answer_is_none() -> None:
    pipe = subprocess.PIPE
    program = 'import sys; sys.stdout.write(\'{"kind": "ready"}\\n{"kind": "fin\')'
    process = subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    worker, answers = Worker(0, process), SimpleQueue[tuple[Worker, Answer]]()
    worker.listen(answers)
    kinds = [answers.get()[1]["kind"] for _ in range(answers.qsize())]
    assert kinds == ["ready", ENDED], "the line that a kill cut off is left out"
