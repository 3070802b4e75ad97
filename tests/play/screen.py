"""The screen of the playground in a real browser. Python answers here in this process, behind a worker that asks it:
so a test of the screen need not load an engine."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import modgraph_web
from playwright.sync_api import Browser, Page, expect

from modgraph.cli.explain_command import explain
from modgraph.play.documents import Documents
from modgraph.play.library import read_library
from modgraph.play.runs import read_pages, write_pages
from modgraph.play.screen import write_screen
from modgraph.play.service import Service
from modgraph.play.tour import read_tour
from tests.inspect.browser import PATIENCE

ROOT = "file:///play/"
ONE_AT_A_TIME = threading.Lock()
WORKER = """
const notify = (method, params) => postMessage(JSON.stringify({ jsonrpc: "2.0", method, params }));
notify("modgraph/ready", { version: "", seconds: 0, bytes: 0, root: "file:///play/" });
const place = `/${self.name}-${crypto.randomUUID()}`;
let queue = Promise.resolve();
addEventListener("message", ({ data }) => {
  queue = queue.then(async () => {
    const response = await fetch(place, { method: "POST", body: data });
    for (const each of await response.json()) postMessage(each);
  });
});
"""
SETTLED = """
() => {
  const { results, askSoon } = playground;
  return !askSoon.isWaiting && !results.isRunning && results.view.rendered === results.version;
}
"""
ENTRY = {"group": "Specs", "title": "small", "about": "", "open": "small.mod"}
SPEC = """model small(width=4, wide=false) {
  input  x: float[8]
  target label: class[3]

  hidden = x -> linear(width) -> relu
  logits = hidden -> linear(3)

  output logits
  loss cross_entropy(logits, label)
}
"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and answers what the worker asks."""

    def __init__(self, *arguments: Any, receive: Callable[[str, str], list[str]], **more: Any) -> None:
        self.receive = receive
        super().__init__(*arguments, **more)

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["content-length"])).decode()
        with ONE_AT_A_TIME:  # each service changes the current folder
            answer = json.dumps(self.receive(self.path[1:], text)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served_screen(folder: Path, *pages: Path) -> Iterator[str]:
    """The address of a screen. Each worker has a service with a folder of its own, which becomes the current one."""
    built, before = folder / "built", Path.cwd()
    (built / "editor").mkdir(parents=True)
    for name in modgraph_web.EDITOR.values():
        shutil.copy(modgraph_web.FOLDER / "vendor" / "editor" / name, built / "editor")
    write_screen(built)
    (built / "page" / "worker.js").write_text(WORKER)
    (built / "library.json").write_text(json.dumps({"entries": read_library()}))
    (built / "opened.json").write_text(json.dumps({"entry": {**ENTRY, "files": {"small.mod": SPEC}}}))
    (built / "runs.json").write_text(json.dumps({"entries": write_pages(built, read_pages(pages))}))
    (built / "tour.json").write_text(json.dumps({"steps": read_tour(), "home": None}))
    handler = partial(Handler, directory=str(built), receive=partial(answer, folder, {}))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join(10)
            os.chdir(before)


def answer(folder: Path, services: dict[str, Service], worker: str, text: str) -> list[str]:
    """What the service of a worker answers, as if its folder were that of the browser."""
    root = folder / worker
    root.mkdir(exist_ok=True)
    os.chdir(root)
    service = services.setdefault(worker, Service(explain, Documents(root), worker.startswith("checks")))
    own = f"{root.as_uri()}/"
    return [each.replace(own, ROOT) for each in service.receive(text.replace(ROOT, own))]


@contextmanager
def opened_screen(browser: Browser, address: str, **options: Any) -> Iterator[Page]:
    """A page, which must neither complain nor ask for anything elsewhere."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, **options)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    faults, asked = list[str](), list[str]()
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.wait_for_selector("[data-state=ready]")
    yield page
    foreign = [url for url in asked if not url.startswith((address.partition("#")[0], "data:", "blob:"))]
    assert not faults and not foreign, f"faults {faults}, asked for {foreign}"
    context.close()


def put(page: Page, files: dict[str, str], **values: str) -> None:
    """Give the page other files: the first is in sight."""
    work = {"files": list(files.items()), "values": list(values.items()), "active": next(iter(files))}
    page.evaluate("(work) => playground.work.take(work)", work)
    settle(page)


def settle(page: Page) -> None:
    """Wait until the view in sight shows what belongs to the text."""
    page.wait_for_function(SETTLED)


def show(page: Page, tab: str) -> None:
    """Show a tab of the results, and wait for what it shows."""
    page.locator(f"[role=tab][data-tab={tab}]").click()
    page.wait_for_selector(f"#view-{tab}[data-state=current]")


def text_of(page: Page) -> str:
    """The text in the editor."""
    return str(page.evaluate("playground.editor.view.state.doc.toString()"))


def go(page: Page, word: str) -> None:
    """Put the cursor behind the first occurrence of a word."""
    before = text_of(page).partition(word)[0] + word
    page.evaluate("(at) => playground.editor.go(...at)", [before.count("\n"), len(before.rpartition("\n")[2])])
