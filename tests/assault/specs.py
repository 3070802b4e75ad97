"""A million specs: spec number n is a function of n alone. `python -m tests.assault.specs N …` shows and judges some.

By turns they are mutated, grown from the grammar, and well-typed; whatever they are, no exception but a message, and
500 MB each at most; in the long campaign five seconds of processor time too.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from tests.assault.campaign import JOURNALS
from tests.assault.grown import grown
from tests.assault.judge import judge
from tests.assault.mutated import mutated
from tests.assault.sound import sound

KINDS = (mutated, grown, sound)
PART = 1000
SOME = 210  # of the first part, with every run
LONGEST = 5.0  # seconds of processor time, where they are asserted
HANGS = 120.0  # seconds of it after which a spec is taken for one without an end
MEMORY = 500 * 2**20  # beyond what the process has at the start


class TooSlow(BaseException):
    """A spec has used up its processor time."""


def spec(n: int) -> str:
    return KINDS[n % len(KINDS)](Random(n))


def all_of_part(part: int) -> Counter[str]:
    """Judges the specs of a part as thoroughly as can be. Raises `AssertionError`, which shows the first that fails."""
    return judged(part, thorough=1, seconds=LONGEST)


def some_of_part(part: int) -> Counter[str]:
    """The first specs of a part, one sound spec in fifteen put through all, the others through what costs little."""
    return judged(part, thorough=15, seconds=HANGS, count=SOME)


def judged(part: int, thorough: int, seconds: float, count: int = PART) -> Counter[str]:
    """Counts by kind and outcome. The number of the spec at hand stands in a file, should the process be killed."""
    counts: Counter[str] = Counter()
    JOURNALS.mkdir(exist_ok=True)
    place = JOURNALS / f"at-hand-{part}"
    with bounded_memory(), place.open("w") as file:
        for n in range(part * PART, part * PART + count):
            os.pwrite(file.fileno(), f"{n:12}\n".encode(), 0)
            text = spec(n)
            start = time.process_time()
            outcome = judge_one(n, text, n // len(KINDS) % thorough == 0, seconds)
            counts[f"{KINDS[n % len(KINDS)].__name__} {outcome}"] += 1
            counts["over 1 s"] += time.process_time() - start > 1
    place.unlink()
    return counts


def judge_one(n: int, text: str, thorough: bool, seconds: float = LONGEST) -> str:
    """The outcome of a spec. Raises `AssertionError` with its number and text where it fails."""
    try:
        with bounded_time(seconds):
            return judge(text, Random(n), thorough)
    except (Exception, TooSlow) as error:
        reason = f"{type(error).__name__}: {error}"
        raise AssertionError(f"spec {n} fails: {reason}\npython -m tests.assault.specs {n}\n{text}") from error


def at_hand() -> str:
    """The specs that processes were judging when they were killed."""
    return ", ".join(path.read_text().strip() for path in JOURNALS.glob("at-hand-*"))


@contextmanager
def bounded_time(seconds: float) -> Iterator[None]:
    """Interrupts what takes longer; a loop below Python, which nothing interrupts, is killed by the system."""

    def interrupt(*_: Any) -> None:
        raise TooSlow(f"more than {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, interrupt)
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + 2 * seconds) + 2, hard))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


@contextmanager
def bounded_memory() -> Iterator[None]:
    """No more than `MEMORY` beyond what the process has; what asks for more gets `MemoryError`."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    used = int(status["VmData"].split()[0]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


if __name__ == "__main__":
    for number in map(int, sys.argv[1:]):
        print(spec(number))
        print(f"spec {number}:", judge_one(number, spec(number), thorough=True))
