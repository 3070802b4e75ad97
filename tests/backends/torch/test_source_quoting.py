"""Whatever texts a spec holds, a file of PyTorch source is imports, functions and classes, and computes the same."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given

import modgraph
from modgraph.backends.torch.source.text import literal, prose
from modgraph.declare import format_value
from modgraph.diagnostics import ModgraphError
from tests.backends.torch.test_source import check
from tests.hostile import TEXTS, texts
from tests.ordinary_run import some_examples


@given(texts)
@some_examples(300)
def test_a_text_stays_within_its_literal_its_docstring_and_its_comment(text: str) -> None:
    assert ast.literal_eval(literal(text)) == text
    (doc,) = ast.parse(f'"""{prose(text)}"""').body
    assert isinstance(doc, ast.Expr)
    assert ast.literal_eval(doc.value) == text
    assert not ast.parse(f"# {prose(text)}").body
    assert prose(text).isprintable()


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), 1.5, (1,), (), [1, ("a",)], True, None])
def test_a_value_is_read_back_from_its_literal(value: object) -> None:
    assert eval(literal(value), {}) == value


def spec(text: str, named: str) -> str:
    return f"""model m(note={format_value(text)}) {{
      input x: float[4]
      target t: class[3]
      pool p[2] = linear(3{named}) -> relu
      router r = noisy_top_k(1)
      y = x -> linear(4{named}) -> p by r -> linear(3{named})
      output y
      loss cross_entropy(y, t)
    }}"""


@pytest.mark.some(5)
@pytest.mark.parametrize("text", TEXTS)
def test_a_file_holds_only_imports_and_definitions(text: str) -> None:
    try:
        model = modgraph.loads(spec(text, f", named={format_value(text)}")).build()
    except ModgraphError:  # as the name of an axis: what is no word may be refused
        model = modgraph.loads(spec(text, "")).build()
    source = check(model)
    doc, *statements = ast.parse(source).body
    assert isinstance(doc, ast.Expr)
    assert {type(each) for each in statements} <= {ast.ImportFrom, ast.Import, ast.FunctionDef, ast.ClassDef}
    assert all(line.isprintable() for line in source.split("\n")), "a text reached the file as it is"
