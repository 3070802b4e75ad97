"""Laws over generated programs: layout, text and JSON keep the graph; meaningful edits change its hash."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from modgraph.diagnostics import Report, Source
from modgraph.ir import from_json, to_json
from modgraph.ir.text.parse import parse_text
from modgraph.program import loads
from modgraph.syntax.format import format_source
from tests.ordinary_run import some_examples

WIDTH = 4
OPS = (
    "relu",
    "tanh",
    "layer_norm",
    f"linear({WIDTH})",
    f"linear({WIDTH}, bias=false)",
    "ffn(2)",
    "enc",
    "dropout(0.25)",
)


@st.composite
def pipelines(draw: st.DrawFn, names: tuple[str, ...]) -> str:
    """A value of [5, WIDTH] made from values that are bound."""
    head = draw(st.sampled_from(names))
    stages = draw(st.lists(st.sampled_from(OPS), min_size=1, max_size=3))
    text = " -> ".join([head, *stages])
    if draw(st.booleans()):
        text = f"{draw(st.sampled_from(names))} {draw(st.sampled_from('+-*'))} ({text})"
    return text


@st.composite
def programs(draw: st.DrawFn) -> list[str]:
    """Statements of a model, in an order that works; the last binds `out`."""
    statements, names = [], ["x"]
    for number in range(draw(st.integers(1, 5))):
        value = draw(pipelines(tuple(names)))
        kind = draw(st.sampled_from(["bind", "repeat", "if", "route", "for"]))
        name = f"v{number}"
        if kind == "repeat":
            statements.append(f"{name} = x repeat r{number}[i] in 0..2 {{ {name} = {name} + ({value}) }}")
        elif kind == "if":
            statements.append(f"{name} = x if n > {number} {{ {name} = {value} }} else {{ {name} = 2 * x }}")
        elif kind == "for":
            statements.append(f"for k in 0..2 {{ f{number}[k] = {value} }} {name} = f{number} -> sum")
        elif kind == "route":
            pool = f"pool p{number}[2] = linear({WIDTH}) -> relu router g{number} = agreement(1)"
            statements.append(f"{pool} {name} = x + ({value} -> p{number} by g{number} -> mean)")
        else:
            statements.append(f"{name} = {value}")
        names.append(name)
    return [*statements, f"out = {' + '.join(names[1:])}"]


def program(statements: list[str], factor: int = 2) -> str:
    block = f"block ffn(m) {{ input t: float[n, {WIDTH}] y = t -> linear(m * {WIDTH}) -> linear({WIDTH}) output y }}"
    head = f"model g(n={factor}) {{ input x: float[5, {WIDTH}] module enc = linear({WIDTH}) -> relu"
    return "\n".join([block, head, *statements, "output out }"])


@some_examples(40)
@given(statements=programs())
def test_layout_text_and_json_keep_the_graph(statements: list[str]) -> None:
    text = program(statements)
    graph = loads(text).ir
    once = format_source(Source("t.mod", text), Report())
    assert once is not None
    assert loads(once).ir == graph
    assert format_source(Source("t.mod", once), Report()) == once
    assert parse_text(str(graph)) == graph
    assert from_json(json.loads(json.dumps(to_json(graph)))).hash() == graph.hash()


@some_examples(30)
@given(statements=programs(), extra=st.sampled_from(["relu", "linear(4)", "tanh"]))
def test_a_meaningful_edit_changes_the_hash_and_a_comment_does_not(statements: list[str], extra: str) -> None:
    before = loads(program(statements)).ir.hash()
    noted = [f"{statement} # note\n" for statement in statements]
    assert loads(program(noted)).ir.hash() == before
    edited = [*statements[:-1], f"out = ({statements[-1].removeprefix('out = ')}) -> {extra}"]
    assert loads(program(edited)).ir.hash() != before


@some_examples(30)
@given(statements=programs())
def test_independent_statements_may_change_places(statements: list[str]) -> None:
    separate = "side = x -> linear(3) output side"
    first, last = program([separate, *statements]), program([*statements, separate])
    assert loads(first).ir == loads(last).ir


@some_examples(25)
@given(statements=programs())
def test_a_program_that_checks_also_runs(statements: list[str]) -> None:
    import torch

    model = loads(program(statements)).build()
    result = model(torch.randn(2, 5, WIDTH))
    assert isinstance(result, torch.Tensor)
    assert result.shape == (2, 5, WIDTH)
