"""Welch's t-test: as scipy computes it from the samples, symmetric, and blind to shifts and scales."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import ttest_ind

from modgraph.tables.significance import compute_p
from tests.ordinary_run import some_examples

SAMPLES = st.lists(st.floats(-100, 100).map(lambda value: round(value, 3)), min_size=2, max_size=8)


@some_examples(60)
@given(SAMPLES, SAMPLES)
def test_p_is_that_of_scipy(first: list[float], second: list[float]) -> None:
    assume(len({*first}) > 1 and len({*second}) > 1)
    wanted = ttest_ind(first, second, equal_var=False).pvalue
    assert compute_p(first, second) == pytest.approx(wanted, rel=1e-6, abs=1e-12)


@some_examples(50)
@given(SAMPLES, SAMPLES, st.floats(0.1, 10), st.floats(-5, 5))
def test_p_depends_on_neither_order_nor_unit(first: list[float], second: list[float], unit: float, zero: float) -> None:
    assume(len({*first}) > 1 or len({*second}) > 1)
    p = compute_p(first, second)
    assert p == pytest.approx(compute_p(second, first))
    moved = [[unit * value + zero for value in sample] for sample in (first, second)]
    assert p == pytest.approx(compute_p(*moved), rel=1e-3, abs=1e-6)


@pytest.mark.parametrize(("first", "second"), [([1.0], [1.0, 2.0]), ([], [1.0, 2.0]), ([1.0, 1.0], [2.0, 2.0])])
def test_p_is_undefined_without_variation_or_with_one_value(first: list[float], second: list[float]) -> None:
    assert compute_p(first, second) is None
