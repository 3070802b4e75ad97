"""Random models of sequences: what the graph says that they read, against what changes if a token changes."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings

import modgraph
from modgraph.ir import Result
from modgraph.ir.analysis.causality import Causality, Tokens
from tests.assault.differential.case import Case
from tests.assault.programs import program
from tests.ir.perturbed import find_wrong, is_future_read, list_axes
from tests.ir.sequence_models import models

TOKENS = Tokens(Result("x"), -2)


@given(models())
@settings(max_examples=20)
def test_no_model_reads_a_later_token_that_the_graph_denies(text: str) -> None:
    check(text)


@pytest.mark.slow
def test_false_alarms_are_counted() -> None:
    """A false alarm is a path from the future that no changed token takes; numbers that stay the same, such as a choice
    far from its bound, make some."""
    claims, alarms, false = 0, 0, set[str]()

    @given(models())
    @settings(max_examples=400)
    def count(text: str) -> None:
        nonlocal claims, alarms
        case = check(text)
        for training in (True, False):
            reads = Causality.build(case.graph, TOKENS, training).read(case.graph.outputs["y"])
            if reads is None or reads.is_causal:
                claims += 1
            else:
                alarms += 1
                if not is_future_read(case, training, TOKENS, "y", -2, Random(text)):
                    false.add(text)

    count()
    print(f"{claims} proofs, {alarms} alarms, of {len(false)} models false ones", *sorted(false), sep="\n")
    assert len(false) <= alarms / 4, "too many alarms are false"


@pytest.mark.slow
@pytest.mark.parametrize("number", range(200))
def test_no_program_reads_what_the_graph_denies(number: int) -> None:
    case, rng = Case(program(number).program, str(number)), Random(number)
    axes = [*list_axes(case)]
    for training in (True, False):
        wrong = [*find_wrong(case, training, rng.sample(axes, min(3, len(axes))), rng)]
        assert not wrong, f"{'training' if training else 'inference'}: {wrong}"


def check(text: str) -> Case:
    """Check what the output reads of each token, in training and in inference."""
    case = Case(modgraph.loads(text), text)
    for training in (True, False):
        wrong = [*find_wrong(case, training, [TOKENS], Random(text))]
        assert not wrong, f"{'training' if training else 'inference'}: {wrong} of {text}"
    return case
