"""The page of a language model writes on, word by word, in the colours of the modules."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from modgraph_runtime import Bundle
from modgraph_runtime.generation import Generator, Sampler
from playwright.sync_api import Page, expect

from tests.inspect import browser as chromium
from tests.web.served import TEXT, WORDS_RECIPE, made, opened, trained

modgraph_web = pytest.importorskip("modgraph_web", reason="pip install ./export/web")
if not modgraph_web.available():
    pytest.skip("modgraph_web has no WebAssembly: pip install ./export/web, with npm", allow_module_level=True)

SPEC = """
model writer(vocabulary=10) {
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]
  pool   expert[3] = linear(8)
  x = words -> embedding(8)
  scores = x -> linear(expert)
  x = x + (x -> expert by ((scores, scores -> top_k(1)) -> masked_softmax)) -> gru(8)
  logits = x -> linear(vocabulary)
  output logits
  loss cross_entropy(logits, next)
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("writer")
    (folder / "words.txt").write_text(TEXT)
    recipe = WORDS_RECIPE.replace("epochs: 1", "epochs: 8, optimizer: {name: adam, lr: 0.02}")
    return made(folder, trained(folder, SPEC, recipe))


@pytest.fixture(scope="module")
def page(folder: Path) -> Iterator[Page]:
    for browser in chromium.started():
        with opened(browser, folder) as page:
            yield page


def write(page: Page, text: str, words: int, temperature: float) -> None:
    page.fill("textarea", text)
    page.fill("[aria-label='words to write']", str(words))
    page.fill("[aria-label=temperature]", str(temperature))
    page.click("[data-do=write]")


def test_the_page_writes_the_words_of_python_in_the_colours_of_their_modules(page: Page, folder: Path) -> None:
    write(page, "the cat", 8, 0)
    expect(page.locator("[data-do=write]")).to_have_text("Write on")
    expect(page.locator(".writer [role=status]")).to_contain_text("8 words")
    bundle = Bundle(folder / "model.onnx", threads=1)
    known = bundle.manifest["words"]["words"]
    steps = [*Generator(bundle).run([[known.index(each) for each in ("the", "cat")]], 8, Sampler(), routing=True)]
    expected = [(known[step.tokens[0]], after.modules[0]["expert"]) for step, after in pairwise(steps)]
    written = page.locator(".written .word")
    found = written.evaluate_all(
        "all => all.map(each => [each.firstChild.data, each.dataset.module, each.style.background])"
    )
    assert [(word, (int(module),)) for word, module, _ in found] == expected
    colours = {module: colour for _, module, colour in found}
    assert len({*colours.values()}) == len(colours) and all(colours.values()), colours


def test_writing_stops_at_a_press_and_says_what_is_wrong(page: Page) -> None:
    write(page, "the dog", 500, 0.8)
    expect(page.locator("[data-do=write]")).to_have_text("Stop")
    page.locator(".written .word").nth(2).wait_for()
    page.click("[data-do=write]")
    expect(page.locator("[data-do=write]")).to_have_text("Write on")
    count = page.locator(".written .word").count()
    assert 3 <= count < 500
    page.wait_for_timeout(50)
    assert page.locator(".written .word").count() == count, "words come after Stop"
    write(page, "", 4, 0)
    expect(page.locator(".writer [role=status]")).to_have_text("type some words first")
    write(page, "the", 4, -1)
    expect(page.locator(".writer [role=status]")).to_contain_text("temperature must be 0 or more")


@pytest.mark.slow
def test_the_graph_of_the_page_is_that_of_the_spec(folder: Path) -> None:
    record = (folder / "page.json").read_text()
    assert '"expert"' in record and "cache." not in record
