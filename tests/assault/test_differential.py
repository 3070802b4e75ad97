"""Programs written at random from the whole language, and every spec: torch in all forms, as PyTorch source and as a
bundle compute what an interpreter of the stored graph does."""

from __future__ import annotations

from collections import Counter

import pytest

import modgraph
from tests.assault.campaign import campaign
from tests.assault.coverage import constructs, wanted
from tests.assault.differential.bundles import hold_bundle
from tests.assault.differential.case import Case, Unlike, by_torch, hold
from tests.assault.differential.gradients import hold_gradients
from tests.assault.differential.judge import judge, steady_case
from tests.assault.differential.numbers import judge_number, part
from tests.assault.programs import program
from tests.assault.programs.reduced import reduced
from tests.assault.written_specs import ALL, spec_of

PARTS = 100  # of 100 programs each
IN_SUITE = (0, 2, 4, 25, 50, 75, 100)  # two of them as bundles, five with gradients where they have any
SMALL = ("tests/papers/deepseek_moe",)


def test_some_programs_agree_in_every_lowering() -> None:
    counts = sum((judge_number(n) for n in IN_SUITE), Counter[str]())
    assert counts["compared"] > 0.8 * len(IN_SUITE), counts
    assert counts["source"] + counts["no source"] == counts["compared"]
    assert counts["source"] > 0.9 * counts["compared"]
    assert counts["bundles compared"] > 0
    assert counts["gradients"] > 0


@pytest.mark.slow
def test_ten_thousand_programs_agree_in_every_lowering() -> None:
    counts = campaign("differential", part, PARTS, ("modgraph", "grammar", "export/runtime/modgraph_runtime", "tests"))
    assert counts["compared"] > 0.9 * counts["programs"], counts
    assert not [name for name in wanted() if not counts[name]], "some of the language is in none of the programs"


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in SMALL else pytest.mark.slow) for name in ALL])
def test_every_spec_agrees_in_every_lowering(name: str) -> None:
    counts: Counter[str] = Counter()
    case = steady_case(spec_of(name), name, counts)
    assert case is not None, counts
    judge(case, counts)
    hold_bundle(case, counts)
    hold_gradients(case, counts)
    assert counts["compared"] == counts["source"] == counts["exported"] == 1, counts


def test_a_program_is_a_function_of_its_number() -> None:
    assert program(11).text == program(11).text != program(12).text
    assert constructs(program(11).program.ir, program(11).text)["op linear"] <= 1


def test_another_result_is_noticed_and_made_small() -> None:
    """A reference that is given other weights stands for a fault."""

    def fails(smaller: modgraph.Program) -> bool:
        case, other = Case(smaller, "1"), Case(smaller, "2")
        try:
            hold("one and another", by_torch(case, case.model), by_torch(case, other.model))
        except Unlike:
            return True
        return False

    written = next(each for each in map(program, range(100)) if "linear(" in each.text and fails(each.program))
    small = reduced(written, fails)
    assert len(small.splitlines()) < len(written.text.splitlines()) / 2, small
    assert fails(modgraph.loads(small))
