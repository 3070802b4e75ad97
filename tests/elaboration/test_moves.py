"""`moved old -> new`: where it may stand, what is told of it, and that it is no part of the graph."""

from __future__ import annotations

import pytest

from modgraph.diagnostics import ModgraphError, Report, Source
from modgraph.program import Program, loads
from modgraph.store.architecture import read_architecture
from modgraph.syntax.format import format_source

BODY = "input x: float[4] first = x -> linear(2) repeat blocks[i] in 0..2 { first = first -> linear(2) } output first"


def model(moves: str, body: str = BODY) -> Program:
    return loads(f"model m() {{ {body} {moves} }}")


def test_moves_are_kept_next_to_the_graph() -> None:
    program = model("moved start -> first moved layers.0 -> blocks.0 moved output.start -> output.first")
    assert program.moved == {"start": "first", "layers.0": "blocks.0", "output.start": "output.first"}
    assert program.ir == loads(f"model m() {{ {BODY} }}").ir
    assert not program.warnings


def test_the_layout_has_a_move_a_line() -> None:
    text = "model m() { input x: float[4] output x moved   a . b->output . x }"
    formatted = format_source(Source("t.mod", text), Report())
    assert formatted == "model m() {\n  input x: float[4]\n  output x\n  moved a.b -> output.x\n}\n"


@pytest.mark.parametrize(
    "text",
    [
        "model moved(moved=2) { input x: float[4] y = x -> linear(moved) output y }",
        "model m() { input moved: float[4] moved, b = moved -> split(2) y = moved output y }",
        "model m() { input x: float[4] module moved = linear(2) moved2 = x -> moved output moved2 }",
        "model m() { input x: float[4] pool moved[2] = linear(2) router r = cosine(width=2) y = x -> moved by r "
        "output y }",
        "model m() { input x: float[4] y = x for moved in 0..2 { y = y -> linear(moved + 1) } output moved = y }",
        "model m() { input x: float[4] h = x -> relu moved = h output moved moved moved -> moved }",
    ],
)
def test_the_word_is_a_name_everywhere_else(text: str) -> None:
    assert loads(text).ir.outputs


def test_a_name_moves_once_and_to_one_place() -> None:
    for moves in ("moved a -> first moved a -> blocks.1", "moved a -> first moved b -> first"):
        with pytest.raises(ModgraphError, match="is moved twice"):
            model(moves)
    assert model("moved a -> b moved b -> first").moved == {"a": "b", "b": "first"}


def test_a_new_name_that_is_not_there_is_a_warning() -> None:
    (warning,) = model("moved start -> frist").warnings
    assert (warning.code, warning.advice()) == ("MG243", 'did you mean "first"?')
    assert warning.span is not None and str(warning.span).startswith("<string>:1:")


@pytest.mark.parametrize(
    "text",
    [
        "model m() { input x: float[4] y = x if true { moved a -> y } output y }",
        "model m() { input x: float[4] y = x repeat b[i] in 0..2 { y = y -> relu moved a -> y } output y }",
        "block b() { input x: float[4] y = x -> relu output y moved a -> y } "
        "model m() { input x: float[4] y = x -> b output y }",
        "model m() { input x: float[3, 4] scan x as v with h: float[4] { h = h + v moved a -> h yield h } as y "
        "output y }",
    ],
)
def test_a_move_stands_at_the_top_of_a_model(text: str) -> None:
    with pytest.raises(ModgraphError, match="MG241"):
        loads(text)


@pytest.mark.parametrize("moves", ["moved a = first", "moved a first", "moved a ->", "moved a - first"])
def test_a_move_that_is_written_otherwise_is_reported_with_its_syntax(moves: str) -> None:
    with pytest.raises(ModgraphError, match=r"moved blocks\.0\.old -> blocks\.0\.new|close the brace|arrow"):
        model(moves)


def test_what_is_opened_has_the_moves_of_its_spec(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("moves") / "m.mod"
    path.write_text(f"model m() {{ {BODY} moved start -> first }}")
    assert read_architecture(path).moved == {"start": "first"}
