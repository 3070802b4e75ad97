"""The page of an exported run in a real browser: the same numbers as in Python, by every way in, and nothing from
elsewhere."""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from modgraph_runtime import Bundle
from numpy.typing import NDArray
from PIL import Image, ImageOps
from playwright.sync_api import Browser, Page, expect

from tests.inspect import browser as chromium
from tests.web.served import (
    assert_as_in_python,
    assert_same,
    last,
    opened,
    page_of_images,
    page_of_words,
    runs,
    served,
    settled,
    stroke,
)

modgraph_web = pytest.importorskip("modgraph_web", reason="pip install ./export/web")
if not modgraph_web.available():
    pytest.skip("modgraph_web has no WebAssembly: pip install ./export/web, with npm", allow_module_level=True)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page_of_images(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page_of_words(tmp_path_factory.mktemp("words"))


@pytest.fixture(scope="module")
def browser(images: Path, words: Path) -> Iterator[Browser]:
    """Started when both pages are made."""
    yield from chromium.started()


@pytest.fixture(scope="module")
def digits(browser: Browser, images: Path) -> Iterator[Page]:
    """The page of images, wide and light."""
    with opened(browser, images) as page:
        yield page


@pytest.fixture(scope="module")
def phone(browser: Browser, words: Path) -> Iterator[Page]:
    """The page of words, on a phone at night."""
    with opened(browser, words, 360, "dark") as page:
        yield page


def examples_in(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "examples.json").read_text())["examples"]
    return found


def unpacked(arrays: dict[str, Any]) -> dict[str, NDArray[Any]]:
    return {
        name: np.frombuffer(base64.b64decode(each["data"]), each["dtype"]).reshape(each["shape"])
        for name, each in arrays.items()
    }


def empty(page: Page) -> None:
    before = runs(page)
    page.click("text=Clear")
    settled(page, before)
    assert not last(page, "inputs")["image"].any()


# ------------------------------------------------------------ ways in


def test_what_a_user_draws_gives_what_python_gives(digits: Page, images: Path) -> None:
    empty(digits)
    before = runs(digits)
    stroke(digits, (0.3, 0.2), (0.6, 0.8))
    settled(digits, before)
    pixels = last(digits, "inputs")["image"]
    assert pixels.shape == (1, 1, 16, 16)
    assert pixels[0, 0, 8, 7] > 0.5 and pixels[0, 0, 2, 14] == 0
    assert_as_in_python(digits, images)


def test_the_keyboard_draws(digits: Page, images: Path) -> None:
    empty(digits)
    digits.focus(".draw canvas")
    before = runs(digits)
    for key in ("ArrowUp", "Space", *["ArrowRight"] * 8, "Space", *["ArrowDown"] * 6):
        digits.keyboard.press(key)
    settled(digits, before)
    pixels = last(digits, "inputs")["image"][0, 0]
    assert pixels[7].max() > 0.5 and not pixels[10:].any()
    assert_as_in_python(digits, images)
    before = runs(digits)
    digits.keyboard.press("Backspace")
    settled(digits, before)
    assert not last(digits, "inputs")["image"].any()


@pytest.mark.parametrize("ground", ["dark", "light", "transparent"])
def test_a_file_that_is_dropped_is_seen_light_on_dark(digits: Page, images: Path, tmp_path: Path, ground: str) -> None:
    side = int(digits.evaluate("document.querySelector('.draw canvas').width"))
    light = np.kron(np.random.default_rng(0).integers(0, 120, (32, 32), np.uint8), np.ones((side // 32, side // 32)))
    assert light.shape == (side, side)  # so that no pixel of the file is moved
    picture = Image.fromarray(light.astype(np.uint8))
    seen = picture if ground == "dark" else ImageOps.invert(picture)
    if ground == "transparent":  # black ink on nothing
        seen = Image.new("LA", picture.size)
        seen.putalpha(picture)
    seen.save(tmp_path / "noise.png")
    expected = np.asarray(picture.resize((16, 16), Image.Resampling.BILINEAR)) / 255
    png = base64.b64encode((tmp_path / "noise.png").read_bytes()).decode()
    before = runs(digits)
    digits.evaluate(
        """(png) => {
          const files = new DataTransfer();
          files.items.add(new File([Uint8Array.from(atob(png), (letter) => letter.charCodeAt(0))], "noise.png"));
          document.querySelector(".draw").dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true }));
        }""",
        png,
    )
    settled(digits, before)
    assert np.abs(last(digits, "inputs")["image"][0, 0] - expected).max() < 0.01
    assert_as_in_python(digits, images)


def test_a_file_that_is_no_image_is_reported(digits: Page, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no image")
    digits.set_input_files(".file input", tmp_path / "notes.txt")
    digits.wait_for_selector("text=notes.txt is no image")


def test_an_example_gives_what_python_gave(digits: Page, images: Path) -> None:
    for at, example in enumerate(examples_in(images)[:3]):
        before = runs(digits)
        digits.locator(".example").nth(at).click()
        settled(digits, before)
        assert_same(last(digits, "inputs"), unpacked(example["inputs"]))
        assert_same(last(digits, "outputs"), unpacked(example["outputs"]))
        assert f"labelled {example['truth']['logits']}" in digits.inner_text(".best")


def test_words_are_typed_and_strange_ones_named(phone: Page, words: Path) -> None:
    before = runs(phone)
    phone.fill("textarea", "the dog sat on the unicorn")
    settled(phone, before)
    listed = Bundle(words / "model.onnx").manifest["words"]["words"]
    expected = [listed.index(word) for word in ("the", "dog", "sat", "on", "the", "<unk>")]
    assert last(phone, "inputs")["words"].tolist() == [expected]
    assert phone.inner_text(".unknown mark") == "unicorn"
    assert_as_in_python(phone, words)


def test_each_word_has_its_module_and_what_comes_next(phone: Page, words: Path) -> None:
    displayed = phone.locator(".word").all_inner_texts()
    outputs = last(phone, "outputs")
    modules = outputs["expert.selected"][0].argmax(-1)
    assert [text[-1] for text in displayed] == [*map(str, modules)]
    phone.locator(".word").nth(1).click()
    listed = Bundle(words / "model.onnx").manifest["classes"]["logits"]
    assert phone.inner_text(".bars .first th") == listed[outputs["logits"][0, 1].argmax()]


def test_a_curve_grows_with_the_words(phone: Page) -> None:
    curve = phone.locator('[data-name="strength"] .mark-line path')
    for text in ("the dog sat", "the dog sat on the log"):
        phone.fill("textarea", text)
        expect(curve).to_have_attribute("d", re.compile(rf"^M[^L]*(L[^L]*){{{len(text.split()) - 1}}}$"))
        heights = [float(place.split(",")[1]) for place in re.split("[ML]", curve.get_attribute("d") or "")[1:]]
        order = np.argsort(-last(phone, "outputs")["strength"][0])
        assert [*np.argsort(heights)] == [*order], "the larger, the higher"


# ------------------------------------------------------------ what it shows


def test_probabilities_and_shares_are_those_of_the_numbers(digits: Page) -> None:
    digits.locator(".example").first.click()
    outputs = last(digits, "outputs")
    powers = np.exp(outputs["logits"][0] - outputs["logits"][0].max())
    displayed = [float(text.rstrip(" %")) for text in digits.locator(".bars td.numeric").all_inner_texts()]
    assert displayed == pytest.approx(100 * powers / powers.sum(), abs=0.51)
    choice = outputs["expert.selected"][0]
    route = digits.locator(".route").first
    shares = [float(text.rstrip(" %")) for text in route.locator(".module .numeric").all_inner_texts()]
    assert shares == pytest.approx(100 * choice.sum(0) / choice.sum(), abs=0.51)


def test_a_place_has_the_colour_of_its_module(digits: Page) -> None:
    """The last patch, below right; the class token in front has no place."""
    choice = last(digits, "outputs")["expert.selected"][0]
    module = int(choice[-1].argmax())
    colour = digits.evaluate(
        """() => {
          const map = document.querySelector(".route .map");
          return [...map.getContext("2d").getImageData(map.width - 1, map.height - 1, 1, 1).data];
        }"""
    )
    base = last(digits, "inputs")["image"][0, 0, -1, -1] * 255
    named = ((0x1F, 0x77, 0xB4), (0xFF, 0x7F, 0x0E), (0x2C, 0xA0, 0x2C))[module]
    assert colour[:3] == pytest.approx([0.62 * part + 0.38 * base for part in named], abs=2)


def test_a_pool_of_the_graph_selects_its_route_and_a_module_its_bar(digits: Page) -> None:
    digits.locator(".route").nth(1).locator(".module").first.click()
    assert digits.locator(".route.selected").get_attribute("data-route") == "mixed"
    digits.locator('.canvas .box[data-id="expert"] > .title').click()
    assert digits.locator(".route.selected").get_attribute("data-route") == "expert"
    digits.locator(".route").first.locator(".module").nth(1).click()
    assert digits.locator(".route.selected .module[aria-pressed=true]").get_attribute("data-module") == "1"
    assert digits.locator('.canvas .box.selected[data-id="expert"]').count() == 1
    assert digits.locator(".route.selected .map").count() == 4  # what was chosen, and the gates of each


def test_modules_of_the_graph_stand_in_their_pool(digits: Page) -> None:
    pool = digits.locator('.canvas .box[data-id="expert"]')
    frame, *modules = (
        each.bounding_box() for each in (pool.locator("> .frame").last, *pool.locator("rect.module").all())
    )
    assert frame and modules
    for each in modules:
        assert each and frame["x"] < each["x"] and each["x"] + each["width"] < frame["x"] + frame["width"]


def test_the_graph_folds_with_the_network_off(digits: Page) -> None:
    digits.context.set_offline(True)
    displayed = digits.locator(".canvas .box").count()
    digits.focus('.canvas .box[data-id="x.patches"]')
    digits.keyboard.press("Enter")
    digits.wait_for_selector('.canvas .box[data-id="x.patches"][aria-expanded=true]')
    assert digits.locator(".canvas .box").count() > displayed
    before = runs(digits)
    digits.locator(".example").nth(1).click()
    settled(digits, before)
    digits.context.set_offline(False)


def test_the_result_is_read_out(digits: Page) -> None:
    expect(digits.locator(".outputs [aria-live]")).to_have_text(re.compile("^logits: "))


# ------------------------------------------------------------ wherever it is looked at


def test_a_phone_displays_all_without_scrolling_sideways(phone: Page) -> None:
    assert not chromium.find_wide(phone)


def test_text_is_legible_in_light_and_dark(digits: Page, phone: Page) -> None:
    for page in (digits, phone):
        for _ in range(2):
            for each in ("body", ".muted", ".output h2", ".word, .module"):
                assert contrast(page, each) >= 4.5, each
            page.click("[data-do=theme]")
    assert background(phone) == "rgb(20, 24, 30)" and background(digits) == "rgb(255, 255, 255)"


def background(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def contrast(page: Page, selector: str) -> float:
    """Of a text with the page's background, as WCAG 2 defines it."""
    text = page.evaluate("(name) => getComputedStyle(document.querySelector(name)).color", selector)
    lights = [luminance(colour) for colour in (text, background(page))]
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in colour[4:-1].split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


# ------------------------------------------------------------ what is wrong


@pytest.mark.parametrize(("name", "message"), [("model.onnx", "is damaged"), (".wasm", "The model cannot be run here")])
def test_what_is_damaged_or_missing_is_reported(
    browser: Browser, images: Path, tmp_path: Path, name: str, message: str
) -> None:
    folder = tmp_path / "page"
    shutil.copytree(images, folder)
    if name == ".wasm":
        next(folder.rglob("*.wasm")).unlink()
    else:
        content = bytearray((folder / name).read_bytes())
        content[len(content) // 2] ^= 1
        (folder / name).write_bytes(content)
    with served(folder) as address:
        page = browser.new_page()
        page.goto(address)
        page.wait_for_selector("div.fault:not([hidden])")
        assert message in page.inner_text("div.fault")
        page.close()


@pytest.mark.slow
def test_a_page_that_no_server_gave_asks_for_one(browser: Browser, images: Path) -> None:
    page = browser.new_page()
    page.goto((images / "index.html").as_uri())
    assert "must come from a server" in page.inner_text("div.fault")
    page.close()
