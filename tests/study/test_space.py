"""What `-s` tries of a key: alternatives, ranges, single values."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modgraph.declare import format_value
from modgraph.study.options import read_iso, read_settings
from modgraph.study.space import Range, count_points, list_combinations, read_tried, sample_points

TRIED: dict[str, Any] = {
    "[2, 4, 8]": (2, 4, 8),
    "[1e-3,3e-4]": (0.001, 0.0003),
    "[noisy, softmax]": ("noisy", "softmax"),
    '["a, b", c]': ("a, b", "c"),
    "[[], [2, 3], [a, b]]": ((), (2, 3), ("a", "b")),
    "[null, 1.5, true]": (None, 1.5, True),
    "[2 * 3, 2**4]": (6, 16),
    "[0..3, 0..4]": (range(3), range(4)),
    "[2, 2, 2.0]": (2, 2.0),
    "[data/a.npz, data/b.npz]": ("data/a.npz", "data/b.npz"),
    "[]": (),
    "[2,]": (2,),
    "log(1e-4, 1e-2)": Range("log", 1e-4, 1e-2),
    "uniform(0, 0.5)": Range("uniform", 0, 0.5),
    "integers(8,64)": Range("integers", 8, 64),
    "3": None,
    "log(10)": None,
    "some words": None,
    "null": None,
    "0..3": None,
}


@pytest.mark.parametrize("text", TRIED)
def test_a_text_is_alternatives_a_range_or_one_value(text: str) -> None:
    assert read_tried(text) == TRIED[text] and repr(read_tried(text)) == repr(TRIED[text]), text


def test_settings_of_a_command_are_fixed_or_tried() -> None:
    texts = [("experts", "[2, 4]"), ("train.clip", "null"), ("router", "null"), ("model.width", "2 * 8")]
    found = read_settings([*texts, ("train.optimizer.lr", "log(1e-4, 1e-2)")])
    assert found.fixed == {"train.clip": None, "router": "null", "width": 16}, "null is a value of recipes alone"
    assert found.grid == {"experts": (2, 4), "train.optimizer.lr": Range("log", 1e-4, 1e-2)}
    assert str(found.places["grid.experts"]) == "-s:1:1", "messages cite the option"


def test_an_equal_cost_is_read_from_options() -> None:
    found = read_iso("macs=1e6", "width", {"time": 35})
    assert (found.macs, found.parameters, found.vary, found.lengths) == (1e6, None, "width", {"time": 35})
    assert read_iso("parameters=spec").parameters == "spec", "of the spec as it is"


SCALARS = st.one_of(st.integers(-99, 99), st.booleans(), st.floats(-1e3, 1e3), st.text('ab "\\,[]()', max_size=5))
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)


@given(st.lists(VALUES, max_size=5, unique_by=repr))
def test_alternatives_that_are_written_are_read_back(values: list[Any]) -> None:
    text = f"[{', '.join(map(format_value, values))}]"
    assert read_tried(text) == tuple(values), text


@given(st.sampled_from(["log", "uniform", "integers"]), st.integers(1, 10**6), st.integers(1, 10**6), st.integers(0))
def test_samples_stay_in_their_range(kind: str, low: int, above: int, seed: int) -> None:
    found = Range(kind, low, low + above).sample(random.Random(seed))
    assert low <= found <= low + above, found
    assert type(found) is (int if kind == "integers" else float), "a real number stays one"


def test_samples_of_a_narrow_range_differ() -> None:
    for each in (Range("uniform", 1, 1.0001), Range("log", 0.1, 0.100001)):
        assert len(sample_points({"a": each}, 20, 0)) == 20, each


@given(
    st.dictionaries(
        st.sampled_from("abcd"), st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True).map(tuple)
    )
)
def test_all_samples_of_a_small_space_are_its_combinations(space: dict[str, tuple[int, ...]]) -> None:
    combinations = [*list_combinations(space)]
    assert len(combinations) == count_points(space)
    sampled = sample_points(space, len(combinations) + 5, 0)
    assert sorted(map(repr, sampled)) == sorted(map(repr, combinations)), "each once, and no more"
