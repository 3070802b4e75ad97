"""The page of a comparison in a real browser."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from modgraph.inspect.diff import Side, compare_sides
from modgraph.inspect.diff.html import write_html
from modgraph.program import load
from tests.inspect.browser import find_wide, quiet_page


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
        expect(page.locator(".plan strong")).to_have_text("1 changed")
        expect(page.locator(".plan output")).to_have_text("1 of 1")
        expect(page.locator(".plan .what")).to_contain_text("~ changed router agree: iterations: 4 → 5")
        page.locator("[data-do=tab][data-tab=charts]").click()
        expect(page.locator(".charts")).to_contain_text("What differs")
        page.set_viewport_size({"width": 390, "height": 844})
        assert not find_wide(page), "nothing pans on a phone"


def test_a_changed_pool_is_seen_with_all_of_its_route(browser: Browser, tmp_path: Path) -> None:
    before, after = load("specs/smn.mod"), load("specs/smn.mod", modules=5)
    found = compare_sides(Side("smn.mod", "spec", before.ir), Side("more.mod", "spec", after.ir), {}, {})
    path = tmp_path / "diff.html"
    path.write_text(write_html(found, (before.source, after.source)))
    with quiet_page(browser, path) as page:
        expect(page.locator(".plan output")).to_have_text("1 of 1")
        for canvas in page.locator(".canvas").all():
            room, route = canvas.bounding_box(), canvas.locator(".box.kind-route").bounding_box()
            assert room and route and room["x"] < route["x"]
            assert route["x"] + route["width"] < room["x"] + room["width"]
            neutral = "(parts) => parts.map((each) => getComputedStyle(each).stroke)"
            (colour,) = {*canvas.locator(".module").evaluate_all(neutral)}
            assert colour == canvas.locator(".box.kind-op > .frame").first.evaluate(
                "(one) => getComputedStyle(one).stroke"
            )


def test_graphs_without_a_common_node_are_both_in_sight(browser: Browser, tmp_path: Path) -> None:
    before, after = load("specs/smn.mod"), load("specs/zoo/switch.mod")
    found = compare_sides(Side("smn.mod", "spec", before.ir), Side("switch.mod", "spec", after.ir), {}, {})
    path = tmp_path / "diff.html"
    path.write_text(write_html(found, (before.source, after.source)))
    with quiet_page(browser, path) as page:
        expect(page.locator(".plan .what")).to_have_text("+ added input words: token[time, 1000]")
        for canvas in page.locator(".canvas").all():
            room, first = canvas.bounding_box(), canvas.locator(".box.kind-input").first.bounding_box()
            assert room and first and room["x"] < first["x"] < room["x"] + room["width"]
            assert room["y"] < first["y"] < room["y"] + room["height"]


def test_the_page_leads_from_change_to_change_and_unfolds_only_these(browser: Browser, tmp_path: Path) -> None:
    before, after = load("specs/gmoe_digits.mod"), load("specs/gmoe_digits.mod", depth=6, experts=8)
    found = compare_sides(Side("few.mod", "spec", before.ir), Side("more.mod", "spec", after.ir), {}, {})
    path = tmp_path / "diff.html"
    path.write_text(write_html(found, (before.source, after.source)))
    picked = ".pane:nth-child({}) .box.selected"

    def top_of(pane: int, id: str) -> float:
        box = page.locator(f'.pane:nth-child({pane}) .box[data-id="{id}"] > .frame').last.bounding_box()
        canvas = page.locator(f".pane:nth-child({pane}) .canvas").bounding_box()
        assert box is not None and canvas is not None
        return float(box["y"] - canvas["y"])

    with quiet_page(browser, path) as page:
        old, new = (f"{cost.parameters:,}" for cost in found.costs)
        expect(page.locator(".plan strong")).to_have_text(f"48 added, 5 changed; parameters {old} → {new}")
        expect(page.locator(".plan output")).to_have_text("1 of 4")
        expect(page.locator(picked.format(2))).to_have_attribute("data-id", "blocks.1.gate")
        expect(page.locator('.box[data-id="x.patches"]').first).to_have_attribute("aria-expanded", "false")
        assert abs(top_of(1, "blocks.1.gate") - top_of(2, "blocks.1.gate")) < 2, "both sides show one place"
        for key, place, kind in (("n", "2 of 4", "changed"), ("n", "3 of 4", "added"), ("p", "2 of 4", "changed")):
            page.keyboard.press(key)
            expect(page.locator(".plan output")).to_have_text(place)
            expect(page.locator(".plan .what")).to_contain_text(kind)
        page.keyboard.press("n")
        page.keyboard.press("n")
        expect(page.locator(".plan output")).to_have_text("4 of 4")
        expect(page.locator(picked.format(2))).to_have_attribute("data-id", "norm")
        assert abs(top_of(1, "norm") - top_of(2, "norm")) < 2
        page.locator(".legend summary").first.click()
        for name in ("added", "removed", "changed", "moved"):
            expect(page.locator(".legend li").filter(has_text=name).first).to_be_visible()
