"""Pictures of traces clip nothing, however long names are: a browser measures every text against the sheet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from modgraph.inspect.charts import describe_with_data
from modgraph.inspect.charts.heat_map import measure
from modgraph.inspect.charts.picture import arrange, stack, write_svg
from modgraph.inspect.page.content import Curve, Curves, Heatmap, Paths
from tests.inspect.browser import started

LONG = "the_quite_long_name_of_a_module_in_a_block_of_a_model.layer.11.expert"
SENTENCE = " ".join(["a title with many words, the last of which must be legible"] * 6)
HOSTILE = '<script>alert(1)</script> & "quotes" ]]> $\\frac{1}{2}$'


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from started()


def sheets() -> dict[str, str]:
    names = [f"{LONG}.{at}" for at in range(24)]
    shares = [[(row * column) % 7 / 7 for column in range(24)] for row in range(3)]
    wide = Heatmap([SENTENCE, HOSTILE, "a\u4e2d\u6587"], names, shares, SENTENCE)
    tall = Heatmap(names, ["0\n512", "1\n512"], [[0.5, 1.0]] * 24, LONG, x_label=SENTENCE[:90])
    same = Heatmap(["twice", "twice"], ["a", "a"], [[1, 0], [0, 12345]], "")
    points = [Curve(name, [(1, at), (2, at + 1.0)]) for at, name in enumerate(names)]
    curves = Curves(points, SENTENCE, "epoch", [(LONG, 70.0)], [(LONG, 1.0), ("b", 1.9)], [("grown", 1.5)])
    paths = Paths([LONG, HOSTILE], [[1.0, 0.0], [0.5, 0.5]], [[[0.5, 0.5], [0.0, 0.0]]], SENTENCE)
    maps = [(each.title, measure(each), describe_with_data(each)) for each in (wide, tall, same)]
    return {
        "maps": write_svg(stack(arrange(maps, SENTENCE))),
        "curves": write_svg(stack(arrange([(SENTENCE, 420, describe_with_data(curves))] * 2))),
        "paths": write_svg(stack(arrange([("", 0, describe_with_data(paths))], SENTENCE))),
    }


def test_every_text_is_within_the_sheet(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page()
    for name, svg in sheets().items():
        path = tmp_path / f"{name}.svg"
        path.write_text(svg)
        page.goto(path.as_uri())
        found = page.evaluate(
            """() => {
                const sheet = document.documentElement.getBoundingClientRect();
                const room = (at) => Math.min(at.left - sheet.left, at.top - sheet.top, sheet.right - at.right,
                                              sheet.bottom - at.bottom);
                return [...document.querySelectorAll("text")].map((text) =>
                    [text.textContent, room(text.getBoundingClientRect())]);
            }"""
        )
        assert len(found) >= 7
        assert [each for each in found if each[1] < 0] == [], name
        assert page.evaluate("document.querySelectorAll('script').length") == 0
    page.close()


def test_equal_names_stay_two() -> None:
    chart = Heatmap(["twice", "twice"], ["a", "b"], [[0.1, 0.2], [0.3, 0.4]])
    svg = write_svg(stack(arrange([("", measure(chart), describe_with_data(chart))])))
    assert all(f">{number}<" in svg for number in (10, 20, 30, 40)), "no cell covers another"
