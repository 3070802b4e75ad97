"""What is told, and what is not: one mistake once, nothing that follows from it, and help that works."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from modgraph.diagnostics import Diagnostic, ModgraphError, Report, Source
from modgraph.inspect.reference import suggestion
from modgraph.ops import Op
from modgraph.ops.idioms import IDIOMS
from modgraph.program import loads
from modgraph.routers import Router
from modgraph.syntax.tokens import tokens

SPECS = sorted(Path("specs").glob("*.mod"))


def diagnose(text: str) -> list[Diagnostic]:
    try:
        return list(loads(text).warnings)
    except ModgraphError as error:
        return list(error.diagnostics)


def codes(text: str) -> list[str]:
    return [each.code for each in diagnose(text)]


def advice(text: str) -> str:
    (only,) = diagnose(text)
    return only.advice()


# ---------------------------------------------------------------- one mistake, one message


def broken(text: str) -> list[str]:
    """The text with each applied op, or router, by turns misspelt beyond recognition."""
    stream = list(tokens(Source("spec", text), Report()))
    known = {*Op.registry, *Router.registry}
    before_names = ("ARROW", "EQUAL", "LSQB")
    places = [
        token.span
        for before, token in pairwise(stream)
        if before.type in before_names and token.type == "NAME" and str(token) in known
    ]
    return [f"{text[: span.start]}nonesuch{text[span.end :]}" for span in places]


@pytest.mark.some(4)
@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_of_a_misspelt_op_nothing_else_is_reported(path: Path) -> None:
    text = path.read_text()
    for each in broken(text)[::3]:
        assert len(set(codes(each)) - set(codes(text))) <= 1, each


ROUTED = "model m() {{ input x: float[5, 4] pool p[2] = linear(4) router r = noisy_top_k(k=2) {} output x }}"


@pytest.mark.parametrize(
    "body",
    [
        "y = x -> liner(4) -> p by r g = r.gates -> mean x = g -> mean",
        "y = x -> liner(4) -> p by r loss importance(r)",
        "repeat b[i] in 0..nine { x = x -> p by r } g = r.gates -> mean",
        "for k in 0..2 { if k == 0 { s[k] = x -> liner(4) } else { s[k] = x -> linear(4) } } z = s[0]",
        "y = x -> liner(4) loss mse(x, y)",
        "y = x -> liner(4) loss gaussian(x, y, variance=2.0)",
        "repeat b[i] in 0..2 { router q = nosy(1) } loss importance(q)",
    ],
)
def test_nothing_follows_from_a_mistake(body: str) -> None:
    assert len(codes(ROUTED.format(body))) == 1


def test_mistakes_that_do_not_follow_are_all_reported() -> None:
    assert codes(ROUTED.format("y = 3 -> foo -> lnear(4)")) == ["MG214", "MG202", "MG202"]


# ---------------------------------------------------------------- balance

BALANCED = (
    "model m() {{ input x: float[5, 4] target t: float[5, 4] pool p[3] = linear(4) router r = noisy_top_k(k=2) "
    "y = x -> p by r output y loss mse(y, t) {} }}"
)


@pytest.mark.parametrize(
    "loss",
    [
        "loss 0.01 * importance(r)",
        "loss 0.01 * load(r)",
        "use = r.gates -> mean(axis=-2) even = use * use -> sum(axis=-1) loss 0.01 * even",
        "use = r.selected -> mean(axis=-2) spread = (use - 0.3) ** 2 -> sum(axis=-1) loss balance = spread",
    ],
)
def test_a_balance_however_written_is_one(loss: str) -> None:
    assert codes(BALANCED.format("")) == ["MG407"]
    assert codes(BALANCED.format(loss)) == []


def test_a_loss_of_only_what_was_routed_is_no_balance() -> None:
    assert codes(BALANCED.format("loss mse(y -> tanh, t)")) == ["MG407"]


def test_a_balance_inside_a_scan_is_one() -> None:
    text = (
        "model m() {{ input x: float[6, 5, 4] target t: float[6, 5, 4] pool p[3] = linear(4) "
        "router r = noisy_top_k(k=2) scan x as v {{ w = v -> p by r {} }} as {} output y loss mse(y, t) {} }}"
    )
    assert codes(text.format("yield w", "y", "")) == ["MG407"]
    assert codes(text.format("yield w", "y", "loss 0.01 * load(r)")) == []
    use = "use = r.gates -> mean(axis=-2) even = use * use -> sum(axis=-1) yield (w, even)"
    assert codes(text.format(use, "y, even", "loss 0.01 * (even -> mean(axis=-1))")) == []


ROUTING = "pool p[3] = linear(4) router gate = noisy_top_k(k=2) x = x -> p by gate"
MODEL = "model m() {{ input x: float[5, 4] target t: float[5, 4] {} output x loss mse(x, t)\n}}"
UNBALANCED = {
    "model": MODEL.format(ROUTING),
    "repeat": MODEL.format(f"repeat blocks[i] in 0..2 {{ {ROUTING} }}"),
    "for": MODEL.format(f"for k in 0..2 {{ {ROUTING} }}"),
    "if": MODEL.format(f"if true {{ {ROUTING} }}"),
    "frozen": MODEL.format(f"frozen {{ {ROUTING} }}"),
    "nested": MODEL.format(f"repeat a[i] in 0..2 {{ if i > 0 {{ {ROUTING} }} }}"),
    "scan": MODEL.format(
        "scan x as v { pool p[3] = linear(4) router gate = linear(k=1) v = v -> p by gate yield v } as s x = s -> tanh"
    ),
    "block": f"block b() {{ input x: float[n, 4] {ROUTING} output x\n}} {MODEL.format('x = x -> b')}",
}


@pytest.mark.parametrize("where", UNBALANCED)
def test_the_balance_that_is_advised_is_valid_where_it_is_put(where: str) -> None:
    text = UNBALANCED[where]
    (only,) = diagnose(text)
    assert only.code == "MG407"
    place, _, statement = only.advice().partition(": ")
    end = text.index("\n}") if "block" in place else text.rindex("\n}")
    assert codes(f"{text[:end]}\n{statement}{text[end:]}") == []


# ---------------------------------------------------------------- weights that nothing needs


def test_weights_that_there_are_not_are_not_spoken_of() -> None:
    text = "model m() {{ input x: float[5, 4] pool p[2] = {} router r = {} y = x -> p by r output x }}"
    assert codes(text.format("relu", "every_module")) == []
    (only,) = diagnose(text.format("relu", "agreement(1)"))
    assert only.code == "MG404" and '"r"' in only.text()
    (only,) = diagnose(text.format("linear(4)", "agreement(1)"))
    assert only.code == "MG404" and '"p"' in only.text()


def test_weights_that_are_used_elsewhere_do_reach_an_output() -> None:
    module = "model m() { input x: float[4] module enc = linear(4) y = x -> enc z = x -> enc output z }"
    pool = "model m() { input x: float[5, 4] pool p[2] = linear(4) y = x -> p z = x -> p output z }"
    assert codes(module) == codes(pool) == []


# ---------------------------------------------------------------- what was meant


@pytest.mark.parametrize(
    ("word", "op"),
    [
        ("dense", "linear"),
        ("fc", "linear"),
        ("conv2d", "conv"),
        ("BatchNorm2d", "batch_norm"),
        ("layernorm", "layer_norm"),
        ("LayerNorm", "layer_norm"),
        ("swish", "silu"),
        ("softmax_cross_entropy", "cross_entropy"),
        ("multihead_attention", "attention"),
        ("liner", "linear"),
        ("denze", "linear"),
    ],
)
def test_a_word_of_the_field_leads_to_the_op(word: str, op: str) -> None:
    assert f'"{op}"' in advice(f"model m() {{ input x: float[4] y = x -> {word} output y }}")


@pytest.mark.parametrize("word", ["rnn", "recurrent", "mlp", "transformer"])
def test_a_word_that_is_no_op_here_is_written_otherwise(word: str) -> None:
    help_ = advice(f"model m() {{ input x: float[6, 4] y = x -> {word}(4) output y }}")
    assert "did you mean" not in help_
    assert f"there is no op {word}" in help_


def test_no_word_of_the_field_is_an_op_or_stands_for_two() -> None:
    for registry in (Op.registry, Router.registry):
        words = [word for each in registry.values() for word in each.synonyms]
        assert len(set(words)) == len(words)
        assert not set(words) & set(registry)
    assert not {word for idiom in IDIOMS for word in idiom.words} & set(Op.registry)


def test_what_is_in_scope_comes_first() -> None:
    text = "model m() { input x: float[4] module dense1 = linear(4) y = x -> dense output y }"
    assert advice(text) == 'did you mean "dense1"?'


def test_a_router_is_found_by_another_word() -> None:
    text = "model m() { input x: float[5, 4] pool p[2] = linear(4) router r = top_k(k=1) y = x -> p by r output y }"
    assert '"noisy_top_k"' in advice(text)


def test_of_many_names_the_nearest_are_listed() -> None:
    inputs = " ".join(f"input {name}: float[4]" for name in ("alpha", "beta", "gamma", "delta", "eps", "zeta", "eta"))
    text = f"model m() {{ {inputs} input theta: float[4] input iota: float[4] y = q + 1 output y }}"
    assert "alpha, beta, delta, eps" not in advice(text)
    help_ = advice("model m() { input x: float[4] y = x -> zzzz output y }")
    assert "add, attention, avg_pool" not in help_


def test_another_word_is_explained() -> None:
    assert suggestion("dense") == 'it is called "linear" here'
    assert "scan x as v" in suggestion("rnn")


def test_a_name_that_a_scan_cannot_have_is_to_be_another() -> None:
    text = "model m() { input x: float[5, 4] scan x as v { yield v } as x output x }"
    assert advice(text) == "choose another name"
