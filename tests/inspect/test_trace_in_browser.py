"""The page of a trace in a real browser: from a route to what it did, and back."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from modgraph.cli import main
from tests.inspect.browser import find_wide, quiet_page
from tests.trace.test_trace import TRANSFORMER, trained

ROUTE = "blocks.1.expert"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traced")
    run = trained(folder, TRANSFORMER)
    assert main(["trace", str(run), "--html", str(folder / "page.html")]) == 0
    return folder / "page.html"


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (400, "dark")])
def test_a_heading_leads_to_its_route_and_the_route_back(
    browser: Browser, page_file: Path, width: int, theme: str
) -> None:
    with quiet_page(browser, page_file, width, theme) as page:
        page.click("nav [data-tab=charts]")
        expect(page.locator(".charts section")).to_have_count(6)
        page.click(f".charts h2 >> text={ROUTE}")
        expect(page.locator("body")).to_have_attribute("data-tab", "graph")
        if width == 400:
            page.click("nav [data-tab=details]")
        expect(page.locator(".panel .chip").first).to_contain_text("route")
        page.click(f".panel >> text=Data: {ROUTE}")
        expect(page.locator(f".charts h2 >> text={ROUTE}")).to_be_visible()
        assert width > 400 or not find_wide(page)


def test_every_map_and_picture_is_rendered(browser: Browser, page_file: Path) -> None:
    with quiet_page(browser, page_file) as page:
        page.click("nav [data-tab=charts]")
        expect(page.locator(".charts figure svg").nth(10)).to_be_attached()
        page.wait_for_function("[...document.querySelectorAll('.charts img')].every((image) => image.naturalWidth > 0)")
