"""What an ordinary run leaves to `--slow`: cases of tests marked `some(number)`, and examples of properties."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Sequence

import pytest
from hypothesis import settings


def leave_to_slow_runs(items: Sequence[pytest.Item]) -> None:
    """Mark as slow all but some cases of the tests that ask for it."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if "some" in item.keywords:
            cases[item.nodeid.partition("[")[0]].append(item)
    for of_one_test in cases.values():
        mark = of_one_test[0].get_closest_marker("some")
        assert mark is not None
        picked = choose(of_one_test, *mark.args)
        for item in of_one_test:
            if item not in picked:
                item.add_marker("slow")


def choose(cases: Sequence[pytest.Item], number: int) -> list[pytest.Item]:
    """So many cases, each with as many values of parameters that no other has as there are. Tests of one parameter
    choose unlike values: their order is that of a digest of the whole name."""
    left = sorted(cases, key=lambda case: zlib.crc32(case.nodeid.encode()))
    picked: list[pytest.Item] = []
    tried: set[tuple[str, int]] = set()
    while left and len(picked) < number:
        best = max(left, key=lambda case: len(_values(case) - tried))
        left.remove(best)
        picked.append(best)
        tried |= _values(best)
    return picked


def _values(case: pytest.Item) -> set[tuple[str, int]]:
    assert isinstance(case, pytest.Function), "only a test with parameters has cases"
    return set(case.callspec.indices.items())


def some_examples(number: int) -> settings:
    """The settings of a property: so many examples with `--slow`, a quarter of them in an ordinary run."""
    return settings(max_examples=number if settings.get_current_profile_name() == "slow" else max(number // 4, 3))
