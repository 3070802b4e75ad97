"""Any text whatever gives a program or messages, for a bounded number of calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from modgraph.diagnostics import ModgraphError
from modgraph.program import load, loads
from tests.ordinary_run import some_examples
from tests.work import count_calls

WORDS = [
    *"model block input target tokenizer module pool router by output loss repeat for in if else scan as".split(),
    *"with yield grow when where frozen and or not true false import from -> .. == != <= ** // + - * / % = :".split(),
    *', . ( ) [ ] { } x y label 0 1 3 2.5 1e3 "s" linear conv mean agreement float class token importance'.split(),
]
MOST_CALLS = 8_000_000  # for any text; the most of these, a chain of 10,000 ops, takes 3.2 million


def survives(text: str) -> None:
    with count_calls() as work:
        try:
            loads(text)
        except ModgraphError as error:
            assert str(error)
    assert work.calls < MOST_CALLS


@some_examples(300)
@given(text=st.text(max_size=200))
@example(text=".mod")
def test_any_characters(text: str) -> None:
    survives(text)


@some_examples(300)
@given(words=st.lists(st.sampled_from(WORDS), max_size=60))
def test_any_tokens_inside_a_model(words: list[str]) -> None:
    survives("model m(a=1) { input x: float[4, 4] " + " ".join(words) + " output x }")


BODY = "model m(k=0) {{ input x: float[4] {} output x }}"
MONSTERS = {
    "brackets": "(" * 1_000_000,
    "parentheses in an expression": BODY.format("y = " + "(" * 50_000),
    "a chain of +": BODY.format("x = x" + " + x" * 10_000),
    "a chain of ->": BODY.format("x = x" + " -> relu" * 10_000),
    "a chain of not": BODY.format("if " + "not " * 10_000 + "true { }"),
    "a chain of minus": BODY.format("x = " + "-" * 10_000 + "x"),
    "a chain of powers": BODY.format("x = " + "2 ** " * 10_000 + "x"),
    "a chain of calls": BODY.format("y = f" + "()" * 10_000),
    "else if": BODY.format("if false { } " + "else if false { } " * 5_000),
    "a tower": BODY.format("x = x -> linear(9**9**9**9)"),
    "a long product": BODY.format("x = x -> linear(" + "9 * " * 90 + "9)"),
    "a large pool": BODY.format("pool p[10**12] = linear(3) router r = agreement(1) x = x -> p by r -> mean"),
    "a pool of many": BODY.format("pool p[65000] = linear(3) router r = agreement(1) x = x -> p by r -> mean"),
    "a long repeat": BODY.format("repeat i in 0..10**9 { x = x -> relu }"),
    "an empty long repeat": BODY.format("repeat i in 0..10**9 { }"),
    "repeats in repeats": BODY.format("repeat i in 0..10**5 { repeat j in 0..10**5 { repeat k in 0..10**5 { } } }"),
    "a sum over a range": BODY.format("x = x -> linear(sum(0..10**12))"),
    "a huge axis": "model m() { input x: float[10**12] output x }",
    "a huge weight": BODY.format("x = x -> linear(10**12)"),
    "a division by zero": BODY.format("x = x -> linear(4 // k)"),
    "zero to a negative power": BODY.format("x = x -> linear(k ** -1)"),
    "modules in modules": BODY.format(
        "module a0 = relu " + " ".join(f"module a{i} = a{i - 1} -> relu" for i in range(1, 1000)) + " x = x -> a999"
    ),
    "a module in itself": BODY.format("module a = a x = x -> a"),
    "many mistakes": BODY.format("x = y " * 5_000),
    "a long list": BODY.format("y = [" + "1, " * 10_000 + "]"),
    "a long name": BODY.format("x = " + "y" * 1_000_000),
    "control characters": BODY.format('z = "\x1b[31m"\x07 y = \x1b[2J'),
    "nul": "model m() {\0}",
    "a byte order mark": "\ufeff" + BODY.format(""),
    "nothing": "",
    "too long": "#" * (5 * 2**20),
}


@pytest.mark.some(6)
@pytest.mark.parametrize("name", MONSTERS)
def test_monsters_are_reported_for_bounded_work(name: str) -> None:
    survives(MONSTERS[name])


@pytest.mark.parametrize("content", [b"\xff\xfe", b"model m() {\0}", b"\xef\xbb\xbfmodel m() { }", b"a" * (5 * 2**20)])
def test_any_bytes_in_a_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.mod").write_bytes(content)
    with pytest.raises(ModgraphError):
        load(tmp_path / "m.mod")


def test_files_that_cannot_be_read_are_reported(tmp_path: Path) -> None:
    (tmp_path / "model.mod").write_text("")
    for path, words in ((tmp_path, "folder"), (tmp_path / "modle.mod", "did you mean"), (Path("\0"), "cannot read")):
        with pytest.raises(ModgraphError, match=words):
            load(path)


def test_a_byte_order_mark_and_carriage_returns_mean_nothing(tmp_path: Path) -> None:
    text = Path("specs/smn.mod").read_text()
    (tmp_path / "smn.mod").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert load(tmp_path / "smn.mod").ir == load("specs/smn.mod").ir


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"modules": 2.5}, "must be a whole number"),
        ({"modules": "two"}, "must be a whole number"),
        ({"bias": 1}, "must be true or false"),
        ({"update": 3}, "must be a string"),
        ({"balance": "x"}, "must be a number"),
        ({"module": 3}, 'did you mean "modules"'),
        ({"modules": 0}, "size"),
        ({"iterations": -1}, "at least 0"),
        ({"update": "summ"}, "must be one of"),
    ],
)
def test_overrides_of_the_wrong_kind_are_reported(parameters: dict[str, object], words: str) -> None:
    with pytest.raises(ModgraphError, match=words):
        load("specs/smn.mod", **parameters)
