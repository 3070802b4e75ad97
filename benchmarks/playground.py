"""Measures the playground: seconds and bytes to the first check, and how long a typed mistake waits for its message.

    python benchmarks/playground.py [--quick] [--times 20] [--folder FOLDER]

Needs Debian's Chromium and the packages playwright and modgraph-web. Keys are pressed at words all over the text, one
letter each; the time is from the event of the key until its message stands below the text. Before each, either all
panes are drawn, or the worker computes a difference. `--folder` measures a playground that is written already.
"""

from __future__ import annotations

import argparse
import http.server
import re
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from options import parse_options
from page_clicks import FLAGS
from playwright.sync_api import BrowserContext, Page, sync_playwright

from modgraph.play.write import write_playground

WARM = 2  # mistakes before those that count
PATIENCE = 240_000  # milliseconds
PARAMETERS = {"smn": ("iterations", (9, 8)), "gmoe": ("depth", (11, 10))}  # what a difference is computed of
STAGE = re.compile(r"-> ?([a-z]\w+)")
PROBE = """
() => {
  const isWrong = () => document.querySelector(".problem.error") !== null;
  let since = null, was = false;
  document.addEventListener("keydown", (event) => { since ??= event.timeStamp; }, { capture: true });
  new MutationObserver(() => {
    if (isWrong() !== was && since !== null) [globalThis.waited, since] = [performance.now() - since, null];
    was = isWrong();
  }).observe(document.querySelector(".problems"), { childList: true, subtree: true });
}
"""
SETTLED = """
() => {
  const { results } = playground;
  return !results.isRunning && results.view.drawn === results.version;
}
"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and counts the bytes of what it sends."""

    count = 0

    def copyfile(self, source: Any, outputfile: Any) -> None:
        content = source.read()
        Handler.count += len(content)
        outputfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class Playground:
    """The page, and what a visitor does there."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE)
        start, before = time.perf_counter(), Handler.count
        self.page.goto(address)
        self.page.wait_for_function("() => globalThis.playground?.messages.size")
        self.seconds, self.bytes = time.perf_counter() - start, Handler.count - before
        self.page.evaluate(f"({PROBE})()")

    def open(self, title: str, tab: str) -> None:
        """Open a spec of the library, with a tab of results."""
        self.page.evaluate("(title) => playground.take(playground.entries.find((each) => each.title === title))", title)
        self.page.evaluate("(tab) => playground.results.show(tab)", tab)
        self.settle()

    def settle(self) -> None:
        self.page.wait_for_function("() => playground.connection.answering === playground.connection.workers[1]")
        self.page.wait_for_timeout(500)  # panes begin after a pause
        self.page.wait_for_function(SETTLED)

    def press(self, key: str, is_wrong: bool) -> float:
        """Press a key: the milliseconds until the messages are those of the new text."""
        self.page.evaluate("() => { globalThis.waited = null; }")
        self.page.keyboard.press(key)
        self.page.wait_for_function("() => globalThis.waited !== null")
        assert (self.page.locator(".problem.error").count() > 0) == is_wrong, "the message is not that of the text"
        return float(self.page.evaluate("globalThis.waited"))

    def list_places(self, times: int) -> list[int]:
        """So many places where a further letter is a mistake, in turn from all parts of the text."""
        text = self.page.evaluate("playground.editor.view.state.doc.toString()")
        found = [match.end() for match in STAGE.finditer(text)]
        return list(islice(cycle(found[at % len(found)] for at in range(0, 7 * len(found), 7)), times))

    def mistake(self, place: int) -> float:
        """Type a mistake and take it back: the milliseconds until the message stands there."""
        view = "playground.editor.view"
        self.page.evaluate(f"(anchor) => {{ {view}.focus(); {view}.dispatch({{ selection: {{ anchor }} }}); }}", place)
        waited = self.press("x", is_wrong=True)
        self.page.keyboard.press("Escape")  # which closes the list of completions
        self.page.keyboard.press("Backspace")
        self.page.wait_for_selector(".problem.error", state="detached")
        return waited


def measure_idle(playground: Playground, title: str, times: int) -> list[float]:
    """The milliseconds of mistakes while nothing else runs."""
    playground.open(title, "graph")
    found = []
    for place in playground.list_places(times + WARM):
        playground.settle()
        found.append(playground.mistake(place))
    return found[WARM:]


def measure_busy(playground: Playground, title: str, times: int) -> list[float]:
    """The milliseconds of mistakes while a difference is computed."""
    page, (name, values) = playground.page, PARAMETERS[title]
    playground.open(title, "graph")
    page.evaluate("playground.pin()")
    page.wait_for_selector("[data-do=pin][aria-pressed=true]")
    page.evaluate("playground.results.show('difference')")
    found = []
    for place, value in zip(playground.list_places(times + WARM), cycle(values), strict=False):
        playground.settle()
        page.evaluate("([name, value]) => playground.work.set(name, value)", [name, str(value)])
        page.wait_for_function("() => playground.results.isRunning")
        found.append(playground.mistake(place))
    page.evaluate("playground.pin()")
    return found[WARM:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--folder", type=Path)
    options = parse_options(parser, times=2)
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        folder = options.folder or Path(made) / "site"
        if options.folder is None:
            write_playground(folder)
        profile = Path(made) / "profile"  # a browser without one keeps little
        size: Any = {"width": 1280, "height": 800}
        browser = playwright.chromium.launch_persistent_context(
            profile, executable_path="/usr/bin/chromium", args=FLAGS, viewport=size
        )
        with serve(folder) as address:
            playground = Playground(browser, address)
            print(f"first check after {playground.seconds:.1f} s and {playground.bytes / 1e6:.1f} MB")
            playground.settle()
            print(f"both workers after {(Handler.count) / 1e6:.1f} MB")
            print(f"{'milliseconds until a message':36} median  90 %")
            for title in PARAMETERS:
                for what, measure in (("idle", measure_idle), ("during a difference", measure_busy)):
                    found = measure(playground, title, options.times)
                    ninety = statistics.quantiles(found, n=10, method="inclusive")[-1]
                    print(f"{title + ', ' + what:36} {statistics.median(found):6.0f} {ninety:5.0f}", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
