"""The forms in which graphs are stored: JSON of one format, and the text."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modgraph.ir import UnreadableGraph, from_json, to_json
from modgraph.ir.json_form import FORMAT
from modgraph.ir.text_parse import grammar, parse_text
from modgraph.passes import INFERENCE, TRAINING, apply_passes
from modgraph.program import loads
from tests.examples import GRU, ROUTERS_IN_SCAN, SEQUENCE, TRANSFORMER, TWO_SCANS


def test_the_grammar_of_the_text_has_no_conflict() -> None:
    assert grammar(strict=True).terminals


@pytest.mark.parametrize("text", [GRU, SEQUENCE, TRANSFORMER, TWO_SCANS, *ROUTERS_IN_SCAN.values()])
@pytest.mark.parametrize("passes", [TRAINING, INFERENCE])
def test_what_passes_give_reads_back_from_text(text: str, passes: tuple[object, ...]) -> None:
    graph = apply_passes(loads(text).ir, passes)  # type: ignore[arg-type]
    assert parse_text(str(graph)) == graph


def test_an_unlowered_route_names_no_form() -> None:
    assert "lowering" not in str(loads(GRU).ir)


WORDS = "graph op route carrying of init grown lowering region over batch float decision text facts records".split()


def test_words_of_the_text_form_are_names_too() -> None:
    """A node, a module, an axis or a parameter may be called as a word of the form."""
    bindings = "\n".join(f'{word} = {before} -> linear(4, name="{word}")' for before, word in pairwise(["x", *WORDS]))
    graph = loads(f"model graph(region=2) {{ input x: float[over, 4] {bindings} output batch }}").ir
    assert parse_text(str(graph)) == graph


TEXT = """graph m() {
  x: float[3] = input
  y: float[4] = op linear(width=4) (x <- x)
  output.y = output y (x <- y)
}"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("= input", "= inpt", "line 2, column 17"),
        ("float[3]", "float[3 4]", 'line 2, column 14: "," or "=" or "]" must stand here'),
        ("(x <- x)", "(x < x)", "line 3, column 39"),
        ("width=4", "width=", "line 3, column 33"),
        ("width=4", "width=§", "line 3, column 33"),
        (" output y (x", " output y x", 'line 4, column 23: "(" must stand here'),
        ("\n}", "", "ends before"),
    ],
)
def test_a_mistake_in_text_is_told_with_its_place(old: str, new: str, said: str) -> None:
    assert old in TEXT
    with pytest.raises(UnreadableGraph) as caught:
        parse_text(TEXT.replace(old, new))
    assert said in str(caught.value)


def test_two_outputs_of_one_label_are_refused() -> None:
    line = TEXT.splitlines()[3]
    with pytest.raises(UnreadableGraph, match=r'node "output.y2", field "label": another output is called y'):
        parse_text(TEXT.replace(line, f"{line}\n{line.replace('output.y', 'output.y2')}"))


@settings(max_examples=150, deadline=None)
@given(at=st.integers(0, len(TEXT)), cut=st.integers(0, 3), put=st.text('x:=<-(){}[]3. \n"§', max_size=2))
def test_a_damaged_text_is_unreadable_or_a_graph(at: int, cut: int, put: str) -> None:
    try:
        graph = parse_text(TEXT[:at] + put + TEXT[at + cut :])
    except UnreadableGraph as reason:
        assert str(reason)
    else:
        assert parse_text(str(graph)) == graph


@pytest.mark.parametrize(
    ("changed", "told"),
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
def test_what_is_no_graph_of_a_known_format_is_told_with_the_field(changed: dict[str, Any], told: str) -> None:
    record = json.loads(json.dumps(to_json(loads(SEQUENCE).ir)))
    with pytest.raises(UnreadableGraph) as error:
        from_json({**record, **changed})
    assert told in str(error.value)


def test_a_pool_shares_the_axis_of_a_pool_as_large() -> None:
    pools = "pool p[2] = linear(4) pool q[p] = linear(4)"
    text = f"model m() {{ input x: float[4] {pools} y = x -> q z = x -> p output y output z }}"
    record = json.loads(json.dumps(to_json(loads(text).ir)))
    for change in ({"size": 3}, {"shares": "x"}):
        nodes = [{**node, **change} if node["name"] == "q" else node for node in record["nodes"]]
        with pytest.raises(UnreadableGraph) as error:
            from_json({**record, "nodes": nodes})
        assert (error.value.node, error.value.field) in {("q", "shares"), ("y.q", "types")}
