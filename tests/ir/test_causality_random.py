"""Random models of sequences: what the graph says that they read, against what changes if a token changes."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings

import modgraph
from modgraph.ir import Result
from modgraph.ir.analysis.causality import Causality, Tokens
from modgraph.passes import INFERENCE, TRAINING, apply_passes
from tests.assault.differential.case import Case
from tests.assault.programs import program
from tests.ir.perturbed import find_wrong, is_future_read, list_axes
from tests.ir.sequence_models import models
from tests.ordinary_run import some_examples

TOKENS = Tokens(Result("x"), -2)


TRICKY = {
    "modules that normalise all tokens": "input x: float[6, 8] pool p[2] = batch_norm -> flatten "
    "y = x -> unmerge([2, 2, 2]) -> p -> mean(axis=-2)",
    "messages of several tokens": "input x: float[6, 4, 8] pool p[2] = attention(2, causal=true) "
    "y = x -> p by (x -> select(0) -> linear(p) -> softmax)",
    "pools in modules": "input x: float[6, 4, 8] pool p[2] = inner y = x -> p -> mean(axis=-3)",
    "scans in steps of scans": "input x: float[6, 4, 8] scan x as r with t: float[8] { "
    "scan r as v with h: float[8] = t { h = h + v -> tanh yield h } as hs t = t + (hs -> last) yield hs } as y",
    "a capacity along another axis": "input x: float[6, 3, 4] c = x -> top_k(1, axis=-2) "
    "y = x * ((c, c) -> within_capacity(0.6))",
    "a captured sequence": "input x: float[time, 4, 8] m = x -> cumulative_sum(axis=-3) "
    "scan x as v with h: float[8] { h = h + (v -> mean) + (m -> select(0, axis=-3) -> mean) yield h } as y",
    "a loop that all tokens end": "input x: float[6, 8] scan 0..4 as n with h: float[6, 8] = x, t: float[6] { "
    "h = h + (h -> linear(8)) t = t + (h -> mean(axis=-1)) yield h } until (t - (t -> mean(axis=-1))) > 0 as y",
    "a loop in steps of a scan": "input x: float[6, 8] scan x as v with s: float[8] { "
    "scan 0..4 as n with h: float[8] = s, t: float { h = h + v -> tanh t = t + (h -> max(axis=-1)) yield h } "
    "until t > 0.7 as r s = r yield s } as y",
    "a sequence that is read until a word": "input x: float[6, 8] scan x as v with s: float[8] { s = s + v -> tanh "
    "yield s } until (v -> max(axis=-1)) > 1.5 as last y = x + last",
    "a state that grows": "input x: float[6, 8] scan x as v with h: float[4, 8] { "
    "o, k = h -> split([1, 3], axis=-2) h = (k, v -> new_axis(1)) -> concat(axis=-2) yield h } as y",
    "a state that mirrors": "input x: float[6, 6, 4] scan x as v with h: float[6, 6] { "
    "h = (h -> transpose) + (v -> mean(axis=-1) -> new_axis(6)) yield h } as y",
}
INNER = (
    "block inner() { input x: float[n, d] pool q[2] = gru(8) "
    "y = x -> attention(2, causal=true) -> q -> mean(axis=-3) output y } "
)


@pytest.mark.parametrize("name", TRICKY)
def test_no_tricky_model_reads_what_the_graph_denies(name: str) -> None:
    text = f"{INNER * ('inner' in TRICKY[name])}model m() {{ {TRICKY[name]} output y }}"
    case, rng = Case(modgraph.loads(text), name), Random(name)
    for training in (True, False):
        wrong = [*find_wrong(case, training, [*list_axes(case)], rng)]
        assert not wrong, f"{'training' if training else 'inference'}: {wrong}"


@given(models())
@some_examples(20)
def test_no_model_reads_a_later_token_that_the_graph_denies(text: str) -> None:
    check(text)


@given(models())
@some_examples(15)
def test_passes_leave_what_an_output_reads(text: str) -> None:
    graph = modgraph.loads(text).ir
    for training, passes in ((True, TRAINING), (False, INFERENCE)):
        before, after = (
            Causality.build(each, TOKENS, training).read(each.outputs["y"])
            for each in (graph, apply_passes(graph, passes))
        )
        assert str(before) == str(after), f"training={training}: passes change what {text} reads"


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
