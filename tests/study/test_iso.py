"""Equal costs: every point gets a width whose cost is nearest to the target, within 2 %."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modgraph.program import load
from modgraph.study.iso import find_nearest
from modgraph.study.sweep import Iso
from tests.study.sweeps import lay_out_spec, plan


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return lay_out_spec(tmp_path).parent


def make_iso(**facts: Any) -> Iso:
    return Iso(**facts)


def test_points_cost_what_the_spec_costs_to_within_two_percent(folder: Path) -> None:
    fixed = {"width": 256, "scale": 2.0}
    iso = make_iso(macs="spec", vary="width")
    found = plan(folder, settings=fixed, grid={"experts": (1, 2, 8)}, iso=iso)
    target = load(folder / "net.mod", **fixed).cost().active_macs
    costs = [load(folder / "net.mod", **each.overrides).cost() for each in found.points]
    assert [each.cost for each in found.points] == [each.counts for each in costs], "a point has its cost"
    assert all(abs(each.active_macs - target) <= 0.02 * target for each in costs), (target, costs)
    assert all(each.overrides["width"] % 2 == 0 for each in found.points), "widths that the spec refuses are skipped"
    assert found.points[0].run == "experts=1", "the width is no part of what is varied"


def test_no_other_width_is_nearer(folder: Path) -> None:
    (point,) = plan(folder, iso=make_iso(parameters=100_000, vary="width"), grid={"experts": (3,)}).points
    costs = {width: load(folder / "net.mod", width=width, experts=3).cost().parameters for width in range(100, 201, 2)}
    assert point.overrides["width"] == min(costs, key=lambda width: abs(costs[width] - 100_000)), costs


def test_parameters_that_follow_the_width_follow(folder: Path) -> None:
    text = (
        (folder / "net.mod")
        .read_text()
        .replace("scale=1.0", "hidden=2 * width")
        .replace("expert[experts] = linear(width)", "expert[experts] = linear(hidden)")
    )
    (folder / "net.mod").write_text(text)
    (point,) = plan(folder, iso=make_iso(macs=50_000, vary="width")).points
    assert abs(load(folder / "net.mod", width=point.overrides["width"]).cost().active_macs - 50_000) <= 1000


def test_a_width_of_its_own_that_a_point_refuses_is_no_hindrance(folder: Path) -> None:
    points = plan(folder, grid={"heads": (5, 7)}, iso=make_iso(macs=30_000, vary="width")).points  # of width 12
    assert all(each.overrides["width"] % each.values["heads"] == 0 for each in points), points


def test_lengths_of_axes_count(folder: Path) -> None:
    text = (folder / "net.mod").read_text().replace("float[5, 4]", "float[time, 4]")
    (folder / "net.mod").write_text(text)
    short, long = (
        plan(folder, iso=make_iso(macs=1e7, vary="width", lengths={"time": length})).points[0] for length in (1, 50)
    )
    assert short.overrides["width"] > long.overrides["width"], "longer sequences leave less for each element"
    cost = load(folder / "net.mod", width=long.overrides["width"]).cost(time=50)
    assert long.cost == cost.counts and abs(cost.active_macs - 1e7) <= 2e5, cost


@given(
    st.integers(1, 50), st.integers(0, 100), st.integers(0, 9), st.integers(1, 12), st.integers(0, 10**6), st.booleans()
)
def test_the_nearest_widths_are_those_on_both_sides(
    start: int, linear: int, squared: int, every: int, target: int, falls: bool
) -> None:
    def count(width: int) -> int | None:
        cost = 7 + (linear + 1) * width + squared * width**2
        return None if width % every or width > 3000 else 10**8 - cost if falls else cost

    start *= every
    begin = count(start)
    assert begin is not None
    target = 10**8 - target if falls else target
    found = find_nearest(count, (start, begin), target)
    costs = {width: cost for width in range(1, 3001) if (cost := count(width)) is not None}
    nearest = min(costs.values(), key=lambda cost: abs(cost - target))
    assert min(found.values(), key=lambda cost: abs(cost - target)) == nearest, (found, nearest)


def test_few_widths_are_tried() -> None:
    tried: list[int] = []

    def count(width: int) -> int:
        tried.append(width)
        return 1000 + 3 * width**2

    found = find_nearest(count, (8, count(8)), 3 * 10**8)
    assert 10**4 in found or 9999 in found, found
    assert len(tried) < 25, "each is an elaboration of the spec"
