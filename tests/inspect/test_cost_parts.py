"""Costs of equal calls and modules are told once, and nothing is lost by it."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modgraph.diagnostics import ModgraphError
from modgraph.inspect.cost import Cost, compute_cost
from modgraph.inspect.cost_text import Part, align, list_parts, ranges, readable
from modgraph.ir import Graph, RouterNode
from modgraph.program import load, loads
from tests.assault.sound import sound
from tests.ordinary_run import some_examples


def folded(graph: Graph) -> tuple[Part, ...]:
    return list_parts(compute_cost(graph).nodes, graph)


def labels(parts: Iterable[Part]) -> list[str]:
    return [part.label for part in parts]


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([0], "0"),
        ([3, 4], "3, 4"),
        ([0, 1, 2, 3], "0-3"),
        ([0, 1, 2, 7, 9, 11, 13], "0-2, 7, 9 … 13"),
        ([1, 3, 5], "1, 3, 5"),
        ([1, 3, 5, 7], "1, 3 … 7"),
    ],
)
def test_numbers_are_printed_in_few_words(numbers: list[int], words: str) -> None:
    assert ranges(numbers) == words


def test_equal_blocks_are_one_and_unlike_ones_another() -> None:
    (blocks,) = (part for part in folded(load("specs/gmoe.mod").ir) if part.label == "blocks")
    assert [(part.label, part.count) for part in blocks.parts] == [("0-7, 9, 11", 10), ("8, 10", 2)]
    alternating = load("specs/gmoe.mod", sparse=[1, 3, 5, 7, 9, 11]).ir
    (blocks,) = (part for part in folded(alternating) if part.label == "blocks")
    assert labels(blocks.parts) == ["0, 2 … 10", "1, 3 … 11"]


def test_modules_that_are_frozen_stand_apart_from_those_that_are_not() -> None:
    (pool,) = (part for part in folded(load("specs/smn_parity.mod", added=3).ir) if part.label == "specialist")
    assert labels(pool.parts) == ["0, 1", "2-4", "shared"]


def leaves(parts: Iterable[Part]) -> int:
    return sum(part.count * (leaves(part.parts) or 1) for part in parts)


@some_examples(30)
@given(st.integers(0, 1 << 32))
def test_folding_keeps_every_sum_and_every_leaf(seed: int) -> None:
    try:
        graph = loads(sound(Random(seed))).ir
        cost = compute_cost(graph)
    except ModgraphError:
        return  # what no lengths fit has no cost
    routers = {router.name for part in graph.parts() for router in part.graph.nodes_of(RouterNode)}
    nodes = {name: each for name, each in cost.nodes.items() if not any(name.startswith(f"{at}.") for at in routers)}
    together, apart = list_parts(nodes, graph), list_parts(nodes)
    assert sum((part.cost for part in together), Cost()) == sum((part.cost for part in apart), Cost())
    assert leaves(together) == leaves(apart)


@given(st.integers(0, 10**20))
def test_a_readable_number_is_near_the_number(count: int) -> None:
    text = readable(count)
    number, _, unit = text.replace(",", "").partition(" ")
    factor = 1000 ** ["", "K", "M", "G", "T", "P", "E"].index(unit)
    assert abs(float(number) * factor - count) <= 0.006 * count
    assert len(number) <= 5


def test_columns_stand_below_each_other() -> None:
    assert align([("", "parameters"), ("a", "1")]) == ["   parameters", "a           1"]


FAMILY = """
model family(tasks=["upos", "gender", "number"]) {
  input x: float[4]
  for k in tasks {
    module head = linear(3) -> relu -> linear(2)
    output y[k] = x -> head
  }
}
"""


def test_equal_members_of_a_family_are_one() -> None:
    graph = loads(FAMILY, "f.mod").ir
    (head,) = folded(graph)
    assert [(part.label, part.count) for part in head.parts] == [("{gender, number, upos}", 3)]
    assert head.parts[0].cost.parameters == head.cost.parameters == 3 * (4 * 3 + 3 + 3 * 2 + 2)
    assert len(list_parts(compute_cost(graph).nodes)[0].parts) == 3


def test_what_costs_the_same_by_chance_is_not_one() -> None:
    body = "input x: float[4] module a = linear(4) -> relu module b = linear(4) -> tanh y = x -> a -> b output y"
    parts = folded(loads(f"model m() {{ {body} }}").ir)
    assert labels(parts) == ["a.linear", "b.linear"]
    assert parts[0].cost == parts[1].cost
