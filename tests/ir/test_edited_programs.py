"""The program of an edited graph: only the definitions along what was edited are copied, and what learns is a table."""

from __future__ import annotations

from collections import Counter

import pytest

from modgraph.ir import Edit, Freeze, Graph, Grow, Mark, Shrink, outline, to_text
from modgraph.program import loads
from tests.ir.same import assert_kept

ROUNDS = """block deep(e) { input x: float[t, d] y = x -> layer_norm -> e -> mean(axis=e) output y }
model m {
  input x: float[5, 8]
  target label: class[kind=4]
  repeat b[i] in 0..4 {
    pool e[3] = linear(8) -> tanh
    x = x + (x -> deep(e)) + (x -> deep(e))
  }
  logits = x -> mean -> linear(kind)
  output logits
  loss cross_entropy(logits, label)
}"""


def graph_of() -> Graph:
    return loads(ROUNDS).ir


def authors(graph: Graph) -> dict[str, int]:
    return dict(Counter(each.author for each in outline(graph).definitions))


def test_the_rounds_are_one_definition() -> None:
    assert authors(graph_of()) == {"deep": 2, "b": 1} or authors(graph_of()) == {"deep": 1, "b": 1}


@pytest.mark.parametrize("edit", [Grow("b.2.e"), Grow("b.2.e", 2), Grow("b.0.e")])
def test_a_pool_that_grows_copies_the_definitions_along_it(edit: Edit) -> None:
    before, graph = graph_of(), edit.apply(graph_of())
    assert {name: 2 * count for name, count in authors(before).items()} == authors(graph)
    assert_kept(graph)
    assert to_text(graph).count("e = deferred pool[") == 2


def test_classes_that_grow_copy_no_definition() -> None:
    graph = Grow("kind").apply(graph_of())
    assert authors(graph) == authors(graph_of())
    assert "target grown 1" in to_text(graph)
    assert_kept(graph)


def test_freezing_one_round_keeps_one_definition() -> None:
    """What is frozen in the first use is said there; a table says what learns, or is frozen, in others."""
    spared = Freeze(("b.2.*", "logits.*")).apply(graph_of())
    assert authors(spared) == authors(graph_of())
    text = to_text(spared)
    head = text[text.index("weights {") : text.index("model m")]
    lines = head.splitlines()[1:-2]
    nodes = ["e/0/linear", "x.deep.y.layer_norm", "x.deep2.y.layer_norm"]
    assert sorted(lines) == [f"  b.2.{node} learns" for node in nodes], head
    assert "linear(width=4, named=" in text and "linear(width=8) frozen" in text
    assert_kept(spared)


def test_only_one_round_is_frozen() -> None:
    graph = graph_of()
    marks = Mark.from_graph(Freeze(tuple(f"{path}.*" for path in ("b.0", "b.2", "b.3", "logits"))).apply(graph))
    frozen = marks.apply(graph)
    assert authors(frozen) == authors(graph)
    table = outline(frozen).weights
    nodes = ["e/0/linear", "x.deep.y.layer_norm", "x.deep2.y.layer_norm"]
    assert {place: dict(marks) for place, marks in table.items()} == {f"b.1.{each}": {"frozen": True} for each in nodes}
    assert_kept(frozen)


def test_what_was_added_to_one_pool_is_in_the_table() -> None:
    grown = graph_of()
    for at in range(4):
        grown = Grow(f"b.{at}.e").apply(grown)
    assert authors(grown) == authors(graph_of())
    kept = Freeze((), ("b.3.e",)).apply(grown)
    assert authors(kept) == authors(graph_of())
    assert dict(outline(kept).weights)["b.3.e"] == {"grown": 1}
    assert "b.3.e grown 1" in to_text(kept)
    assert_kept(kept)


@pytest.mark.parametrize(
    "edit", [Grow("b.1.e"), Grow("kind", 2), Freeze(), Freeze(("b.2.*",)), Freeze(("*.bias",), ("b.1.e",))]
)
def test_an_edit_that_is_undone_leaves_the_text(edit: Edit) -> None:
    for before in (graph_of(), Freeze(("b.1.*",)).apply(graph_of()), Grow("b.3.e").apply(graph_of())):
        after = edit.apply(before)
        for step in edit.invert(before):
            after = step.apply(after)
        assert to_text(after) == to_text(before)


def test_a_pool_that_shrinks_to_its_old_size_is_as_the_others_again() -> None:
    graph = Shrink("b.2.e", 2).apply(Grow("b.2.e", 2).apply(graph_of()))
    assert to_text(graph) == to_text(graph_of())
