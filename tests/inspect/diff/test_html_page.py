"""The page of a comparison in a real browser."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from modgraph.inspect.diff import Side, compare_sides
from modgraph.inspect.diff.html import write_html
from modgraph.program import load
from tests.inspect.browser import quiet_page


def test_a_change_is_framed_and_picked_on_both_sides(browser: Browser, tmp_path: Path) -> None:
    before, after = load("specs/smn.mod"), load("specs/smn.mod", iterations=5)
    found = compare_sides(Side("smn.mod", "spec", before.ir), Side("more.mod", "spec", after.ir), {}, {})
    path = tmp_path / "diff.html"
    path.write_text(write_html(found, (before.source, after.source)))
    with quiet_page(browser, path) as page:
        framed = page.locator(".box.mark-changed[data-id=agree]")
        expect(framed).to_have_count(2)
        framed.first.dispatch_event("click")
        expect(page.locator(".box.selected[data-id=agree]")).to_have_count(2)
        expect(page.locator(".panel")).to_contain_text("iterations: 4 → 5")
        page.locator("[data-do=tab][data-tab=charts]").click()
        expect(page.locator(".charts")).to_contain_text("What differs")
