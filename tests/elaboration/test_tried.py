"""What a new user may write, and what is told: which message, about what, with a help that can be followed."""

from __future__ import annotations

import re

import pytest

from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.program import loads

X = "input x: float[time, 4] input v: float[6, 4] pool p[3] = linear(4) router r = linear(1) "
BLOCK = "block ffn(dim) { input x: float[tokens, dim] y = x -> linear(dim) output y } "


def diagnose(body: str, before: str = "") -> tuple[Diagnostic, ...]:
    with pytest.raises(ModgraphError) as error:
        loads(f"{before}model m() {{ {X} {body} output x }}")
    return tuple(error.value.diagnostics)


TRIED = [
    ('y = v -> p -> rename(p="q", p="s")', 'rename gets "p" twice', "keep one of them"),
    ('y = v -> p -> rename("p", "q")', "names of rename", 'rename(expert="sender")'),
    ('y = (x, v) -> contract(axis="4")', 'unknown axis "4"', "count from the last: axis=-1"),
    ("y = (v, v -> linear(5)) -> contract", "contract: it cannot sum over 4 and 5", ""),
    ("y = x -> flatten", 'flatten: it needs fixed lengths, and "time" has none', '-> mean(axis="time")'),
    ("y = (x -> linear(1), v -> mean -> mean(axis=-1)) -> concat", "operand 2 is a single number", ""),
    ("y = v -> p by linear(k=1)", 'the kind of router "linear"', "router r = linear"),
    ("y = v -> p by s", 'unknown name "s"', "the routers here: r"),
    ("router s = lineer(1)", 'unknown router "lineer"', 'did you mean "linear"?'),
    ("module k = linear(4) pool q[k] = linear(4)", "the size of a pool", "that shares its axis"),
    ("pool q[p] = [linear(4), linear(4)]", "the size of a pool", "one kind of modules"),
    ("pool time[2] = linear(4) y = x -> time", 'pool "time": the axis "time" would occur twice', "rename one"),
    ("pool q[3] = linear(4) y = (v -> p) + (v -> q)", "do not fit together", '-> rename(q="p")'),
    ("input z: float[chars, 4] y = x + z", "do not fit together", "one name where they are declared"),
    ("y = v -> p by r loss importance(gate)", 'unknown name "gate"', "known here"),
    ("y = v -> p by r loss importance(p)", 'found the pool "p"', "name the router"),
    ("for k in 0..2 { s[k] = v -> linear(2) } output y = s", 'the family "s"', "s[0], or take it whole: s -> concat"),
    ("for k in 0..2 { output s[k] = v } output s[1] = v -> linear(3)", '"s.1" is declared twice', "output NAME"),
    ("y = x -> softmax(axis=tme)", 'unknown axis "tme"', "axes are: time"),
    (
        "scan x as s with h: float[q, 4] { h = h + s yield h } as y",
        "nothing tells how long q is",
        "start it as a value",
    ),
    ("grow p[-1]", "the number must be whole", "as in: grow p[1]"),
    ("scan v as s { yield s yield s } as y", 'each step yields 2 values, but 1 name follows "as"', "one name"),
]


@pytest.mark.parametrize(("body", "message", "help_"), TRIED)
def test_a_mistake_is_reported_once_in_plain_words(body: str, message: str, help_: str) -> None:
    (only,) = (each for each in diagnose(body) if each.severity == "error")
    assert message in only.text() and help_ in only.advice()


@pytest.mark.parametrize("body", [body for body, _, _ in TRIED])
def test_no_message_doubles_a_word(body: str) -> None:
    for each in diagnose(body):
        assert re.search(r"\b(\w+):? \1\b", each.text()) is None


def test_a_block_that_does_not_fit_is_reported_with_its_use_and_the_value() -> None:
    (only,) = diagnose("y = v -> ffn(5)", BLOCK)
    assert [note.text for note in only.notes] == ["float[6, 4] comes from here", 'block "ffn" is used here']


def test_a_block_without_an_output_is_called_a_block() -> None:
    (only,) = diagnose("y = v -> none", "block none() { input x: float[tokens, 4] y = x -> relu } ")
    assert only.text() == "block none has no output"


@pytest.mark.parametrize(
    ("x", "pool", "router", "does", "way_out"),
    [
        ("5, 8, 8", "conv(8)", "noisy_top_k(k=2)", "take float[5, 8, 8]", "x -> flatten(3) -> linear(e) -> softmax"),
        ("7, 5, 8", "gru(3)", "linear(k=2)", "take float[5, 8]", "x -> flatten(2) -> linear(e) -> softmax"),
        ("5, 8", "gru(3)", "linear(k=2)", "take float[5, 8]", "x -> flatten(2) -> linear(e) -> softmax"),
        ("time, 8", "gru(3)", "linear(k=2)", "take float[time, 8]", "x -> mean -> linear(e) -> softmax"),
        ("5, 8", "linear(8) -> unmerge([2, 4])", "agreement(1)", "give more than vectors", "-> flatten"),
    ],
)
def test_a_router_of_the_vocabulary_that_does_not_fit_is_reported_once_at_the_route(
    x: str, pool: str, router: str, does: str, way_out: str
) -> None:
    text = f"model m() {{\ninput x: float[{x}]\npool e[4] = {pool}\nrouter r = {router}\nh = x -> e by r\noutput h\n}}"
    with pytest.raises(ModgraphError) as error:
        loads(text)
    (only,) = error.value.diagnostics
    assert only.span is not None and only.span.text == "e by r", "the first place is the route"
    assert only.text() == f'router "r" decides by vectors, but the modules of "e" {does}'
    assert way_out in only.advice()
    assert "--> <modgraph>/" in str(error.value) and "/modgraph/routers" not in str(error.value)
    if " by w" in only.advice():
        found = only.advice().removeprefix("route by weights: ").replace(", then x", " y = x")
        loads(f"model m() {{ input x: float[{x}] pool e[4] = {pool} {found} output y }}")
