"""Messages speak in the words of the text that they are about."""

from __future__ import annotations

import pytest

from modgraph.diagnostics import Diagnostic, ModgraphError, Report, Source
from modgraph.elaboration import elaborate_blocks
from modgraph.program import loads
from modgraph.syntax import parse


def in_router(body: str, given: str = "float[5, 6]") -> str:
    router = f"router r() for expert {{ input x: float[tokens, dim] {body} output y }}"
    return f"{router} model m() {{ input x: {given} pool p[4] = linear(6) router g = r y = x -> p by g output y }}"


def in_block(body: str) -> str:
    block = f"block b() {{ input x: float[t, dim] {body} output y }}"
    return f"{block} model m() {{ input x: float[time, 6] y = x -> b output y }}"


def diagnose(text: str) -> Diagnostic:
    with pytest.raises(ModgraphError) as raised:
        loads(text)
    (only,) = raised.value.diagnostics
    return only


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (in_router("weight w: float[4, 3] = zeros y = x + w"), "[tokens=5, 6] and [4, 3]"),
        (
            in_router("s = x -> linear(expert) y = (x, s) -> contract(axis=dim)"),
            'unknown axis "dim" in [tokens=5, p=4]',
        ),
        (
            in_block("pool e[4] = linear(6) pool f[4] = linear(6) y = (x -> e) + (x -> f)"),
            "[time, e=4, 6] and [time, f=4, 6]",
        ),
    ],
)
def test_axes_are_called_as_the_text_calls_them(text: str, words: str) -> None:
    mistake = diagnose(text)
    assert words in mistake.text()
    assert not any("y." in note.text for note in mistake.notes)
    assert "y." not in mistake.advice()


@pytest.mark.parametrize(
    "text",
    [
        in_block("y = x -> linear(t)"),
        in_block("y = x * len(t)"),
        f"block ffn(n) {{ input x: float[t, d] y = x -> linear(n) output y }} {in_block('y = x -> ffn(t)')}",
        in_router("y = x -> linear(tokens)", "float[time, 6]"),
        in_router("y = x / sqrt(tokens)", "float[time, 6]"),
    ],
)
def test_an_axis_of_any_length_is_no_number(text: str) -> None:
    assert diagnose(text).code == "MG262"


@pytest.mark.parametrize(
    "body",
    [
        "y = x -> linear(2 * dim) -> gelu -> linear(dim)",
        "y = x * len(dim) / sqrt(dim)",
        "weight w: float[dim] = zeros require dim % 2 == 0 y = x + w",
        "pool e[2] = linear(dim) y = x -> e -> sum(axis=e)",
        "for i in 0..dim { s[i] = x } y = s[dim - 1]",
        "y = x -> ffn(dim)",
    ],
)
def test_an_axis_of_fixed_length_is_a_number(body: str) -> None:
    text = f"block ffn(n) {{ input x: float[t, d] y = x -> linear(n) -> linear(d) output y }} {in_block(body)}"
    graph = loads(text).ir
    assert str(graph.type_of(graph.outputs["y"])) == "float[time, 6]"
    report = Report()
    file = parse(Source("b.mod", text), report)
    assert file is not None
    elaborate_blocks(file, report)
    assert not report.errors, "a block by itself may have any length"


def test_a_misspelt_axis_is_reported_with_the_word_for_it() -> None:
    assert diagnose(in_router("y = x -> sum(axis=token)")).advice() == 'did you mean "tokens"?'


def test_a_block_by_itself_knows_the_axes_of_its_inputs() -> None:
    report = Report()
    text = "block b() { input x: float[tokens, 4] y = x -> mean(axis=tokens) output y }"
    file = parse(Source("b.mod", text), report)
    assert file is not None
    elaborate_blocks(file, report)
    assert not report.diagnostics


def test_a_setting_of_a_wrong_kind_says_its_meaning() -> None:
    mistake = diagnose("model m() { input x: float[5, 6] module e = linear(6) y = x -> e -> linear(e) output y }")
    assert mistake.code == "MG213"
    assert mistake.advice().startswith("width: length of the result's last axis")
