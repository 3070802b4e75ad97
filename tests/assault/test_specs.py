"""A million specs, mutated, grown and sound: messages or a graph, in bounded time and memory."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

import pytest

from tests.assault.campaign import campaign
from tests.assault.specs import (
    PART,
    SOME,
    TooSlow,
    all_of_part,
    at_hand,
    bounded_memory,
    bounded_time,
    judge_one,
    some_of_part,
    spec,
)
from tests.children import in_a_child

PARTS = 1000
ROOMS = "declare diagnostics elaboration inspect ir lsp ops passes routers syntax types"
FRONT_END = f"{ROOMS} files.py program.py vocabulary.py"
SOURCES = ("grammar", *(f"modgraph/{each}" for each in FRONT_END.split()), "tests/examples.py", "specs")
GENERATORS = "grown judge mutated settings sound specs vocabulary"
TRIED = (*SOURCES, *(f"tests/assault/{each}.py" for each in GENERATORS.split()))


@pytest.fixture(scope="module")
def judges() -> Iterator[ProcessPoolExecutor]:
    """A process of their own, whose time and memory are bounded; a quarter of its time went into looking for cycles."""
    with ProcessPoolExecutor(1, get_context("forkserver"), gc.set_threshold, (100_000, 20, 100)) as pool:
        yield pool


def test_some_specs(judges: ProcessPoolExecutor) -> None:
    as_expected(naming_the_killed(lambda: judges.submit(some_of_part, 0).result()), SOME)


@pytest.mark.slow
def test_a_million_specs() -> None:
    as_expected(naming_the_killed(lambda: campaign("specs", all_of_part, PARTS, TRIED)), PARTS * PART)


def as_expected(counts: Counter[str], judged: int) -> None:
    """The counts show that what was judged is what was meant."""
    sound, refused = counts["sound sound"], counts["sound refused"]
    assert sound + refused == pytest.approx(judged / 3, abs=1)
    assert sound > 0.8 * (sound + refused)
    assert min(counts[f"{kind} refused"] for kind in ("mutated", "grown")) > 0.5 * judged / 3
    assert counts["mutated sound"] > 0.01 * judged / 3


def naming_the_killed(judge: Callable[[], Counter[str]]) -> Counter[str]:
    try:
        return judge()
    except BrokenProcessPool as error:
        raise AssertionError(f"a process was killed while it judged spec {at_hand()}") from error


def test_a_spec_is_a_function_of_its_number() -> None:
    assert [spec(n) for n in range(30)] == [spec(n) for n in range(30)]
    assert len({spec(n) for n in range(300)}) > 250


def test_what_never_ends_is_interrupted_and_what_eats_memory_is_refused() -> None:
    def bounded() -> int:
        with pytest.raises(TooSlow), bounded_time(0.05):
            while True:
                pass
        with pytest.raises(MemoryError), bounded_memory():
            bytearray(600 * 2**20)
        return 0

    assert in_a_child(bounded, 1, 2) == 0  # whose bounds are no other thread's


def test_a_failing_spec_is_printed_with_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.assault.specs.judge", lambda *_: 1 // 0)
    with pytest.raises(AssertionError, match=r"spec 2 fails: ZeroDivisionError(.|\n)*specs 2\n(.|\n)*model m"):
        judge_one(2, spec(2), thorough=False)
