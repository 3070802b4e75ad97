"""Shows programs by their numbers and judges them; what fails is made small first."""

from __future__ import annotations

import sys
from functools import partial

import modgraph
from tests.assault.differential.failures import failure_of
from tests.assault.differential.numbers import judge_all
from tests.assault.programs import program
from tests.assault.programs.reduced import reduced


def show(n: int) -> None:
    written = program(n)
    failure = failure_of(partial(judge_all, written.program, n))
    if not failure:
        print(written.text, f"program {n}: {dict(judge_all(written.program, n))}")
        return

    def fails(smaller: modgraph.Program) -> bool:
        return failure_of(partial(judge_all, smaller, n)) == failure

    print(f"program {n}: {failure}\n{reduced(written, fails)}")


for number in sys.argv[1:]:
    show(int(number))
