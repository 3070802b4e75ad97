"""Makes the pictures of the README and of these docs from the specs: python docs/pictures.py (four minutes).

Commands of modgraph draw them; Chromium photographs the page of `diff`.
"""

from __future__ import annotations

import functools
import http.server
import math
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from modgraph.cli import main

if TYPE_CHECKING:
    from playwright.sync_api import Page

SPECS = Path("specs")
PICTURES = Path("docs/pictures")
CHROMIUM = "/usr/bin/chromium"


def made(*command: object, code: int = 0) -> None:
    """Run a command of modgraph, which must exit with the given code."""
    ended = main([str(each) for each in command])
    assert ended == code, command


def graph() -> None:
    made("visualize", SPECS / "smn.mod", "-o", PICTURES / "graph.svg")


def routing(folder: Path) -> None:
    """Draw the expert of each patch of a few digits, in the two mixtures of a small vision transformer."""
    made("train", SPECS / "gmoe_digits.mod", "--out", folder / "run", "-s", "train.epochs=20")
    made("trace", folder / "run", "-o", PICTURES / "routing.png", "--examples", 3)


def difference(folder: Path) -> None:
    """Draw a comparison: two added modules, half the rounds, another loss."""
    spec, page = SPECS / "smn.mod", folder / "diff.html"
    after = ("--set-after", "modules=4", "--set-after", "iterations=2", "--set-after", "uncertainty=0.1")
    made("diff", spec, spec, *after, "--html", page, code=2)
    photographed(page, PICTURES / "diff.png")


def page(folder: Path) -> None:
    """Draw two digits in the page of a network that compares them."""
    made("train", SPECS / "smn.mod", "--out", folder / "smn")
    made("export", folder / "smn", "-o", folder / "page", "--web")
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder / "page")
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with viewed(f"http://127.0.0.1:{server.server_port}", 1240, 770) as view:
        view.click("body[data-runs] >> text=Clear")
        draw(view, (0.08, 0.12), (0.2, 0.05), (0.32, 0.1), (0.3, 0.2), (0.08, 0.44), (0.4, 0.44))
        angles = [at / 8 * math.tau for at in range(9)]
        draw(view, *((0.75 + 0.13 * math.sin(angle), 0.75 - 0.19 * math.cos(angle)) for angle in angles))
        view.wait_for_timeout(1000)  # milliseconds
        view.screenshot(path=PICTURES / "web.png")
    server.shutdown()


def draw(view: Page, *line: tuple[float, float]) -> None:
    """Draw a line on the page's drawing area, through points from 0 to 1 across and down."""
    box = view.locator(".draw canvas").bounding_box()
    assert box is not None
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in line]
    view.mouse.move(*places[0])
    view.mouse.down()
    for place in places[1:]:
        view.mouse.move(*place, steps=6)
    view.mouse.up()


def photographed(page: Path, picture: Path) -> None:
    with viewed(page.as_uri(), 1280, 1000) as view:
        for fit in view.get_by_role("button", name="fit").all():
            fit.click()
        view.wait_for_timeout(500)  # milliseconds
        view.screenshot(path=picture)


@contextmanager
def viewed(address: str, width: int, height: int) -> Iterator[Page]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        view = browser.new_page(viewport={"width": width, "height": height})
        view.goto(address)
        yield view
        browser.close()


if __name__ == "__main__":
    os.chdir(Path(__file__).parents[1])  # the picture names files relative to the folder
    with tempfile.TemporaryDirectory() as work:
        graph()
        routing(Path(work))
        difference(Path(work))
        page(Path(work))
