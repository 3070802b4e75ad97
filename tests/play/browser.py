"""The worker of the playground in a real browser: what a page says to it, and what it answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page

from tests.inspect.browser import PATIENCE, answer_of
from tests.web.served import served

START = """
async () => {
  const worker = new Worker("page/worker.js", { type: "module" });
  const [heard, waiting] = [[], new Set()];
  const hear = (test) => new Promise((resolve) => {
    const found = heard.findIndex(test);
    if (found >= 0) resolve(heard.splice(found, 1)[0]);
    else waiting.add({ test, resolve });
  });
  worker.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    const each = [...waiting].find(({ test }) => test(message));
    if (each) { waiting.delete(each); each.resolve(message); } else heard.push(message);
  };
  const say = (message) => worker.postMessage(JSON.stringify({ jsonrpc: "2.0", ...message }));
  globalThis.play = { hear, say, heard, number: 0 };
  play.ready = await hear(({ method }) => method === "modgraph/ready" || method === "modgraph/failed");
}
"""
CHECK = """
async ([name, texts]) => {
  const uri = "file:///play/" + name, found = [];
  for (const text of texts) {
    play.say({ method: "textDocument/didOpen", params: { textDocument: { uri, text } } });
    const message = await play.hear((each) => each.params?.uri === uri);
    found.push(message.params.diagnostics.map(({ data }) => data));
  }
  return found;
}
"""
ASK = """
async ([method, params]) => {
  const id = ++play.number;
  play.say({ id, method, params });
  return await play.hear((each) => each.id === id);
}
"""


class Worker:
    """The worker in a page."""

    def __init__(self, page: Page, faults: list[str]) -> None:
        self.page, self.faults = page, faults

    def check(self, name: str, texts: list[str]) -> list[list[dict[str, Any]]]:
        """What is published for each text of a file: its rendered text and JSON, in order."""
        found: list[list[dict[str, Any]]] = answer_of(self.page, CHECK, [name, texts])
        return found

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The response to a request."""
        found: dict[str, Any] = answer_of(self.page, ASK, [method, params])
        return found


def note_fault(message: ConsoleMessage, faults: list[str]) -> None:
    if not message.location["url"].endswith("/favicon.ico"):  # which a browser asks of a text
        faults.append(message.text)


@contextmanager
def started_worker(browser: Browser, folder: Path) -> Iterator[Worker]:
    """The worker of a folder, which asks for nothing but files of the folder, and has no fault."""
    with served(folder) as address:
        page, asked, faults = browser.new_page(), list[str](), list[str]()
        page.set_default_timeout(4 * PATIENCE)
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{address}LICENSE.txt")  # any page of the server
        page.on("console", lambda message: note_fault(message, faults))
        answer_of(page, START)
        yield Worker(page, faults)
        foreign = [url for url in asked if not url.startswith((address, "data:", "blob:"))]
        assert not faults and not foreign, f"faults {faults}, asked for {foreign}"
        page.close()
