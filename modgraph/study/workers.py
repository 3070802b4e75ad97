"""Processes that train points, as the sweep sees them: started when needed, listened to, and ended."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import IO, Any

from modgraph.diagnostics import ModgraphError
from modgraph.log import log
from modgraph.study import errors
from modgraph.study.point import Point

TAIL = 20  # lines of what a worker printed last
LAST_ANSWERS, LAST_WORDS = 10.0, 1.0  # seconds to read what an ended worker answered, and printed
ATTEMPTS = 3  # workers that may end one after another before they are ready
STOP = "stop"  # the task that ends a training after its step
READY, EPOCH, FINISHED, FAILED, STOPPED, ENDED = "ready", "epoch", "finished", "failed", "stopped", "ended"
Answer = Mapping[str, Any]


@dataclass(eq=False)
class Worker:
    """A process that trains one point after another."""

    slot: int
    process: subprocess.Popen[str]
    point: Point | None = None
    is_ready: bool = False
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL))

    def send(self, task: Any) -> None:
        """Send a task. A process that has ended answers that it has."""
        with suppress(OSError):
            print(json.dumps(task, default=str), file=self._stream(self.process.stdin), flush=True)

    def listen(self, answers: SimpleQueue[tuple[Worker, Answer]]) -> None:
        """Pass on what the process answers, and at last that it ended, whatever else it prints."""
        answered = Thread(target=self._read_answers, args=(answers,), daemon=True)
        printed = Thread(target=self._read_messages, daemon=True)
        answered.start()
        printed.start()
        code = self.process.wait()
        answered.join(LAST_ANSWERS)  # processes of its own may keep the streams open
        printed.join(LAST_WORDS)
        answers.put((self, {"kind": ENDED, "code": code}))

    def _read_answers(self, answers: SimpleQueue[tuple[Worker, Answer]]) -> None:
        for line in self._stream(self.process.stdout):
            answer = read_answer(line)
            if answer is not None:
                answers.put((self, answer))
            else:
                self._keep(line)

    def _read_messages(self) -> None:
        for line in self._stream(self.process.stderr):
            self._keep(line)

    def _keep(self, line: str) -> None:
        self.tail.append(line.rstrip())
        log.debug(f"{self.point.run if self.point else 'worker'}: {line.rstrip()}")

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None, "it is a pipe"
        return stream


class Workers:
    """The workers of a sweep. They end when this process does, whatever ends it. `lock_of` gives the lock of a slot."""

    def __init__(self, lock_of: Callable[[int], Path]) -> None:
        self.lock_of = lock_of
        self.answers: SimpleQueue[tuple[Worker, Answer]] = SimpleQueue()
        self.alive: list[Worker] = []
        self.lost = 0  # workers that ended before they were ready, since the last that was

    def start(self) -> None:
        """Start a worker, which answers when it is ready."""
        slot = min({*range(len(self.alive) + 1)} - {each.slot for each in self.alive})
        level = logging.INFO if log.isEnabledFor(logging.DEBUG) else logging.WARNING
        command = [sys.executable, "-P", "-m", "modgraph.study.worker", str(self.lock_of(slot)), str(level)]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(each or str(Path.cwd()) for each in sys.path)},
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # Ctrl-C reaches the sweep alone, which asks its workers to stop
        )
        worker = Worker(slot, process)
        self.alive.append(worker)
        Thread(target=worker.listen, args=(self.answers,), daemon=True).start()

    def wait(self) -> tuple[Worker, Answer]:
        """Wait for the next answer. Raises `ModgraphError` where workers end before they are ready."""
        worker, answer = self.answers.get()
        if answer["kind"] == READY:
            worker.is_ready, self.lost = True, 0
        elif answer["kind"] == ENDED:
            self.alive.remove(worker)
            self.lost += not worker.is_ready
        if self.lost >= ATTEMPTS:
            raise ModgraphError([errors.WorkersFail(reason=describe_end(worker, answer["code"]))])
        return worker, answer

    def stop(self) -> None:
        """Ask all workers to keep the step they are at, and wait until they have ended."""
        for worker in self.alive:
            worker.send(STOP)
        while self.alive:
            worker, answer = self.answers.get()
            if answer["kind"] == ENDED:
                self.alive.remove(worker)

    def close(self) -> None:
        """End all workers at once."""
        for worker in self.alive:
            worker.process.kill()
        for worker in self.alive:
            worker.process.wait()
        self.alive.clear()


def read_answer(line: str) -> Answer | None:
    """Read an answer. None for what a library printed, and for a line that a kill cut off."""
    try:
        answer = json.loads(line)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) and "kind" in answer and line.endswith("\n") else None


def describe_end(worker: Worker, code: int) -> str:
    """Say how a worker ended: by a signal, or by an exception, whose last line it printed."""
    if code < 0:
        return f"its process was ended by signal {-code}"
    return f"its process ended: {next((line for line in reversed(worker.tail) if line), f'exit code {code}')}"
