"""Edits of graphs: undone they leave no trace, what they give is a graph, and they are stored and told."""

from __future__ import annotations

import json
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modgraph.ir import (
    Edit,
    Freeze,
    Graph,
    Grow,
    InvalidGraph,
    Mark,
    Shrink,
    edit_from_json,
    from_json,
    replay_edits,
    to_json,
    verify,
    weights_of,
)
from modgraph.program import loads
from tests.examples import GRU, NOVEL
from tests.ordinary_run import some_examples

SPECS = {
    "scan": (GRU, ("transition",)),
    "novel": (NOVEL, ("blocks.0.adapter", "blocks.1.adapter", "blocks.1.descriptor")),
}


@cache
def graph_of(name: str) -> Graph:
    return loads(SPECS[name][0]).ir


@st.composite
def graphs_and_edits(draw: st.DrawFn) -> tuple[Graph, list[Edit]]:
    name = draw(st.sampled_from(sorted(SPECS)))
    weights = sorted({weight.name for weight in weights_of(graph_of(name))})
    patterns = st.lists(st.sampled_from([*weights, "*", "*.bias", "logits.*"]), max_size=2).map(tuple)
    keeps = st.lists(st.sampled_from(SPECS[name][1]), max_size=2).map(tuple)
    grow = st.builds(Grow, st.sampled_from(SPECS[name][1]), st.integers(1, 2))
    edits = draw(st.lists(grow | st.builds(Freeze, patterns, keeps), min_size=1, max_size=4))
    return graph_of(name), [*edits]


def test_what_is_frozen_stays_so_whatever_is_spared() -> None:
    before = Freeze(("*.bias",)).apply(graph_of("novel"))
    assert Freeze(("*",)).apply(before) == before


@given(graphs_and_edits())
@some_examples(15)
def test_what_is_undone_was_never_done(case: tuple[Graph, list[Edit]]) -> None:
    graph, edits = case
    back: list[Edit] = []
    now = graph
    for edit in edits:
        assert edit_from_json(json.loads(json.dumps(edit.as_json()))) == edit
        undone = edit.invert(now)
        after = edit.apply(now)
        verify(after)
        assert replay_edits(after, undone).hash() == now.hash()
        for each in undone:  # and what undoes is an edit like any other
            assert edit_from_json(each.as_json()) == each
            again = each.invert(after)
            assert replay_edits(each.apply(after), again).hash() == after.hash()
            after = each.apply(after)
        back = [*undone, *back]
        now = edit.apply(now)
    stored = from_json(to_json(now))
    assert stored.hash() == replay_edits(graph, edits).hash()
    assert replay_edits(stored, back).hash() == graph.hash()


def test_a_pool_that_shrinks_below_what_was_added_comes_back_as_it_was() -> None:
    graph = Grow("blocks.1.adapter").apply(graph_of("novel"))
    edit = Shrink("blocks.1.adapter", 2)
    assert replay_edits(edit.apply(graph), edit.invert(graph)).hash() == graph.hash()


def test_a_freeze_leaves_nothing_to_learn_but_what_it_spares() -> None:
    grown = Grow("blocks.1.adapter").apply(graph_of("novel"))
    assert {pool.name for pool in grown.pools().values() if pool.grown} == {"blocks.1.adapter", "blocks.1.descriptor"}
    frozen = Freeze(("logits.*",)).apply(grown)
    assert {weight.name for weight in weights_of(frozen) if not weight.frozen} == {
        "logits.linear.weight",
        "logits.linear.bias",
    }
    assert not any(pool.grown for pool in frozen.pools().values())
    again = Grow("blocks.1.adapter").apply(frozen)
    new = {weight.name for weight in weights_of(again) if not weight.frozen} - {
        "logits.linear.weight",
        "logits.linear.bias",
    }
    assert new == {weight.name for weight in weights_of(again) if ".3." in weight.name}


def test_edits_are_named_by_what_they_do() -> None:
    edits = (Grow("blocks.1.adapter"), Freeze(("logits.*",)), Freeze(), Mark(frozenset({"a"})))
    assert [*map(str, edits)] == [
        "grow blocks.1.adapter by 1",
        "freeze all but logits.*",
        "freeze all",
        "mark 1 nodes as frozen",
    ]


@pytest.mark.parametrize(
    "record",
    [
        None,
        {},
        {"edit": "fold"},
        {"edit": "grow", "axis": "p"},
        {"edit": "grow", "axis": "p", "by": 0},
        {"edit": "freeze", "but": [], "more": 1},
        {"edit": "mark", "frozen": [], "grown": {"p": -1}},
    ],
)
def test_what_is_no_edit_is_refused(record: object) -> None:
    with pytest.raises(InvalidGraph):
        edit_from_json(record)
