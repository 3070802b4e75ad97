"""A misfit of shapes with a cause elsewhere: the batch among the axes, or a pool that nothing routes."""

from __future__ import annotations

import pytest

from modgraph.diagnostics import Diagnostic, ModgraphError, Report, Source
from modgraph.elaboration.causes import drop_axis
from modgraph.program import loads
from modgraph.syntax import parse


def diagnose(body: str) -> Diagnostic:
    with pytest.raises(ModgraphError) as error:
        loads(f"model m(width=6) {{ {body} output x }}")
    (only,) = (each for each in error.value.diagnostics if each.severity == "error")
    return only


LABEL = "target label: class[3] loss cross_entropy(x -> linear(3), label)"


@pytest.mark.parametrize(
    ("declared", "corrected", "rest"),
    [
        ("input x: float[batch, 6]", "input x: float[6]", LABEL),
        ("input x: float[batch_size, 6]", "input x: float[6]", LABEL),
        ("input x: float[B, width]", "input x: float[width]", LABEL),
        ("input x: float[bs, seq, 6]", "input x: float[seq, 6]", LABEL),
        ("input x: float[batch=32, 6]", "input x: float[6]", LABEL),
        ("input x: float[time, batch, 6]", "input x: float[time, 6]", LABEL),
        ("input x: float[batch, 1, 28, 28]", "input x: float[1, 28, 28]", "y = x -> flatten"),
        ("input x: token[batch, time, 100]", "input x: token[time, 100]", "y = x -> embedding(8) -> flatten"),
        ("input x: float[batch]", "input x: float", "y = x -> linear(3)"),
        ("target y: float[batch, 6]", "target y: float[6]", "input x: float[6] loss mse(x, y)"),
    ],
)
def test_an_axis_for_the_batch_is_left_out(declared: str, corrected: str, rest: str) -> None:
    found = diagnose(f"{declared} {rest}")
    assert found.code == "MG301" and found.advice() == f"types describe one example: leave the batch out, {corrected}"
    report = Report()
    parse(Source("t.mod", f"model m() {{ {corrected} output x }}"), report)
    assert not report.diagnostics, "the advice can be written"


def test_a_letter_that_may_count_tokens_is_only_perhaps_the_batch() -> None:
    advice = diagnose(f"input x: float[N, 6] {LABEL}").advice()
    assert advice == 'types describe one example: if "N" is the batch, leave it out, input x: float[6]'
    assert diagnose("input x: float[time, 6] y = x -> flatten").advice() == 'reduce it first: -> mean(axis="time")'


def test_a_batch_in_a_sound_type_is_a_caution() -> None:
    text = "model m() { input x: float[batch, 6] target y: float[batch, 6] output x loss mse(x, y) }"
    found = [each for each in loads(text).warnings if each.code == "MG416"]
    assert [each.span.text for each in found if each.span] == ["input x: float[batch, 6]", "target y: float[batch, 6]"]
    assert found[0].advice() == "leave the batch out, input x: float[6], or rename the axis"
    of_keras = loads(text.replace("batch", "None")).warnings
    assert [each.code for each in of_keras] == ["MG416", "MG416"], "None is what Keras calls the batch"
    fine = text.replace("batch", "N")
    assert not loads(fine).warnings, "one letter may count anything"


def test_dropping_an_axis_keeps_the_others() -> None:
    assert drop_axis("input x: float[6, batch]", "batch") == "input x: float[6]"
    assert drop_axis("input batches: float[batch = 3,  batches]", "batch") == "input batches: float[batches]"


POOL = "input x: float[5, 6] pool expert[4] = linear(6) target y: float[5, 6] "


@pytest.mark.parametrize(
    "body",
    [
        "h = x -> expert loss mse(h, y)",
        "h = x + (x -> expert)",
        "h = x -> linear(6) h = h -> expert -> relu loss mse(h, y)",
        f"h = x -> expert -> mean {LABEL.replace('x ->', 'h ->')}",
    ],
)
def test_a_pool_without_by_is_named_where_its_axis_does_not_fit(body: str) -> None:
    found = diagnose(POOL + body)
    assert "-> expert by gate" in found.advice() and "-> mean(axis=expert)" in found.advice()
    note = found.notes[-1]
    assert note.text == 'without "by" every module of "expert" runs on each token'
    assert note.span is not None and note.span.text == "expert"


@pytest.mark.parametrize(
    "body",
    [
        f"h = x -> expert -> mean(axis=expert) {LABEL.replace('x ->', 'h ->')}",
        "router r = linear(1) h = x -> expert by r -> linear(5) loss mse(h, y) loss importance(r)",
        "g = x -> linear(expert) -> softmax h = x -> expert by g loss mse(g, y)",
    ],
)
def test_a_pool_whose_axis_is_meant_or_gone_is_not_blamed(body: str) -> None:
    found = diagnose(POOL + body)
    assert not any("without" in note.text for note in found.notes) and "by gate" not in found.advice()
