"""Axes that a type gives a name: what they mean, where their names stand, how classes grow, what is told of them."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from modgraph.backends.torch import build
from modgraph.diagnostics import ModgraphError
from modgraph.inspect.diff import apply_diff, compare
from modgraph.ir import (
    Freeze,
    Graph,
    Grow,
    Shrink,
    TargetNode,
    UnreadableGraph,
    find_module_axes,
    from_json,
    grow,
    replay_edits,
    to_json,
    verify,
    weights_of,
)
from modgraph.ir.text.parse import parse_text
from modgraph.program import loads
from modgraph.types import Misfit
from tests.ordinary_run import some_examples

SPEC = """
block head(classes) {
  input h: float[dim]
  output y = h -> linear(classes)
}
model named(n=3, dim=6) {
  input  x: float[time, dim]
  target label: class[KIND]
  target each: class[time, LATER]
  weight prototype: float[LATER, dim] = normal(0.5)
  state  seen: float[LATER] = zeros
  pool   p[2] = linear(dim) -> relu -> linear(LATER)
  h = x -> mean
  near = (prototype, h) -> contract(axis=-1)
  logits = near + (h -> head(LATER)) + (h -> linear(LATER)) + (x -> p -> mean(axis="time") -> mean(axis=-2))
  next seen = seen + (logits -> softmax -> batch_mean)
  output logits
  output score = (logits - seen) -> max(axis=-1)
  loss cross_entropy(logits, label)
  loss cross_entropy(x -> linear(LATER), each)
}
"""
NAMED = SPEC.replace("KIND", "kind=n").replace("LATER", "kind")
PLAIN = SPEC.replace("KIND", "n").replace("LATER", "n")
ALONG = {
    "prototype": 0,
    "seen.value": 0,
    "logits.head.y.linear.weight": 0,
    "logits.head.y.linear.bias": 0,
    "logits.linear.weight": 0,
    "logits.linear.bias": 0,
    "loss.cross_entropy2.linear.weight": 0,
    "loss.cross_entropy2.linear.bias": 0,
    **{f"p.{module}.linear2.{part}": 0 for module in range(2) for part in ("weight", "bias")},
}


@cache
def graph_of(text: str = NAMED, **parameters: int) -> Graph:
    return loads(text, **parameters).ir


@given(st.integers(1, 6), st.integers(0, 2**16))
@some_examples(10)
def test_a_name_changes_no_number(n: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    batch = {
        "x": torch.randn(4, 5, 6, generator=generator),
        "label": torch.randint(n, (4,), generator=generator),
        "each": torch.randint(n, (4, 5), generator=generator),
        "time_length": torch.randint(1, 6, (4,), generator=generator),
    }
    named, plain = (build(graph_of(text, n=n), seed).compute(batch) for text in (NAMED, PLAIN))
    assert named.outputs.keys() == plain.outputs.keys()
    assert all(value.equal(plain.outputs[name]) for name, value in named.outputs.items())
    assert all(value.equal(plain.losses[name]) for name, value in named.losses.items())


def test_values_weights_and_labels_know_the_axis() -> None:
    graph = graph_of()
    assert str(graph.type_of(graph.outputs["logits"])) == "float[kind=3]"
    assert str(graph.target_types["each"]) == "class[time, kind=3]"
    assert {name: along.axis for name, along in find_module_axes(graph).items() if along.name == "kind"} == ALONG
    assert {along.old for along in find_module_axes(graph).values() if along.name == "kind"} == {3}


def test_text_and_json_read_back() -> None:
    for graph in (graph_of(), grow(graph_of(), "kind", 2)):
        assert from_json(to_json(graph)) == graph
        assert parse_text(str(graph)) == graph
    assert "label: class[kind=5] = target grown 2" in str(grow(graph_of(), "kind", 2))


def test_graphs_of_before_there_were_names_read_as_they_were() -> None:
    record = to_json(graph_of(PLAIN))
    assert not any(
        "of" in type_ for node in record["nodes"] for type_ in node.get("types", ()) if type_["dtype"] == "class"
    )
    assert from_json(record).hash() == graph_of(PLAIN).hash()


def test_classes_grow_and_every_weight_along_them() -> None:
    before, after = graph_of(), grow(graph_of(), "kind", 2)
    verify(after)
    assert {target.name: target.grown for target in after.nodes_of(TargetNode)} == {"label": 2, "each": 2}
    shapes = {weight.name: weight.shape for weight in weights_of(after)}
    for weight in weights_of(before):
        expected = list(weight.shape)
        if weight.name in ALONG:
            expected[ALONG[weight.name]] += 2
        assert shapes[weight.name] == tuple(expected)
    assert {along.old for along in find_module_axes(after).values() if along.name == "kind"} == {3}
    merged = Freeze(("*",)).apply(after)
    assert merged == graph_of(n=5)  # as a spec of that size is


@given(st.lists(st.sampled_from([Grow("kind"), Grow("kind", 3), Grow("p"), Freeze(), Freeze(("seen.*",))]), max_size=4))
@some_examples(10)
def test_growth_of_classes_is_undone_without_a_trace(edits: list[Grow | Freeze]) -> None:
    graph = graph_of()
    for edit in edits:
        after = edit.apply(graph)
        assert replay_edits(after, edit.invert(graph)).hash() == graph.hash()
        graph = after


def test_classes_that_shrink_below_what_was_added_come_back_as_they_were() -> None:
    graph = Grow("kind").apply(graph_of())
    edit = Shrink("kind", 2)
    assert replay_edits(edit.apply(graph), edit.invert(graph)).hash() == graph.hash()


def test_a_weight_along_two_growing_axes_grows_only_along_the_first() -> None:
    graph = loads(
        "model m() { input x: float[4] target label: class[kind=3] pool q[2] = linear(4) "
        "weight w: float[q, kind, 4] = zeros logits = (w, x -> q) -> contract(axis=-1) -> mean(axis=q) "
        "output logits loss cross_entropy(logits, label) }"
    ).ir
    assert str(grow(graph, "q", 1).type_of(graph.outputs["logits"])) == "float[kind=3]"
    with pytest.raises(Misfit, match="w lies along q and kind"):
        grow(graph, "kind", 1)


def test_a_pool_may_have_a_module_for_each_class() -> None:
    text = (
        "model m(n=3) { input x: float[5, 4] target label: class[kind=n] pool judge[kind] = linear(4) -> mean(axis=-1) "
        "logits = x -> mean -> judge output logits loss cross_entropy(logits, label) }"
    )
    graph = loads(text).ir
    assert str(graph.type_of(graph.outputs["logits"])) == "float[kind=3]"
    grown = grow(graph, "kind", 1)
    assert grown.pools()["judge"].size == 4
    assert Freeze(("*",)).apply(grown) == loads(text, n=4).ir


def test_a_difference_names_more_classes_and_leads_there() -> None:
    before, after = graph_of(), grow(graph_of(), "kind", 1)
    found = compare(before, after)
    assert not found.added and not found.removed and not found.moved
    assert apply_diff(found, before) == after


def model(body: str) -> str:
    return f"model m() {{ input x: float[5, 4] {body} output x }}"


def loss(body: str) -> str:
    return model(f"target label: class[kind=3] {body}")


SOUND = [
    "input y: float[place=5, 4] z = y -> mean -> linear(place) output z",
    "input y: float[place=5, 4] input z: float[place=5, 4] output y2 = y + z",
    "input y: float[place=5, 4] weight w: float[place] = ones output y2 = y -> mean(axis=-1) -> (linear(len(place)))",
    "pool p[2] = linear(3) input y: float[p=2, 4] output y2 = y -> p",
    "for k in 0..2 { target label[k]: class[kind=2 + k] s[k] = x -> mean -> linear(kind) "
    "loss task[k] = cross_entropy(s[k], label[k]) output s[k] } output last = x -> mean -> linear(kind[1])",
    "if true { target label: class[kind=3] loss cross_entropy(x -> mean -> linear(kind), label) } "
    "output y = x -> mean -> linear(kind)",
    "constant c: float[way=2, 4] = 1 output y = (c, x -> mean) -> contract(axis=-1) -> softmax(axis=way)",
    "repeat layer[i] in 0..2 { weight w: float[slot=3 + i, 4] = zeros "
    "x = x + ((x, w) -> contract(axis=-1) -> linear(4)) }",
    "scan x as v with h: float[cell=3] { h = h + (v -> linear(cell)) yield h } as s output s",
]


@pytest.mark.parametrize("body", SOUND)
def test_a_name_stands_where_a_pool_may(body: str) -> None:
    graph = loads(model(body)).ir
    assert parse_text(str(graph)) == graph


LINES = ('h = x -> linear(6) -> unmerge([2, 3], into=["head", ""])', "weight w: float[head=2, 3] = ones")


@pytest.mark.parametrize("lines", [LINES, LINES[::-1]], ids=["first a string", "first a type"])
def test_in_a_block_a_string_and_a_type_name_one_axis_in_any_order(lines: tuple[str, str]) -> None:
    text = f"block b() {{ input x: float[tokens, dim] {' '.join(lines)} output y = (h, w) -> contract }}"
    graph = loads(f"{text} model m() {{ input x: float[time, 4] output y = x -> b output z = x -> b }}").ir
    for name in "yz":
        found = graph.type_of(graph.outputs[name]).shape
        assert [axis.size for axis in found] == [None, 2], f"the heads of h and w are not aligned: {found}"


MISTAKES = {
    model("input y: float[place=4] input z: float[place=5]"): ("MG257", "5 here, but 4 elsewhere"),
    model("input y: float[place] input z: float[place=5]"): ("MG257", "of any length elsewhere"),
    model("pool p[2] = linear(3) y = x -> p -> mean -> mean input z: float[p=3]"): ("MG257", "2 elsewhere"),
    model("y = x -> mean input z: float[y=3]"): ("MG208", "twice"),
    loss("kind = x"): ("MG208", "twice"),
    model("input y: float[place=0]"): ("MG303", "an axis cannot be 0"),
    model("input y: float[place=x]"): ("MG213", "must be a constant"),
    model("input y: token[word=5]"): ("MG303", "its vocabulary"),
    model("target label: class[time]"): ("MG303", "number of classes"),
    loss("y = x -> mean -> linear(2 * kind)"): ("MG215", "len(AXIS)"),
    loss("repeat b[i] in 0..kind { }"): ("MG213", "len(kind)"),
    loss("loss cross_entropy(x -> mean -> linear(4), label)"): ("MG301", "4 logits for a label of 3 classes"),
    loss("pool p[3] = linear(2) loss cross_entropy(x -> mean -> linear(p), label)"): ("MG301", "linear(kind)"),
    loss("pool p[kind] = linear(2) grow p[1] y = x -> p"): ("MG228", "the axis of a type"),
    "block b() { input x: float[tokens=5, dim] output x } model m() { input x: float[5, 4] y = x -> b output y }": (
        "MG303",
        "leave the length out: tokens",
    ),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_name_that_cannot_be_is_reported_with_a_way_out(text: str) -> None:
    code, words = MISTAKES[text]
    with pytest.raises(ModgraphError) as caught:
        loads(text)
    assert caught.value.diagnostics[0].code == code
    assert words in str(caught.value)


def test_a_stored_axis_of_two_lengths_is_refused() -> None:
    record = to_json(graph_of())
    (entry,) = (node for node in record["nodes"] if node["name"] == "each")
    record["nodes"].remove(entry)
    entry["types"][0]["size"] = 4
    record["nodes"] = [
        node
        for node in record["nodes"]
        if "each" not in str(node.get("inputs")) and node["name"] != "loss.cross_entropy2"
    ]
    record["nodes"].append(entry)
    with pytest.raises(UnreadableGraph, match="kind is 3 elsewhere, not 4"):
        from_json(record)


@pytest.mark.parametrize(("name", "grown", "reason"), [("label", 3, "from 0 to 2"), ("x", 1, "not known here")])
def test_a_stored_target_that_lies_is_refused(name: str, grown: int, reason: str) -> None:
    record = to_json(graph_of())
    (entry,) = (node for node in record["nodes"] if node["name"] == name)
    entry["grown"] = grown
    with pytest.raises(UnreadableGraph, match=reason):
        from_json(record)
