"""A real browser, without a window, for tests of pages: Debian's Chromium, started once for each file of tests.

As long as it runs, so does a loop of events, which tests of other files might want for themselves. What a page promises
has a limit in `answer_of` alone: Playwright waits for it for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
PATIENCE = 30_000  # milliseconds: other work may keep a browser waiting
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def started() -> Iterator[Browser]:
    """The browser, for a fixture. Skips where it is not installed."""
    if not CHROMIUM.exists():
        pytest.skip(f"pages are tested in {CHROMIUM}, which is not here: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        yield browser
        browser.close()


FRAMES = ".scroll, figure, .tabs, .canvas, .cm-scroller, pre, textarea"  # what may scroll sideways by itself
FIND_WIDE = """(frames) => {
  const isText = ({ data, parentElement }) => /[a-z]{3}/i.test(data) && parentElement.checkVisibility()
    && !parentElement.closest(`script, style, svg, [role=tab], ${frames}`);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), texts = [];
  while (walker.nextNode()) if (isText(walker.currentNode)) texts.push([walker.currentNode, walker.currentNode.data]);
  for (const [text] of texts) text.data = "a_name.without_blanks/".repeat(5);
  const pans = (each) => each === document.documentElement || /auto|scroll/.test(getComputedStyle(each).overflowX);
  const wide = [...document.querySelectorAll("html, body, body *")].filter(
    (each) => each.clientWidth && each.scrollWidth > each.clientWidth && pans(each) && !each.closest(frames));
  for (const [text, before] of texts) text.data = before;
  return [...wide.map(({ tagName, className }) => `${tagName} ${className}`), ...(texts.length ? [] : ["no texts"])];
}"""


def find_wide(page: Page) -> list[str]:
    """What scrolls sideways when all names in sight are long, but for frames that may."""
    found: list[str] = page.evaluate(FIND_WIDE, FRAMES)
    return found


def answer_of(page: Page, function: str, argument: Any = None) -> Any:
    """What an asynchronous function of the page gives."""
    late = f"new Promise((_, fail) => setTimeout(() => fail(new Error('no answer in time')), {2 * PATIENCE}))"
    return page.evaluate(f"(argument) => Promise.race([({function})(argument), {late}])", argument)


@contextmanager
def quiet_page(browser: Browser, path: Path, width: int = 1280, theme: Any = "light") -> Iterator[Page]:
    """A page of a file, which must neither complain, nor ask for anything but itself."""
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=theme)
    faults: list[str] = []
    requests: list[str] = []
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    yield page
    foreign = [url for url in requests if not url.startswith(("data:", path.as_uri()))]
    assert not faults and not foreign, f"faults {faults}, asked for {foreign}"
    page.close()
