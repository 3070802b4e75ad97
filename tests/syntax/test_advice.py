"""What is said of text that cannot be read: one message for one mistake, in words, with help that can be written."""

from __future__ import annotations

import pytest

from modgraph.diagnostics import Diagnostic, Report, Source
from modgraph.syntax import parse
from modgraph.syntax.advice import DEFINITIONS, EXAMPLES, FOREIGN_WORDS
from modgraph.syntax.tables import literals

BEFORE = "model m() { input x: float[4] "


def diagnose(text: str) -> list[Diagnostic]:
    report = Report()
    parse(Source("t.mod", text), report)
    return report.list_diagnostics()


@pytest.mark.parametrize("code", [*EXAMPLES.values(), FOREIGN_WORDS["elif"], FOREIGN_WORDS["while"]])
def test_the_layout_of_a_statement_is_one(code: str) -> None:
    assert diagnose(f"{BEFORE} {code} }}") == []


@pytest.mark.parametrize("code", DEFINITIONS.values())
def test_the_layout_of_a_definition_is_one(code: str) -> None:
    assert diagnose(f"{code} {DEFINITIONS['BLOCK']}") == []


MEANT = {
    "y = x => relu": "y = x -> relu",
    "y := x -> relu": "y = x -> relu",
    "y == x -> relu": "y = x -> relu",
    "y += x": "y = y + 1",
    "x -> relu": "y = x -> relu",
    "relu(x)": "y = relu(x)",
    "loss 0.1 importance(gate)": "multiply with *: 0.1 * importance(gate)",
    'loss 0.1 load((gate), over="batch")': '0.1 * load((gate), over="batch")',
    "loss w mse(x, y)": "w * mse(x, y)",
    "y = 2 x output y": "2 * x",
    "y = 0.5\nrelu(x)": "y = relu(x)",
    "y = x -> linear 4": "linear(4)",
    "y = x -> linear(width: 4)": "width=4",
    "y = x -> mean * 2": "(x -> op) * y",
    "y = x -> output y": "x -> relu",
    "y = (x -> relu output y": "close the bracket: )",
    "y = [1, 2 output y": "close the bracket: ]",
    "y = x -> relu) output y": "no bracket is open",
    "y = (x, ) -> concat": "leave out the comma",
    "y = x -> relu, output y": "no sign between",
    "output x, y": "output x output y",
    "y = .5 * x": "write 0.5",
    "let y = x": '"let"',
    "return x": "output y",
    "while true { x = x -> relu }": "until (h -> max(axis=-1)) > 1 as y",
    "loop true { x = x -> relu }": "repeat layer[i] in 0..4",
    "repeat l[i] in 0..4 { x = x -> relu } until x > 1": "until follows the body of a scan",
    "scan 0..4 as n { yield n } until n > 2 output x": "as y",
    "if true { } elif false { }": "else if",
    "inptu y: float[4]": "input x: float[4]",
    "y = if true { z = x } else { z = x }": "write if as a statement",
    "for i = 0..3 { }": "for k in 0..4",
    "repeat 3 { }": "repeat layer[i] in 0..4",
    "pool p(4) = linear(4)": "pool p[4] = linear(8)",
    "input y: float(4)": "input x: float[4]",
    "scan x as v { yield v } output x": "as y",
    "// a comment": "begin a comment with #",
    "y = x ^ 2": "**",
    "y = x | relu": "or",
    "y = x && x": "and",
    "y = x -> p by output y": "by r",
    "grow p when 3": "grow p[2]",
    "frozen module e = linear(4)": "frozen {",
}


@pytest.mark.parametrize("statement", MEANT)
def test_a_mistake_is_reported_once_and_says_what_was_meant(statement: str) -> None:
    (message, *others) = diagnose(f"{BEFORE} {statement} output x }}")
    assert MEANT[statement] in message.advice()
    assert not others or {each.code for each in (message, *others)} == {"MG103"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mdel m() { input x: float[4] output x }", 'did you mean "model"?'),
        ('from "a.mod" import ffn model m() { input x: float[4] output x }', "import ffn from"),
        ('import "a.mod" model m() { input x: float[4] output x }', "import ffn from"),
        ("model () { input x: float[4] output x }", "model m("),
    ],
)
def test_definitions_have_lowerings_too(text: str, words: str) -> None:
    (only,) = diagnose(text)
    assert words in only.advice()


@pytest.mark.parametrize("statement", MEANT)
def test_no_list_of_operators_is_printed(statement: str) -> None:
    for message in diagnose(f"{BEFORE} {statement} output x }}"):
        assert (
            sum(
                f'"{sign}"' in message.text().partition("expected")[2].partition(", found")[0]
                for sign in literals().values()
            )
            <= 3
        )


def test_what_follows_a_broken_scan_is_read_at_its_own_depth() -> None:
    messages = diagnose(f"{BEFORE} scan x as v {{ yield v }} output x y = relu(x output y }} block b() {{ output }}")
    assert [each.code for each in messages] == ["MG104"] * 3
