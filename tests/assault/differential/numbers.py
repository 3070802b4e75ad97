"""Programs judged by their numbers, and in parts for a campaign."""

from __future__ import annotations

from collections import Counter

import modgraph
from tests.assault.coverage import constructs
from tests.assault.differential.bundles import hold_bundle
from tests.assault.differential.gradients import hold_gradients
from tests.assault.differential.judge import judge, steady_case
from tests.assault.programs import program

PART = 100
EXPORTED = 20  # one program in so many
DIFFERENTIATED = 25


def judge_number(n: int) -> Counter[str]:
    """Judges program n. Raises `AssertionError` with its text and how to see it, where it fails."""
    written = program(n)
    try:
        counts = judge_all(written.program, n)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise AssertionError(
            f"program {n}: {reason}\npython -m tests.assault.differential {n}\n{written.text}"
        ) from error
    return counts + constructs(written.program.ir, written.text)


def judge_all(program: modgraph.Program, n: int) -> Counter[str]:
    """All that is asked of program n: of some also gradients, of some also bundles."""
    counts: Counter[str] = Counter(programs=1)
    case = steady_case(program, str(n), counts)
    if case is not None:
        judge(case, counts)
        if n % DIFFERENTIATED == 0:
            hold_gradients(case, counts)
        if n % EXPORTED == 0:
            hold_bundle(case, counts)
    return counts


def part(number: int) -> Counter[str]:
    """A part of a campaign."""
    return sum((judge_number(n) for n in range(number * PART, (number + 1) * PART)), Counter())
