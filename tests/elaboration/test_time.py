"""Short texts that would take years: each is told or worked out, by what it is made of."""

from __future__ import annotations

import pytest

from modgraph.diagnostics import ModgraphError
from modgraph.program import loads
from tests.assault.specs import HANGS, bounded_time


def doubling(first: str, type_: str = "float[4]", use: str = "output y = x -> b44") -> str:
    """Blocks that each use the one before twice, 44 times over."""
    blocks = [f"block b0() {{ input x: {type_} {first} }}"]
    blocks += [f"block b{i}() {{ input x: {type_} output y = x -> b{i - 1} -> b{i - 1} }}" for i in range(1, 45)]
    return " ".join(blocks) + f" model m() {{ input x: {type_} {use} }}"


def model(body: str, given: str = "input x: float[4] ") -> str:
    return f"model m() {{ {given} {body} output x }}"


TOKENS = "input x: float[4, 4] pool p[2] = linear(4) router r = noisy_top_k(1) "
LONG = ", ".join(map(str, range(4000)))
SCAN = "scan s as v {"
MODULES = " ".join(f"module e{i} = e{i - 1} -> e{i - 1}" for i in range(1, 45))
NAMES = " ".join(f"abcdefgh{i} = x" for i in range(3000))
DOUBLED = ", ".join(f"a{i}=[a{i - 1}, a{i - 1}]" for i in range(1, 60))
LOOP = "for i in 0..19999"
TEXTS = {
    "blocks of nothing": doubling("output x"),
    "blocks of ops": doubling("output y = x -> relu"),
    "blocks in a pool": doubling("output x", use="pool p[2] = b44 output y = x -> p -> mean"),
    "blocks in a scan": doubling(
        "output x", "float[4]", f"input s: float[4, 4] {SCAN} yield v -> b44 }} as y output y"
    ),
    "blocks with pools": doubling("pool p[2] = linear(4) output y = x -> p -> mean"),
    "blocks of scans": doubling("scan x as v { yield v } as y output y", "float[4, 4]"),
    "blocks in repeats": " ".join(
        ["block b0() { input x: float[4] output x }"]
        + [
            f"block b{i}() {{ input x: float[4] repeat r[i] in 0..9 {{ x = x -> b{i - 1} }} output x }}"
            for i in range(1, 45)
        ]
        + [model("x = x -> b44")]
    ),
    "modules of modules": model(f"module e0 = relu {MODULES} x = x -> e44"),
    "empty frozen bodies": model(f"{LOOP} {{ {'frozen { } ' * 300} }}"),
    "empty branches": model(f"{LOOP} {{ {'if true { } ' * 300} }}"),
    "branches in branches": model(f"{LOOP} {{ {'if true { ' * 40} x = x {'}' * 40} }}"),
    "declarations in branches": model(f"{LOOP} {{ {'if true { ' * 40}{'module a = relu ' * 50}{'}' * 40} }}"),
    "modules in loops": model(f"{LOOP} {{ {' '.join(f'module a{i} = relu' for i in range(300))} }}"),
    "routers in loops": model(f"{LOOP} {{ {' '.join(f'router a{i} = agreement(1)' for i in range(300))} }}"),
    "many operands": model(f"for i in 0..2000 {{ y = ({', '.join(['x'] * 1000)}) -> concat }}"),
    "many results": model(f"{LOOP} {{ y = x -> split(256) }}", "input x: float[256]"),
    "a statistic of all routes": model("for i in 0..3000 { x = x -> p by r y = importance(r) }", TOKENS),
    "the records of all routes": model("for i in 0..1000 { x = x -> p by r a = r.gates }", TOKENS),
    "losses along a chain": model("for i in 0..9000 { x = x -> relu loss l = x -> mean(axis=-1) }"),
    "outputs along a chain": model("for i in 0..9000 { x = x -> relu output o = x }"),
    "what a scan reads": model(
        "for i in 0..900 { a[i] = s -> relu } scan s as v { for i in 0..900 { v = v + (a[i] -> mean) } yield v } as y",
        "input x: float[4] input s: float[4, 4] ",
    ),
    "one misspelt op": model(f"{LOOP} {{ {'y = x -> lnear(3) ' * 40} }}"),
    "one misspelt name of many": model(f"{NAMES} {LOOP} {{ {'y = abcdefg_ ' * 40} }}"),
    "a list that is no width": model(f"l = [{LONG}] {LOOP} {{ {'y = x -> linear(l) ' * 40} }}"),
    "lists compared": model(f"l = [{LONG}] {LOOP} {{ if l == l {{ }} }}"),
    "lists in lists": model(f"l = [{'[1, [2, 3]], ' * 4000}] {LOOP} {{ if l in [l, l, l, l] {{ }} }}"),
    "lists doubled": f"model m(a0=[1], {DOUBLED}) {{ input x: float[4] output x }}",
    "lists ever deeper": model("l = [1] for i in 0..2000 { l = [l] } if l == l { }"),
    "long strings": model(f's = "{"a" * 500_000}" t = "{"a" * 500_000}" {LOOP} {{ if s == t {{ }} }}'),
    "the least of a range": model(f"{LOOP} {{ if min(0..100000) == 2 {{ }} }}"),
    "a chain of powers": model(f"{LOOP} {{ if 1.0 {'** 1.0 ' * 90} == 1 {{ }} }}"),
    "names after a scan": model(
        f"scan s as v {{ yield ({'v, ' * 4000}) }} as {', '.join(f'a{i}' for i in range(3999))}, a3998",
        "input x: float[4] input s: float[4, 4] ",
    ),
    "many statements": model("x = x " * 33_000),
    "many ops": model("x = x -> relu " * 19_000),
}
QUICK = ("blocks of nothing", "lists doubled")


SLOWER = [pytest.param(name, marks=pytest.mark.slow) for name in TEXTS if name not in QUICK]


@pytest.mark.some(20)
@pytest.mark.parametrize("name", [*QUICK, *SLOWER])
def test_no_short_text_takes_without_end(name: str) -> None:
    with bounded_time(HANGS):  # what doubles with each line would take years
        try:
            loads(TEXTS[name])
        except ModgraphError as error:
            assert len(str(error)) < 200_000


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("1.5 in 0..10**15", False),
        ("2.0 in 0..10**15", True),
        ("10**15 in 0..10**15", False),
        ("-1 in 0..10**15", False),
        ("1e38 in 0..10**15", False),
        ('"a" in 0..10**15', False),
        ("[1] in 0..10**15", False),
        ("(0..10**15) in [1, 0..10**15]", True),
        ("(0..3) == [0, 1, 2]", False),
        ("2 not in 0..10**15", False),
        ("len(0..10**15) == 10**15", True),
        ("(0..10**15)[7] == 7", True),
    ],
)
def test_a_range_is_never_gone_through(condition: str, holds: bool) -> None:
    body = f"input x: float[4] if {condition} {{ output held = x }} else {{ output failed = x }}"
    with bounded_time(HANGS):
        graph = loads(f"model m() {{ {body} }}").ir
    assert list(graph.outputs) == ["held" if holds else "failed"]


def test_a_list_that_is_too_long_or_too_deep_is_reported() -> None:
    for name, words in (
        ("lists doubled", "too many members in all: at most 100000"),
        ("lists ever deeper", "nested more than"),
    ):
        with pytest.raises(ModgraphError, match=words):
            loads(TEXTS[name])


def test_a_message_displays_the_beginning_of_a_long_list_or_string() -> None:
    for value in (f"[{LONG}]", f'"{"a" * 10_000}"'):
        with pytest.raises(ModgraphError, match="…") as caught:
            loads(model(f"y = x -> linear({value})"))
        assert len(caught.value.diagnostics[0].text()) < 200
