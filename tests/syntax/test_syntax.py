"""Reading text: the whole language, its tables, and recovery from mistakes."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest

from modgraph.diagnostics import Report, Source
from modgraph.syntax import ast, keywords, parse
from modgraph.syntax.tables import build, fingerprint, load_language

GRAMMAR = (resources.files("modgraph_grammar") / "modgraph.lark").read_text(encoding="utf-8")

WHOLE_LANGUAGE = """
import ffn, mlp from "blocks.mod"
block two(dim, deep=1) { input x: float[tokens, dim] y = x -> linear(dim) output y }
model m(sparse=[8, 10], name="a \\"b\\"", noise=1e-3, flag=true) {   # a comment
  input words: token[time, 100]
  target label[k]: class[3]
  module enc = two(4) -> relu
  pool p[4] = linear(3)
  pool q = [linear(3), two(4), identity]
  router r = agreement(2, policy=linear(5) -> relu -> linear(2))
  scan words -> embedding(32) as x with h: float[hidden] = start, c: float[4] {
    z, r2 = (x, h) -> concat -> linear(2 * 3) -> sigmoid -> split(2)
    h = (1 - z) * h + -z ** 2 * n
    yield h
  } as states, last
  repeat blocks[i] in 0..4 { x = x + (x -> p by r(z)) }
  repeat i in sparse { frozen { y = x -> q } }
  for k in 0..len(sparse) {
    if k in sparse and not flag or k >= 2 { s[k] = x -> relu } else if k != 1 { } else { t = r.gates }
  }
  grow p by r when novelty(autoencoder(128)) > 2 where i in sparse
  output probabilities = x -> softmax
  loss balance = noise / 2 * (importance(r) + load(r))
  loss cross_entropy(x, label)
}
"""


def read(text: str) -> tuple[ast.File | None, list[str]]:
    report = Report()
    file = parse(Source("t.mod", text), report)
    return file, [diagnostic.code for diagnostic in report.list_diagnostics()]


def test_the_grammar_has_no_conflict() -> None:
    build(GRAMMAR, strict=True)


def test_the_tables_belong_to_the_grammar_and_read_the_same() -> None:
    record = json.loads((resources.files("modgraph_grammar") / "tables.json").read_text(encoding="utf-8"))
    assert record["made_from"] == fingerprint(GRAMMAR), "run: python -m modgraph.syntax.tables"
    fresh = build(GRAMMAR)
    for text in (WHOLE_LANGUAGE, Path("specs/smn.mod").read_text()):
        file, codes = read(text)
        assert not codes
        terminals = {terminal.name for terminal in fresh.terminals}
        assert terminals == {terminal.name for terminal in load_language().terminals}
        assert file is not None


def test_the_whole_language_is_read() -> None:
    file, codes = read(WHOLE_LANGUAGE)
    assert codes == []
    assert file is not None
    statements = file.definitions[1].body.statements
    kinds = {type(statement).__name__ for statement in statements}
    assert kinds >= {"Scan", "Grow", "Loop", "Pool", "Router", "Target", "Loss", "Output"}
    loops = [bool(statement.name) for statement in statements if isinstance(statement, ast.Loop)]
    assert {*loops} == {True, False}, "a repeat has a name, and a for has none"
    assert file.definitions[1].parameters[1].default == ast.Literal(value='a "b"', span=file.span)


def test_keywords_are_known_words() -> None:
    assert {"model", "pool", "by", "scan", "true"} <= set(keywords())


def test_every_mistake_is_reported_in_one_run_and_in_order() -> None:
    text = """model m(a=3) {
      input x float[3]
      target y: class[;10]
      x = x -> -> linear(3)
      pool p[3] = linear(3
      router input = agreement(2)
      output x $
    }"""
    report = Report()
    assert parse(Source("t.mod", text), report) is None
    lines = [d.span.source.position(d.span.start)[0] for d in report.list_diagnostics() if d.span]
    assert lines == [2, 3, 4, 6, 6, 7]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model m() { input: float[3] }", 'expected a name, found ":"'),
        ("model m() { input loss: float[3] }", "is reserved"),
        ("model m() { y = x -> linear(in=6, out=3) }", 'leave out "in": sizes of inputs follow from the wiring'),
        ("model m() { x = 'a' }", "double quotes"),
        ('model m() { x = "a }', "close the string"),
        ("model m() { x = 1; y = 2 }", "no sign between"),
        ("model m() { input x: float[3] ", "close the brace"),
        ("model m() { } }", "leave out this closing brace"),
        ("model m() { x = 123456789012345678901234 }", "must be at most"),
        ("model m() { x = 1e999 }", "must be at most"),
    ],
)
def test_a_mistake_is_reported_in_words_that_help(text: str, words: str) -> None:
    report = Report()
    parse(Source("t.mod", text), report)
    messages = " ".join(d.text() + " " + d.advice() for d in report.diagnostics)
    assert words in messages


def test_places_are_lines_and_columns_from_one() -> None:
    file, _ = read("model m() {\n\tinput x: float[3]\n}")
    assert file is not None
    assert str(file.definitions[0].body.statements[0].span) == "t.mod:2:2"
