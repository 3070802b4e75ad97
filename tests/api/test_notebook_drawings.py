"""Drawings in notebooks: small for every spec, and useful without the layout library."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import modgraph
from tests.inspect.browser import quiet_page, started

SPECS = Path(__file__).parents[2] / "specs"
MOST = 300_000  # bytes


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from started()


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "name", ["smn", "modular_networks_lm", "gmoe_digits", "story", "zoo/mixtral", "gmoe", "mt_rmn"]
)
def test_a_drawing_in_a_notebook_is_small(name: str) -> None:
    html = modgraph.load(SPECS / f"{name}.mod").visualize()._repr_html_()
    assert html.isascii()
    assert len(html) < 2 * MOST / 3, f"{len(html):,}"


def test_boxes_unfold_level_by_level_without_elk(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "notebook.html"
    path.write_text("<!DOCTYPE html>" + modgraph.load(SPECS / "gmoe_digits.mod").visualize()._repr_html_())
    with quiet_page(browser, path) as page:
        frame = page.frame_locator("iframe")
        boxes = frame.locator(".box")
        expect(frame.locator("#elk")).to_have_count(0)
        frame.get_by_role("button", name="Fold all", exact=True).click()
        fewest = boxes.count()
        folded = frame.locator('.box[aria-expanded="false"]').first
        expect(folded).to_be_visible()
        frame.get_by_role("button", name="Unfold all").click()
        expect(frame.locator('.box[aria-expanded="true"]').first).to_be_visible()
        assert boxes.count() > 2 * fewest
        expect(frame.locator(".panel")).to_contain_text('visualize("page.html")')
