"""Equal repetitions are told once, and nothing is lost by it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modgraph.inspect.cost import Cost
from modgraph.inspect.cost_text import aligned, readable
from modgraph.inspect.folding import Part, parts_of, ranges
from modgraph.program import load, loads


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
def test_numbers_are_told_in_few_words(numbers: list[int], words: str) -> None:
    assert ranges(numbers) == words


def test_equal_blocks_are_one_and_unlike_ones_another() -> None:
    blocks = next(part for part in parts_of(load("specs/gmoe.mod").cost().nodes) if part.label == "blocks")
    assert [(part.label, part.count) for part in blocks.parts] == [("0-7, 9, 11", 10), ("8, 10", 2)]
    alternating = load("specs/gmoe.mod", sparse=[1, 3, 5, 7, 9, 11]).cost().nodes
    blocks = next(part for part in parts_of(alternating) if part.label == "blocks")
    assert labels(blocks.parts) == ["0, 2 … 10", "1, 3 … 11"]


def test_modules_that_are_frozen_stand_apart_from_those_that_are_not() -> None:
    pool = next(
        part for part in parts_of(load("specs/smn_parity.mod", added=3).cost().nodes) if part.label == "specialist"
    )
    assert labels(pool.parts) == ["0, 1", "2-4", "shared"]


def leaves(parts: Iterable[Part]) -> int:
    return sum(part.count * (leaves(part.parts) or 1) for part in parts)


@given(st.recursive(st.integers(1, 3), lambda inner: st.lists(inner, min_size=1, max_size=4), max_leaves=12))
def test_folding_keeps_every_sum_and_every_leaf(tree: object) -> None:
    nodes: dict[str, Cost] = {}

    def count(tree: object, name: str) -> Cost:
        parts = [count(each, f"{name}.{at}") for at, each in enumerate(tree)] if isinstance(tree, list) else []
        cost = sum(parts, Cost()) if parts else Cost(int(str(tree)), 1, 0, 0)
        nodes[name] = cost
        return cost

    total = count(tree, "model")
    ordered = dict(sorted(nodes.items()))
    folded, plain = parts_of(ordered), parts_of(ordered, folded=False)
    assert sum((part.cost for part in folded), Cost()) == sum((part.cost for part in plain), Cost()) == total
    assert leaves(folded) == leaves(plain)


@given(st.integers(0, 10**20))
def test_a_readable_number_is_near_the_number(count: int) -> None:
    text = readable(count)
    number, _, unit = text.replace(",", "").partition(" ")
    factor = 1000 ** ["", "K", "M", "G", "T", "P", "E"].index(unit)
    assert abs(float(number) * factor - count) <= 0.006 * count
    assert len(number) <= 5


def test_columns_stand_below_each_other() -> None:
    assert aligned([("", "parameters"), ("a", "1")]) == ["   parameters", "a           1"]


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
    (head,) = [part for part in parts_of(loads(FAMILY, "f.mod").cost().nodes) if part.label == "head"]
    assert [(part.label, part.count) for part in head.parts] == [("{gender, number, upos}", 3)]
    assert head.parts[0].cost.parameters == head.cost.parameters == 3 * (4 * 3 + 3 + 3 * 2 + 2)
    assert len(parts_of(loads(FAMILY, "f.mod").cost().nodes, folded=False)[0].parts) == 3
