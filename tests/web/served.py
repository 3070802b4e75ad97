"""Pages of small runs, on a server of this machine's own, in a real browser."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from modgraph_runtime import Bundle
from numpy.typing import NDArray
from playwright.sync_api import Browser, Frame, Page, expect

from modgraph.cli import main
from modgraph.training.run import finish, start_run
from tests.inspect.browser import PATIENCE, answer_of

IMAGES = """
model seen(experts=3) {
  input  image: float[1, 16, 16]
  target label: class[10]
  tokenizer patches = patch_embed(4, 8) -> class_token
  pool   expert[experts] = linear(16) -> relu -> linear(8)
  router gate = cosine(1, width=4, noise=0.0)
  pool   mixed[2] = linear(8)
  router soft = agreement(2)
  x = image -> patches
  y = x + (x -> expert by gate)
  logits = (y -> select(0)) + (y -> mixed by soft -> mean) -> linear(10)
  output logits
  loss cross_entropy(logits, label)
}
"""
IMAGES_RECIPE = "data: {name: digits, limit: 100}\ntrain: {epochs: 1, batch: 50, optimizer: {name: adam, lr: 0.01}}\n"

WORDS = """
model said(vocabulary=10) {
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]
  pool   expert[3] = linear(8)
  router gate = cosine(1, width=4, noise=0.0)
  x = words -> embedding(8)
  logits = x -> expert by gate -> linear(vocabulary)
  output logits
  output strength = logits -> mean(axis=-1)
  loss cross_entropy(logits, next)
}
"""
WORDS_RECIPE = """
data: {name: text, train: FOLDER/words.txt, window: 6}
train: {epochs: 1, batch: 10}
"""
NO_HEADERS = MappingProxyType[str, str]({})
ISOLATED = MappingProxyType(
    {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}
)
TOLERANCE = 1e-5
TEXT = "the cat sat on the mat and the dog sat on the log\n" * 30


def made(folder: Path, run: Path, *options: str) -> Path:
    """The folder of a run's page."""
    assert main(["export", str(run), "-o", str(folder / "page"), "--web", *options]) == 0
    return folder / "page"


def trained(folder: Path, spec: str, recipe: str) -> Path:
    (folder / "spec.mod").write_text(spec)
    (folder / "spec.yaml").write_text(recipe.replace("FOLDER", str(folder)))
    with start_run(str(folder / "spec.mod"), None, {}, str(folder / "run")) as engine:
        finish(engine)
    return folder / "run"


def page_of_images(folder: Path) -> Path:
    """The folder of a page, of a net that looks at digits and has routes of both kinds."""
    return made(folder, trained(folder, IMAGES, IMAGES_RECIPE))


def page_of_words(folder: Path) -> Path:
    """The folder of a page, of a net that reads words."""
    (folder / "words.txt").write_text(TEXT)
    return made(folder, trained(folder, WORDS, WORDS_RECIPE))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *arguments: Any, headers: Mapping[str, str], **more: Any) -> None:
        self.extra = headers
        super().__init__(*arguments, **more)

    def end_headers(self) -> None:
        for name, value in self.extra.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served(folder: Path, headers: Mapping[str, str] = NO_HEADERS) -> Iterator[str]:
    """A folder as any static server shows it, or one that adds some headers."""
    handler = functools.partial(Quiet, directory=folder, headers=headers)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join(10)


@contextmanager
def opened(
    browser: Browser,
    folder: Path,
    width: int = 1400,
    theme: Any = "light",
    headers: Mapping[str, str] = NO_HEADERS,
    begins: str = "body[data-runs]",
) -> Iterator[Page]:
    """A page that must neither complain nor ask anybody else for anything; `begins` tells that it has begun."""
    with served(folder, headers) as address:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
        page.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        faults: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        page.wait_for_selector(begins)
        answer_of(page, "layouter")
        yield page
        foreign = [url for url in asked if not url.startswith((address, "data:"))]
        assert not faults and not foreign, f"faults {faults}, asked for {foreign}"
        page.close()


def runs(page: Page) -> int:
    return int(page.evaluate("modgraph.last.runs"))


def settled(page: Page, before: int) -> None:
    """Wait until the page has computed something since."""
    answer_of(
        page,
        """async (before) => {
          for (let n = 0; n < 600 && (modgraph.running || modgraph.last.runs === before); n++)
            await new Promise((resolve) => setTimeout(resolve, 25));
        }""",
        before,
    )
    assert runs(page) > before


def stroke(page: Page, *places: tuple[float, float]) -> None:
    """Draw a line through places, from 0 to 1 across and down."""
    box = page.locator(".draw canvas").bounding_box()
    assert box is not None
    first, *others = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in places]
    page.mouse.move(*first)
    page.mouse.down()
    for place in others:
        page.mouse.move(*place, steps=4)
    page.mouse.up()


def assert_as_in_python(page: Page, folder: Path) -> None:
    """What the page computed last is what the bundle gives for the same inputs."""
    expected = Bundle(folder / "model.onnx").run(last(page, "inputs"), routing=True)
    assert_same(last(page, "outputs"), expected)


def assert_same(found: dict[str, NDArray[Any]], expected: dict[str, NDArray[Any]]) -> None:
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert np.abs(found[name] - array).max() <= TOLERANCE * max(1, np.abs(array).max()), name


def last(page: Page | Frame, group: str) -> dict[str, NDArray[Any]]:
    """The inputs or outputs of what the page computed last."""
    found = page.evaluate(
        """(group) => Object.fromEntries(Object.entries(modgraph.last[group]).map(
          ([name, { data, shape }]) => [name, [data instanceof Float32Array, Array.from(data, Number), shape]]))""",
        group,
    )
    return {
        name: np.array(data, np.float32 if is_float else np.int64).reshape(shape)
        for name, (is_float, data, shape) in found.items()
    }
