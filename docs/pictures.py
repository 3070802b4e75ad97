"""Makes the pictures of the README and of these docs anew from the specs: python docs/pictures.py (two minutes).

They are what the commands write; the page that `diff` writes is photographed in Chromium.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from modgraph.cli import main

SPECS = Path("specs")
PICTURES = Path("docs/pictures")
CHROMIUM = "/usr/bin/chromium"


def made(*command: object, code: int = 0) -> None:
    """Run a command of modgraph, which is to end so."""
    ended = main([str(each) for each in command])
    assert ended == code, command


def graph() -> None:
    made("visualize", SPECS / "smn.mod", "-o", PICTURES / "graph.svg")


def routing(folder: Path) -> None:
    """Which expert each patch of a few digits goes to, in the two mixtures of a small vision transformer."""
    made("train", SPECS / "gmoe_digits.mod", "--out", folder / "run", "-s", "train.epochs=20")
    made("trace", folder / "run", "-o", PICTURES / "routing.png", "--examples", 3)


def difference(folder: Path) -> None:
    """Two modules more, half the rounds, another loss."""
    spec, page = SPECS / "smn.mod", folder / "diff.html"
    after = ("--set-after", "modules=4", "--set-after", "iterations=2", "--set-after", "uncertainty=0.1")
    made("diff", spec, spec, *after, "--html", page, code=2)
    photographed(page, PICTURES / "diff.png")


def photographed(page: Path, picture: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        view = browser.new_page(viewport={"width": 1280, "height": 1000})
        view.goto(page.as_uri())
        for fit in view.get_by_role("button", name="fit").all():
            fit.click()
        view.wait_for_timeout(500)  # milliseconds
        view.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    os.chdir(Path(__file__).parents[1])  # what is shown names files as they are called from there
    with tempfile.TemporaryDirectory() as work:
        graph()
        routing(Path(work))
        difference(Path(work))
