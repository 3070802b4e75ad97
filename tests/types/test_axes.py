"""Axes meet by identity: the same, or plain and as long."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import modgraph
from modgraph import ModgraphError
from modgraph.ir import Graph, grow, weights_of
from modgraph.ir.text.parse import parse_text
from modgraph.nn import Arithmetic
from modgraph.ops.arithmetic import Add, Subtract
from modgraph.types import Axis, Misfit, TensorType, align_axes, floats, format_shape

AXES = st.sampled_from([Axis(1), Axis(2), Axis(3), Axis(3, "p"), Axis(3, "q"), Axis(2, "r"), Axis(None, "time")])
SHAPES = st.lists(AXES, max_size=4).map(tuple)
PLAIN = st.lists(st.sampled_from([1, 2, 3]), max_size=4)
POOLS = "pool a[3] = linear(4) pool b[3] = linear(4)"


def sum_of(left: TensorType, right: TensorType) -> TensorType | None:
    try:
        return Add().bind(left, right).results[0]
    except Misfit:
        return None


def graph_of(body: str) -> Graph:
    return modgraph.loads(f"model m() {{ input x: float[4] input w: float[3, 4] {POOLS} {body} output y }}").ir


def type_of(body: str) -> str:
    graph = graph_of(body)
    return str(graph.type_of(graph.outputs["y"]))


@given(SHAPES, SHAPES)
def test_the_order_of_operands_never_changes_a_type(left: Any, right: Any) -> None:
    """But for the order of axes with names that values of one rank have in another order, or do not share."""
    found, other = sum_of(floats(*left), floats(*right)), sum_of(floats(*right), floats(*left))
    if found is not None and other is not None and found != other:
        assert len(left) == len(right) and sorted(map(str, found.shape)) == sorted(map(str, other.shape))
    else:
        assert found == other


@given(SHAPES, SHAPES)
def test_a_sum_has_every_axis_of_both_and_none_twice(left: Any, right: Any) -> None:
    found = sum_of(floats(*left), floats(*right))
    if found is not None:
        names = [axis.name for axis in found.shape if axis.name]
        assert len(set(names)) == len(names)
        assert {*names} == {axis.name for axis in (*left, *right) if axis.name}
        if align_axes(*sorted((left, right), key=len)) is not None:
            assert len(found.shape) == max(len(left), len(right))


LENGTHS = {Axis(2): 2, Axis(3, "p"): 3, Axis(4, "q"): 4, Axis(None, "time"): 5, Axis(None, "key", "time"): 5}
UNLIKE = st.lists(st.sampled_from([*LENGTHS]), max_size=4, unique=True)


@given(UNLIKE, UNLIKE)
@settings(deadline=None)
def test_values_meet_by_the_names_of_their_axes_in_any_order(left: list[Axis], right: list[Axis]) -> None:
    try:
        signature = Subtract().bind(floats(*left), floats(*right))
    except Misfit:
        return
    rng, shape = np.random.default_rng(0), signature.results[0].shape
    x, y = (torch.from_numpy(rng.random((1, *(LENGTHS[axis] for axis in axes)))) for axes in (left, right))
    _, positional, named = signature.constructor()
    found = Arithmetic(*positional, **named)(x, y)
    assert [*found.shape[1:]] == [LENGTHS[axis] for axis in shape]
    for place in np.ndindex(*found.shape[1:]):
        at = dict(zip(shape, place, strict=True))
        expected = x[0][tuple(at[axis] for axis in left)] - y[0][tuple(at[axis] for axis in right)]
        assert found[0][place] == expected, f"{format_shape(tuple(left))} - {format_shape(tuple(right))} at {at}"


JOINED = {
    ("[time]", "[key=time]"): "[time, key=time]",
    ("[key=time]", "[time]"): "[key=time, time]",
    ("[time, 4]", "[key=time, 4]"): "[time, key=time, 4]",
    ("[time]", "[key=time, 4]"): "[key=time, time, 4]",
    ("[time, key=time]", "[key=time, time]"): "[time, key=time]",
    ("[time, key=time]", "[key=time, 4]"): "[time, key=time, 4]",
    ("[time, key=time]", "[time, p=3]"): "[time, key=time, p=3]",
    ("[time, p=3, 4]", "[p=3, time]"): "[time, p=3, 4]",
    ("[4, time]", "[time, 4]"): "[4, time]",
    ("[time]", "[memory]"): "[time, memory]",
    ("[p=3]", "[q=5]"): "[p=3, q=5]",
    ("[time, 4]", "[memory, 4]"): None,  # both share an axis, so both may be meant to be one
    ("[time, p=3]", "[time, q=3]"): None,
    ("[3, p=3]", "[time]"): "[3, p=3, time]",
    ("[4]", "[time]"): None,  # a plain value broadcasts from the last
    ("[time, 3]", "[p=3, 3, 2]"): None,
}


@pytest.mark.parametrize("shapes", JOINED)
def test_what_values_of_other_axes_give(shapes: tuple[str, str]) -> None:
    left, right = (parse_text(f"model m() {{\n  x: float{each} = input\n}}\n").input_types["x"] for each in shapes)
    found = sum_of(left, right)
    assert (found and format_shape(found.shape)) == JOINED[shapes]


@given(PLAIN, PLAIN)
def test_plain_axes_meet_as_numpy_broadcasts(left: list[int], right: list[int]) -> None:
    found = sum_of(floats(*left), floats(*right))
    try:
        expected: Any = np.broadcast_shapes(tuple(left), tuple(right))
    except ValueError:
        expected = None
    assert (None if found is None else found.dimensions) == expected


@given(SHAPES, SHAPES)
def test_an_axis_with_a_name_stands_over_the_one_of_that_name(left: Any, right: Any) -> None:
    inner, outer = sorted((left, right), key=len)
    places = align_axes(inner, outer)
    if places is not None and len(inner) < len(outer):
        names = [axis.name for axis in outer]
        assert all(
            at == names.index(axis.name)
            for axis, at in zip(inner, places, strict=True)
            if axis.name in names[:-1] and axis.name
        )


def test_a_plain_axis_takes_on_the_identity_that_it_meets() -> None:
    assert type_of("h = x -> a s = h + w y = s -> a") == type_of("h = x -> a s = w + h y = s -> a") == "float[a=3, 4]"


def test_two_pools_in_a_row_give_an_axis_each() -> None:
    assert type_of("y = x -> a -> b") == "float[a=3, b=3, 4]"
    assert type_of("y = x -> a -> a") == "float[a=3, 4]"


@pytest.mark.parametrize("body", ["y = (x -> a) + (x -> b)", "y = (x -> b) * (x -> a)"])
def test_axes_of_unlike_pools_do_not_meet(body: str) -> None:
    with pytest.raises(ModgraphError) as caught:
        graph_of(body)
    message = str(caught.value)
    assert "[a=3, 4]" in message and "[b=3, 4]" in message
    assert message.count("comes from here") == 2, "both origins"


def test_the_help_for_axes_that_do_not_meet_is_valid_input() -> None:
    assert type_of('y = (x -> a) + (x -> b -> rename(b="a"))') == "float[a=3, 4]"
    assert type_of('y = (x -> a -> new_axis(3, axis="b", at=-2)) + (x -> b)') == "float[a=3, b=3, 4]"
    text = "model m() { input a: float[time, 4] input b: float[memory, 4] y = EACH + b output y }"
    with pytest.raises(ModgraphError, match=r"for all pairs: \(a, b\) -> expand\(\"memory\", at=-2\)"):
        modgraph.loads(text.replace("EACH", "a"))
    graph = modgraph.loads(text.replace("EACH", '((a, b) -> expand("memory", at=-2))')).ir
    assert str(graph.type_of(graph.outputs["y"])) == "float[time, memory, 4]"


def test_a_plain_or_foreign_axis_is_never_dealt_as_rows() -> None:
    assert type_of("y = w -> a") == "float[3, a=3, 4]"
    assert type_of("y = x -> b -> a") == "float[b=3, a=3, 4]"


def test_pools_that_share_an_axis_meet_and_grow_together() -> None:
    shared = "pool c[a] = linear(4) h = x -> a"
    assert type_of(f"{shared} y = h + (h -> c)") == "float[a=3, 4]"
    assert type_of("pool c[a] = linear(4) grow a[2] y = (x -> a) + (x -> c)") == "float[a=5, 4]"
    grown = grow(graph_of(f"{shared} y = h + (h -> c)"), "a", 2)
    assert str(grown.type_of(grown.outputs["y"])) == "float[a=5, 4]"
    assert {pool.size for pool in grown.pools().values() if pool.name != "b"} == {5}


def test_ops_take_an_axis_by_name() -> None:
    assert type_of('y = x -> a -> mean(axis="a")') == type_of("y = x -> a -> mean(axis=a)") == "float[4]"
    assert type_of('y = x -> a -> softmax(axis="a")') == "float[a=3, 4]"
    with pytest.raises(ModgraphError, match='unknown axis "b"'):
        graph_of('y = x -> a -> mean(axis="b")')


def test_an_axis_occurs_once_in_a_value_and_renamed_a_second_time() -> None:
    assert type_of('h = x -> a y = (h, h -> rename(a="sender")) -> contract') == "float[a=3, sender=3]"
    assert type_of("h = x -> a y = (h, h) -> contract(axis=a)") == "float[4, 4]"


def test_a_weight_knows_which_of_its_axes_is_a_pools() -> None:
    body = "pool p[3] = linear(4) router r = cosine(k=1, width=2) y = x -> p by r output y"
    text = f"model m() {{ input x: float[5, 4] {body} }}"
    weights = {weight.name: weight.axes for weight in weights_of(modgraph.loads(text).ir)}
    assert weights["r.keys"] == (Axis(2), Axis(3, "p"))


def test_every_module_with_rows_needs_the_pools_own_axis() -> None:
    with pytest.raises(ModgraphError, match="row by row"):
        graph_of("router r = every_module(rows=true) v = w -> flatten y = w -> a by r")
    body = "pool p[3] = linear(4) router r = every_module(rows=true) y = x -> p by r output y"
    text = f"model m() {{ input x: float[7, 4] {body} }}"
    with pytest.raises(ModgraphError, match="row by row"):
        modgraph.loads(text)
