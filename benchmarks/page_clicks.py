"""Measures the page of GMoE-B/16: to open, to unfold all, to fold one box, to find and select.

    python benchmarks/page_clicks.py [--quick]

Needs Debian's Chromium and the package playwright. Times are medians of five in milliseconds, until everything is
drawn.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from options import parse_options
from playwright.sync_api import Page, sync_playwright

from modgraph.inspect.page.content import Pane
from modgraph.inspect.page.document import page_of
from modgraph.inspect.scene import scene_of
from modgraph.program import load

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


def timed(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return 1000 * (time.perf_counter() - start)


def median(page: Page, acts: dict[str, Callable[[], object]], times: int) -> dict[str, float]:
    """Repeat the actions in turn, and return the median of each."""
    found: dict[str, list[float]] = {name: [] for name in acts}
    for _ in range(times):
        for name, act in acts.items():
            found[name].append(timed(act))
    return {name: statistics.median(taken) for name, taken in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5)
    options = parse_options(parser, times=1)
    program = load("specs/gmoe.mod", dim=768, heads=12, sparse=(1, 3, 5, 7, 9, 11))
    start = time.perf_counter()
    text = page_of("GMoE-B/16", [Pane(scene_of(program.ir), program.source)])
    print(f"page of {len(text.encode()):,} bytes, made in {time.perf_counter() - start:.2f} s")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "page.html"
        path.write_text(text)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 800})

        def click(selector: str, wait: str) -> Callable[[], object]:
            def act() -> None:
                page.eval_on_selector(selector, "one => one.dispatchEvent(new MouseEvent('click', {bubbles: true}))")
                page.wait_for_selector(wait, state="attached")

            return act

        print(f"open          {timed(lambda: page.goto(path.as_uri())):6.0f}")
        folded = '.box[data-id="blocks.0.mlp"][aria-expanded=false]'
        acts = {
            "fold all": click("[data-do=fold]", '.box[data-id="blocks"][aria-expanded=false]'),
            "unfold all": click("[data-do=unfold]", '.box[data-id="blocks.0.mlp"][aria-expanded=true]'),
            "all repeats": click('[data-all="blocks"]', '.box[data-id="blocks.11"]'),
            "fold one": click('[data-fold="blocks.0.mlp"]', folded),
            "unfold one": click('[data-fold="blocks.0.mlp"]', '.box[data-id="blocks.0.mlp"][aria-expanded=true]'),
            "select": click('.box[data-id="blocks.11.gate"] .title', '.selected[data-id="blocks.11.gate"]'),
        }
        for name, milliseconds in median(page, acts, options.times).items():
            print(f"{name:14}{milliseconds:6.0f}")
        browser.close()


if __name__ == "__main__":
    main()
