"""What assaults have found, each by its cause."""

from __future__ import annotations

import pytest

from modgraph.diagnostics import ModgraphError, Report, Source
from modgraph.program import loads
from modgraph.syntax import parse

X = "model m() { input x: float[4] input xs: float[5, 4] "


def codes_of(text: str) -> list[str]:
    with pytest.raises(ModgraphError) as error:
        loads(text)
    return [each.code for each in error.value.diagnostics]


@pytest.mark.parametrize("text", ["", " ", "\n", "#"])
def test_a_message_about_an_empty_text_points_into_it(text: str) -> None:
    report = Report()
    assert parse(Source("empty.mod", text), report) is None
    (message,) = report.diagnostics
    assert message.span is not None and message.span.end <= len(text)


def test_the_modules_of_a_pool_read_no_value_from_outside() -> None:
    route = "pool p[3] = linear(y = (v, v) -> concat) y = v -> p"
    assert "MG226" in codes_of(X + f"scan xs as v {{ {route} yield y }} as y output y }}")
    assert "MG226" in codes_of(X + f"v = x -> relu {route} output y }}")


@pytest.mark.parametrize("second", ['linear(4, name="z")', 'scale(name="z")'])
def test_one_name_for_unlike_sets_of_weights_is_reported(second: str) -> None:
    for ops in (['linear(4, bias=false, name="z")', second], [second, 'linear(4, bias=false, name="z")']):
        assert codes_of(f"{X} a = x -> {ops[0]} b = x -> {ops[1]} output a output b }}")[0] in ("MG304", "MG312")


@pytest.mark.parametrize(
    "body",
    [
        "module e = linear(4) y = x -> e if true { e = x -> linear(4) } output y",
        "pool p[2] = linear(4) y = x -> p for i in 0..2 { p = x -> linear(4) } output y",
        "pool p[2] = linear(4) y = x -> p repeat p[i] in 0..2 { z = x -> linear(4) } output y",
        "repeat r[i] in 0..1 { module e = relu x = x -> e } repeat r[i] in 0..1 { module e = relu } output x",
    ],
)
def test_two_declarations_never_share_weights_by_their_names(body: str) -> None:
    assert codes_of(f"{X} {body} }}") == ["MG208"]


@pytest.mark.parametrize("blocks", ["block b(k=[x -> b])", "block a(k=[x -> b]) { } block b(k=[x -> a])"])
def test_a_block_whose_default_speaks_of_itself_is_reported(blocks: str) -> None:
    assert "MG222" in codes_of(f"{blocks} {{ input v: float[4] output v }} {X} y = x -> b output y }}")


@pytest.mark.parametrize("way", ["", "by (v -> linear(p))", "by r"])
def test_what_a_batch_has_goes_through_no_pool(way: str) -> None:
    pool = "pool p[2] = tanh router r = truncated_kernel(bias=false)"
    assert (
        codes_of(f"{X} {pool} v = xs -> batch_mean y = v -> p {way} output x loss y -> sum(axis=-1) }}")[0] == "MG301"
    )


def test_a_message_that_has_the_name_of_the_tokens_is_reported() -> None:
    text = 'pool p[3] = linear(7, named="time") router r = categorical y = t -> p by r output y }'
    assert codes_of(f"model m() {{ input t: float[time, 4] {text}") == ["MG301"]


@pytest.mark.parametrize(
    ("output", "warned"),
    [
        ("x -> batch_mean", True),
        ("x - (x -> batch_mean([]))", True),
        ("training_or_inference(x - (x -> batch_mean([])), x)", False),
        ("x + s", False),
        ("x -> batch_norm", False),
    ],
)
def test_an_output_that_no_bundle_can_have_is_found_before_training(output: str, warned: bool) -> None:
    spec = f"""model m() {{ input x: float[5, 4, 4] state s: float[4] = zeros next s = x -> batch_mean([-3, -2])
      y = {output} output y }}"""
    found = [each for each in loads(spec).warnings if each.code == "MG415"]
    assert len(found) == warned, found
    assert all(each.span is not None and each.span.text == "output y" for each in found)
