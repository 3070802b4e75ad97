"""The forms in which graphs are stored: JSON of one format, and the text."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modgraph.ir import UnreadableGraph, from_json, to_json
from modgraph.ir.stored.program import FORMAT
from modgraph.ir.text.parse import grammar, parse_text, word_of
from modgraph.passes import INFERENCE, TRAINING, apply_passes
from modgraph.program import loads
from tests.examples import GRU, ROUTERS_IN_SCAN, SEQUENCE, TRANSFORMER, TWO_SCANS
from tests.ordinary_run import some_examples


def test_the_grammar_of_the_text_has_no_conflict() -> None:
    assert grammar(strict=True).terminals


@pytest.mark.some(10)
@pytest.mark.parametrize("text", [GRU, SEQUENCE, TRANSFORMER, TWO_SCANS, *ROUTERS_IN_SCAN.values()])
@pytest.mark.parametrize("passes", [TRAINING, INFERENCE])
def test_what_passes_give_reads_back_from_text(text: str, passes: tuple[object, ...]) -> None:
    graph = apply_passes(loads(text).ir, passes)  # type: ignore[arg-type]
    assert parse_text(str(graph)) == graph


def test_an_unlowered_route_names_no_lowering() -> None:
    assert "lowering" not in str(loads(GRU).ir)


TEXT = """round blocks(x: float[4]) {
  x.add: float[4] = op add (x, x)
}

model m() {
  x: float[3] = input
  y.linear: float[4] = op linear(width=4) (x)
  blocks.0 = call blocks (y.linear)
  blocks.1 = call blocks (blocks.0/x.add)
  output.y = output y (blocks.1/x.add)
}"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("= input", "= inpt", "line 6, column 17"),
        ("float[3]", "float[3 4]", 'line 6, column 14: "," or "=" or "]" must stand here'),
        ("4) (x)", "4) (x", "line 7, column 45"),
        ("width=4", "width=", "line 7, column 40"),
        ("width=4", "width=§", "line 7, column 40"),
        (" output y (b", " output y b", 'line 10, column 23: "(" must stand here'),
        ("call blocks (y", "call (y", "line 8, column 19"),
        ("round blocks", "rounds blocks", "line 1, column 8"),
        ("\n}\n", "\n", "line 4, column 7"),
        ("(blocks.0/x.add)", "(blocks.0/x.mul)", "it gives x.mul, which is not there"),
        ("(blocks.0/x.add)", "(blocks.7/x.add)", "blocks.7"),
        ("(blocks.0/x.add)", "(blocks[-1]/x.add)", "blocks[-1]"),
        ("call blocks (y.linear)", "call others (y.linear)", 'node "blocks.0", field "is": others is no definition'),
        ("call blocks (y.linear)", "call blocks (y.linear, x)", 'node "blocks.0"'),
        ("call blocks (y.linear)", "call blocks", 'node "blocks.0"'),
        ("call blocks (y.linear)", "call blocks takes (p <- y) (y.linear)", "the end of the line must stand here, not"),
        ("call blocks (y.linear)", "call blocks (y.linear) takes (p <- y)", 'node "blocks.0", field "names"'),
    ],
)
def test_a_mistake_in_text_is_reported_with_its_place(old: str, new: str, said: str) -> None:
    assert old in TEXT
    assert parse_text(TEXT)
    with pytest.raises(UnreadableGraph) as caught:
        parse_text(TEXT.replace(old, new, 1))
    assert said in str(caught.value)


def test_a_mistake_in_text_names_what_could_stand_in_plain_words() -> None:
    said = {
        "router r(a=1 b=2)": '")" or "," or ".." or ";" or "]"',
        "decision p by r (a, b) x": '"->" or "as" or "facts" or "lowering" or "once" or "records" or "takes"',
        "text r(a=+)": '"[" or "`" or "false" or "true" or a number or a string',
    }
    for content, words in said.items():
        with pytest.raises(UnreadableGraph) as caught:
            parse_text(f"model m() {{\n  y = {content}\n}}")
        assert words in str(caught.value), content


def test_every_terminal_is_called_by_a_plain_word() -> None:
    for terminal in (each for each in grammar().terminals if each.name not in grammar().ignore_tokens):
        word = word_of(terminal)
        letters = re.fullmatch(r'[a-z ]+|"([a-z ]+|[^a-z\\s]+)"', word)
        assert letters, f"{terminal.name} is called {word}"


def test_a_text_that_ends_too_early_is_reported() -> None:
    with pytest.raises(UnreadableGraph, match="ends before the model's closing brace"):
        parse_text(TEXT.removesuffix("\n}"))


def test_two_outputs_of_one_label_are_refused() -> None:
    line = TEXT.splitlines()[-2]
    with pytest.raises(UnreadableGraph, match=r'node "output.y2", field "label": another output is called y'):
        parse_text(TEXT.replace(line, f"{line}\n{line.replace('output.y', 'output.y2')}"))


@some_examples(150)
@given(at=st.integers(0, len(TEXT)), cut=st.integers(0, 3), put=st.text('x:=<-(){}[]3. \n"§', max_size=2))
def test_a_damaged_text_is_unreadable_or_a_graph(at: int, cut: int, put: str) -> None:
    try:
        graph = parse_text(TEXT[:at] + put + TEXT[at + cut :])
    except UnreadableGraph as reason:
        assert str(reason)
    else:
        assert parse_text(str(graph)) == graph


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"format": 9}, f'field "format": 9 is not {FORMAT}, the format that this version reads: train or export'),
        ({"format": 1}, 'field "format": 1 is not'),
        ({"format": str(FORMAT)}, f"'{FORMAT}' is not {FORMAT}"),
        (
            {"nodes": [{"name": "x", "kind": "input", "types": [{"dtype": "float", "shape": [{"size": 2}]}]}]},
            "name is missing",
        ),
    ],
)
def test_what_is_no_graph_of_a_known_format_is_reported_with_the_field(changed: dict[str, Any], message: str) -> None:
    record = json.loads(json.dumps(to_json(loads(SEQUENCE).ir)))
    with pytest.raises(UnreadableGraph) as error:
        from_json({**record, **changed})
    assert message in str(error.value)


def test_a_pool_shares_the_axis_of_a_pool_as_large() -> None:
    pools = "pool p[2] = linear(4) pool q[p] = linear(4)"
    text = f"model m() {{ input x: float[4] {pools} y = x -> q z = x -> p output y output z }}"
    record = json.loads(json.dumps(to_json(loads(text).ir)))
    for change in ({"size": 3}, {"shares": "x"}):
        nodes = [{**node, **change} if node["name"] == "q" else node for node in record["nodes"]]
        with pytest.raises(UnreadableGraph) as error:
            from_json({**record, "nodes": nodes})
        assert (error.value.node, error.value.field) in {("q", "shares"), ("y.q", "types")}
