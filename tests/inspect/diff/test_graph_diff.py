"""Diffs of generated models: the edit leads there, equal graphs give none, other names are moves."""

from __future__ import annotations

import re
from random import Random
from typing import Any

from hypothesis import assume, example, given
from hypothesis import strategies as st

from modgraph.diagnostics import ModgraphError, Report, Source
from modgraph.inspect.diff import Fate, Side, apply_diff, compare, compare_sides, list_weights_after
from modgraph.inspect.diff.architecture_diff import drop_router_bodies
from modgraph.inspect.diff.text import Item, Line, Move, find_moves_of, fold, lines_of
from modgraph.inspect.diff.words import Keys, details
from modgraph.ir import Graph, from_json, to_json, weights_of
from modgraph.program import loads
from modgraph.syntax.format import format_source
from tests.assault.sound import sound
from tests.ordinary_run import some_examples

NUMBERS = st.integers(0, 10**6)
DECLARED = re.compile(r"\b(?:pool|router|module|tokenizer|repeat|input|model|block) (\w+)|^\s*(\w+) =", re.M)


def model_of(number: int) -> tuple[str, Graph]:
    """A sound model and its graph; one in a hundred is refused for its size."""
    rng = Random(number)
    while True:
        text = sound(rng)
        if (graph := graph_of(text)) is not None:
            return text, graph


def graph_of(text: str) -> Graph | None:
    try:
        return loads(text).ir
    except ModgraphError:
        return None


def variants(text: str, rng: Random) -> list[Graph]:
    """Graphs of the text with a number more, or without a line."""
    found = []
    for _ in range(3):
        number = rng.choice([*re.finditer(r"\b\d+\b", text)])
        found.append(text[: number.start()] + str(int(number[0]) + 1) + text[number.end() :])
        lines = text.split("\n")
        del lines[rng.randrange(1, len(lines))]
        found.append("\n".join(lines))
    return [graph for graph in map(graph_of, found) if graph is not None]


def renamed(text: str, rng: Random) -> str:
    """The text with all that it declares under other names, half of the time those of each other."""
    names = sorted({name for found in DECLARED.findall(text) for name in found if name})
    others = rng.sample(names, len(names)) if rng.random() < 0.5 else [f"other_{name}" for name in names]
    by_name = dict(zip(names, others, strict=True))
    return re.sub(r"\b\w+\b", lambda word: by_name.get(word[0], word[0]), text)


@given(NUMBERS, NUMBERS)
@some_examples(30)
def test_the_edit_leads_from_one_graph_to_the_other(first: int, second: int) -> None:
    (text, before), (_, other) = model_of(first), model_of(second)
    for after in [other, *variants(text, Random(second))]:
        diff = compare(before, after)
        assert apply_diff(diff, before).hash() == after.hash()
        assert bool(diff) == (before != after)


@given(NUMBERS, NUMBERS)
@some_examples(20)
def test_the_way_back_is_the_same_in_kind(first: int, second: int) -> None:
    (text, before), (_, other) = model_of(first), model_of(second)
    for after in [other, *variants(text, Random(second))]:
        there, back = compare(before, after), compare(after, before)
        assert {each.place for each in there.added} == {each.place for each in back.removed}
        assert {each.place for each in there.removed} == {each.place for each in back.added}
        assert pairs(there.moved) == {pair[::-1] for pair in pairs(back.moved)}
        assert pairs(there.changed) == {pair[::-1] for pair in pairs(back.changed)}


def pairs(changes: tuple[Any, ...]) -> set[tuple[str, str]]:
    return {(each.before, each.after) for each in changes}


@given(NUMBERS)
@some_examples(30)
def test_other_names_are_moves(number: int) -> None:
    text, before = model_of(number)
    after = graph_of(renamed(text, Random(number)))
    assume(after is not None)
    diff = compare(before, after)
    assert not (diff.added or diff.removed or diff.changed)
    assert apply_diff(diff, before).hash() == after.hash()


@example(42851)  # two scans that are both told the lengths of an axis around them
@given(NUMBERS)
@some_examples(20)
def test_the_layout_of_a_text_is_no_difference(number: int) -> None:
    text, before = model_of(number)
    formatted = format_source(Source("t.mod", text), Report())
    assert not compare(before, loads(formatted).ir)
    assert not compare(before, from_json(to_json(before)))


def spec(body: str) -> Graph:
    return loads(f"model m() {{ input x: float[4] {body} output y }}").ir


def test_the_order_of_statements_is_no_difference() -> None:
    first = spec("module a = linear(3) module b = linear(3) y = (x -> a) + (x -> b)")
    assert not compare(first, spec("module b = linear(3) module a = linear(3) y = (x -> a) + (x -> b)"))


def test_attributes_are_reported_one_by_one() -> None:
    before = spec("y = x -> linear(8) -> dropout(0.1)")
    second, first = compare(before, spec("y = x -> linear(6, bias=false) -> dropout(0.1)")).changed
    assert first.after == "y.linear" and second.follows
    assert [(each.name, each.before, each.after) for each in first.attributes if each.name != "types.0"] == [
        ("settings.width", 8, 6),
        ("settings.bias", True, False),
    ]


def test_names_that_go_round_are_moves() -> None:
    before = spec("module a = linear(3) module b = linear(5) -> linear(3) y = (x -> a) + (x -> b)")
    after = spec("module b = linear(3) module a = linear(5) -> linear(3) y = (x -> b) + (x -> a)")
    diff = compare(before, after)
    assert not (diff.added or diff.removed or diff.changed)
    assert ("y.a.linear", "y.b.linear") in pairs(diff.moved)


def test_a_repeat_that_begins_later_is_one_move() -> None:
    text = "y = x repeat blocks[i] in {} {{ y = y + (y -> linear(4) -> relu) }}"
    graphs = spec(text.format("0..6")), spec(text.format("1..7"))
    diff = compare(*graphs)
    assert not (diff.added or diff.removed or diff.changed)
    assert find_moves_of(diff.moved, Keys(*graphs)) == [Move("blocks.0-5", "blocks.1-6", 18)]


def test_a_renamed_pool_is_one_move_with_its_router_changed() -> None:
    text = "pool {0}[3] = linear(4) router gate = cosine({1}, width=2) y = x -> {0} by gate"
    graphs = spec(text.format("expert", 1)), spec(text.format("adapter", 2))
    diff = drop_router_bodies(compare(*graphs), *graphs)
    assert pairs(diff.moved) == {("expert", "adapter"), ("y.expert", "y.adapter")}
    assert [(each.after, [*details(each.attributes)]) for each in diff.changed] == [("gate", ["k: 1 → 2"])]
    assert not (diff.added or diff.removed)


def test_what_users_call_a_use_moves_with_its_loop_and_its_pool() -> None:
    text = (
        "pool {0}[3] = linear(4) router r = cosine(width=2) y = x repeat {1}[i] in 0..2 {{ y = y + (y -> {0} by r) }}"
    )
    graphs = spec(text.format("expert", "layer")), spec(text.format("adapter", "stage"))
    diff = compare(*graphs)
    assert not (diff.added or diff.removed or diff.changed)
    assert ("layer.1.expert", "stage.1.adapter") in pairs(tuple(each for each in diff.moved if each.kind == "label"))
    assert apply_diff(diff, graphs[0]).hash() == graphs[1].hash()


def test_what_is_doubtful_is_named_with_what_settles_it() -> None:
    text = "pool {0}[{1}] = linear(4) router gate = cosine(width=2) y = x -> {0} by gate"
    before, after = spec(text.format("expert", 3)), spec(text.format("adapter", 4))
    diff = drop_router_bodies(compare(before, after), before, after)
    assert [each.declaration for each in diff.doubts] == ["moved expert -> adapter"]
    settled = compare(before, after, {"expert": "adapter"})
    assert ("expert", "adapter") in pairs(settled.moved) and not settled.doubts
    assert [each.name for change in settled.changed if change.kind == "pool" for each in change.attributes] == ["size"]
    assert apply_diff(settled, before).hash() == after.hash()


def test_declared_moves_go_for_all_that_lies_below_and_follow_each_other() -> None:
    text = "y = x repeat {0}[i] in 0..2 {{ y = y -> linear({1}) }}"
    before, after = spec(text.format("blocks", 4)), spec(text.format("layers", 5))
    diff = compare(before, after, {"blocks": "stages", "stages": "layers"})
    assert pairs(diff.moved) == {(f"blocks.{at}.y.linear", f"layers.{at}.y.linear") for at in range(2)}
    assert not (diff.added or diff.removed)


def test_weights_are_kept_moved_reshaped_new_or_dropped() -> None:
    before = spec("module a = linear(3) h = x -> a pool p[3] = linear(2) y = h -> p -> flatten -> linear(5)")
    after = spec("module b = linear(3) h = x -> b pool p[4] = linear(2) y = h -> p -> flatten -> linear(5)")
    fates = {each.latest.name: each.fate for each in list_weights_after(compare(before, after), before, after)}
    assert fates["b.linear.weight"] is Fate.MOVED
    assert fates["p.2.linear.weight"] is Fate.KEPT
    assert fates["p.3.linear.weight"] is Fate.NEW
    assert fates["y.linear.weight"] is Fate.RESHAPED and fates["y.linear.bias"] is Fate.KEPT
    back = {each.latest.name: each.fate for each in list_weights_after(compare(after, before), after, before)}
    assert back["p.3.linear.weight"] is Fate.DROPPED


def test_the_axis_of_a_pool_that_goes_may_be_named_by_an_op() -> None:
    pool = 'pool p[3] = linear(4) w = x -> linear(3) -> unmerge([3], into=["p"]) z = x -> linear(4) -> p by w over p'
    before, after = spec(f"{pool} y = z -> linear(4)"), spec("y = x -> linear(4)")
    fates = {each.latest.name: each.fate for each in list_weights_after(compare(before, after), before, after)}
    assert fates["p.0.linear.weight"] is Fate.DROPPED, "what is gone has no weights after"


@given(NUMBERS, NUMBERS)
@some_examples(30)
def test_every_weight_has_one_fate(first: int, second: int) -> None:
    text, before = model_of(first)
    for after in variants(text, Random(second)):
        found = list_weights_after(compare(before, after), before, after)
        assert sorted(each.before.name for each in found if each.before) == sorted(w.name for w in weights_of(before))
        assert sorted(each.after.name for each in found if each.after) == sorted(w.name for w in weights_of(after))


def test_a_declared_move_of_a_module_goes_for_its_weights() -> None:
    before, after = spec("module a = linear(3) y = x -> a -> relu"), spec("module b = linear(5) y = x -> b")
    assert compare(before, after).removed and not compare(before, after).moved
    diff = compare(before, after, {"a": "b"})
    assert pairs(diff.moved) == {("y.a.linear", "y.b.linear"), ("a.linear", "b.linear")}
    assert {each.fate for each in list_weights_after(diff, before, after)} == {Fate.RESHAPED}


def test_a_block_is_found_again_by_its_definition() -> None:
    text = "block {0}(d) {{ input x: float[d] y = x -> linear(8) -> relu -> linear(d) -> {2} output y }} model m() {{ "
    text += "input x: float[4] y = x {1} y = y -> {0}(4) -> {0}(4) output y }}"
    before = loads(text.format("ffn", "-> linear(4)", "tanh")).ir
    renamed = compare(before, loads(text.format("mlp", "-> relu", "tanh")).ir)
    assert ("y2.ffn.y.linear", "y2.mlp.y.linear") in pairs(renamed.moved), "equal content, elsewhere"
    similar = compare(before, after := loads(text.format("mlp", "-> linear(4)", "gelu")).ir)
    assert ("y2.ffn.y.linear2", "y2.mlp.y.linear2") in pairs(similar.moved), "most of the content"
    assert not any(each.kind == "op" and "linear" in each.place for each in (*similar.added, *similar.removed))
    assert apply_diff(similar, before).hash() == after.hash()


def test_what_is_the_same_but_for_keys_is_reported_once() -> None:
    loops = 'repeat t in ["a", "b"] { h[t] = x repeat i in 0..3 { h[t] = h[t] -> linear(4) } }'
    graph = spec(f'{loops} y = h["a"] + h["b"]')
    places = [node.name for node in graph if node.kind == "op" and "linear" in node.name]
    read = {place: graph.inputs(place)["x"].node for place in places}

    def item(place: str) -> Item:
        return place, lambda at, say: Line("+", "op", at, say(read[place]))

    lines = fold(map(item, places), Keys(graph))
    assert [(line.place, line.count, line.what) for line in lines] == [
        ("t.{a, b}.i.0.h.*.linear", 2, "x"),
        ("t.{a, b}.i.{1, 2}.h.*.linear", 4, "t.*.i[-1].h.*.linear"),
    ]


def test_a_change_of_a_block_is_reported_once_for_all_its_uses() -> None:
    text = (
        "block ffn(d) {{ input x: float[d] y = x -> linear({}) -> linear(d) output y }} model m() {{ input x: float[4] "
    )
    text += "left = x -> ffn(4) right = x -> ffn(4) repeat i in 0..2 {{ left = left -> ffn(4) }} "
    text += "y = left + right output y }}"
    sides = [Side(f"{width}.mod", "spec", loads(text.format(width)).ir) for width in (8, 6)]
    lines = [(line.place, line.count) for line in lines_of(compare_sides(sides[0], sides[1], {}, {}))]
    assert lines == [("i.{0, 1}.left.ffn.y.linear", 2), ("{left.ffn, right.ffn}.y.linear", 2)], "once in each body"


def test_an_operand_that_becomes_a_constant_stands_in_one_line_with_the_other() -> None:
    body = 'input x: float[5] w = x -> linear(5, name="w") y = {} * (x -> linear(5, name="k")) output y output w'
    old, new = (loads(f"model m() {{ {body.format(factor)} }}") for factor in ("w", 2))
    for before, after, operands in ((old, new, "w, k → 2.0, k"), (new, old, "2.0, k → w, k")):
        (line,) = [line for line in lines_of(before.diff(after)) if line.place == "y.multiply"]
        assert line.details == (f"operands: {operands}",)
