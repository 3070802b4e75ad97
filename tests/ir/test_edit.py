"""Edits of graphs: undone they leave no trace, what they give is a graph, and they are stored and told."""

from __future__ import annotations

import json
from functools import cache

import pytest
from hypothesis import given, settings
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
    replayed,
    to_json,
    verify,
    weights_of,
)
from modgraph.program import loads
from tests.examples import GRU, NOVEL

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
    before = Freeze(("*.bias",)).applied(graph_of("novel"))
    assert Freeze(("*",)).applied(before) == before


@given(graphs_and_edits())
@settings(max_examples=15, deadline=None)
def test_what_is_undone_was_never_done(case: tuple[Graph, list[Edit]]) -> None:
    graph, edits = case
    back: list[Edit] = []
    now = graph
    for edit in edits:
        assert edit_from_json(json.loads(json.dumps(edit.as_json()))) == edit
        assert str(edit) in edit.told(now)
        undone = edit.undone(now)
        after = edit.applied(now)
        verify(after)
        assert replayed(after, undone).hash() == now.hash()
        for each in undone:  # and what undoes is an edit like any other
            assert edit_from_json(each.as_json()) == each
            again = each.undone(after)
            assert replayed(each.applied(after), again).hash() == after.hash()
            after = each.applied(after)
        back = [*undone, *back]
        now = edit.applied(now)
    stored = from_json(to_json(now))
    assert stored.hash() == replayed(graph, edits).hash()
    assert replayed(stored, back).hash() == graph.hash()


def test_a_pool_that_shrinks_below_what_was_added_comes_back_as_it_was() -> None:
    graph = Grow("blocks.1.adapter").applied(graph_of("novel"))
    edit = Shrink("blocks.1.adapter", 2)
    assert replayed(edit.applied(graph), edit.undone(graph)).hash() == graph.hash()


def test_a_freeze_leaves_nothing_to_learn_but_what_it_spares() -> None:
    grown = Grow("blocks.1.adapter").applied(graph_of("novel"))
    assert {pool.name for pool in grown.pools().values() if pool.grown} == {"blocks.1.adapter", "blocks.1.descriptor"}
    frozen = Freeze(("logits.*",)).applied(grown)
    assert {weight.name for weight in weights_of(frozen) if not weight.frozen} == {
        "logits.linear.weight",
        "logits.linear.bias",
    }
    assert not any(pool.grown for pool in frozen.pools().values())
    again = Grow("blocks.1.adapter").applied(frozen)
    new = {weight.name for weight in weights_of(again) if not weight.frozen} - {
        "logits.linear.weight",
        "logits.linear.bias",
    }
    assert new == {weight.name for weight in weights_of(again) if ".3." in weight.name}


def test_edits_tell_what_they_do_both_ways() -> None:
    graph = graph_of("novel")
    grow = Grow("blocks.1.adapter")
    assert grow.told(graph) == (
        "grow blocks.1.adapter by 1: 2 → 3; pools blocks.1.adapter, blocks.1.descriptor; "
        "weights blocks.1.r.scores.linear.weight, blocks.1.r.scores.linear.bias"
    )
    (undone,) = grow.undone(graph)
    assert undone.told(grow.applied(graph)).startswith("shrink blocks.1.adapter by 1: 3 → 2; ")
    (mark,) = Freeze().undone(grow.applied(graph))
    assert isinstance(mark, Mark)
    assert "blocks.1.adapter 1 of the last count as added, not 0" in mark.told(Freeze().applied(grow.applied(graph)))


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
