"""The page of a trace in a real browser: from a route to what it did, and back."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from modgraph.cli import main
from tests.inspect.browser import quiet_page
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
        assert page.locator(".charts section").count() == 6
        page.click(f".charts h2 >> text={ROUTE}")
        assert page.locator("body").get_attribute("data-tab") == "graph"
        if width == 400:
            page.click("nav [data-tab=details]")
        assert "route" in page.inner_text(".panel .chip")
        page.click(f".panel >> text=Data: {ROUTE}")
        assert page.locator(f".charts h2 >> text={ROUTE}").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_every_map_and_picture_is_rendered(browser: Browser, page_file: Path) -> None:
    with quiet_page(browser, page_file) as page:
        page.click("nav [data-tab=charts]")
        assert page.locator(".charts figure svg").count() > 10
        assert page.evaluate("[...document.querySelectorAll('.charts img')].every((image) => image.naturalWidth > 0)")
