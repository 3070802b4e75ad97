"""Pages in a real browser: folding, search, selection, the source both ways, themes, keys, narrow screens."""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from modgraph.inspect.page.content import (
    Bars,
    Curve,
    Curves,
    Heatmap,
    Mark,
    Pane,
    Picture,
    Section,
    Table,
    Text,
)
from modgraph.inspect.page.document import page_of
from modgraph.inspect.scene import scene_of
from modgraph.program import Program, load, loads
from tests.inspect.browser import find_wide, quiet_page

MOST_BYTES = 2_000_000
SPECS = sorted(Path("specs").glob("*.mod"))


def pane_of(program: Program, **more: Any) -> Pane:
    return Pane(scene_of(program.ir), program.source, **more)


def written(folder: Path, name: str, *panes: Pane, sections: tuple[Section, ...] = ()) -> Path:
    path = folder / f"{name}.html"
    path.write_text(page_of(name, panes, sections))
    return path


NAMES = [*(path.stem for path in SPECS), "gmoe_b16"]


class Pages(dict[str, Path]):
    """Pages of specs by name, each written when it is first read."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def __missing__(self, name: str) -> Path:
        base: dict[str, Any] = {"dim": 768, "heads": 12, "sparse": (1, 3, 5, 7, 9, 11)} if name == "gmoe_b16" else {}
        self[name] = written(self.folder, name, pane_of(load(f"specs/{name.removesuffix('_b16')}.mod", **base)))
        return self[name]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    return Pages(tmp_path_factory.mktemp("pages"))


@pytest.fixture
def smn(browser: Browser, pages: Pages) -> Iterator[Page]:
    with quiet_page(browser, pages["smn"]) as page:
        page.keyboard.press("f")
        yield page


@pytest.fixture
def gmoe(browser: Browser, pages: Pages) -> Iterator[Page]:
    with quiet_page(browser, pages["gmoe"]) as page:
        page.keyboard.press("f")
        yield page


def box(page: Page, id: str) -> Any:
    return page.locator(f'.box[data-id="{id}"]')


def fold(page: Page, id: str) -> None:
    page.locator(f'[data-fold="{id}"]').click()


def highlighted(page: Page) -> list[str]:
    return page.eval_on_selector_all(".box.selected", "boxes => boxes.map((box) => box.dataset.id)")


def marked_lines(page: Page) -> list[int]:
    return page.eval_on_selector_all(".line.here", "lines => lines.map((line) => Number(line.dataset.line))")


# ---------------------------------------------------------------- size and quiet


@pytest.mark.some(3)
@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_small(pages: Pages, name: str) -> None:
    assert pages[name].stat().st_size < MOST_BYTES


def unfold_and_fold(browser: Browser, path: Path) -> None:
    with quiet_page(browser, path) as page:
        first = page.locator(".box").count()
        page.locator("[data-do=unfold]").click()
        expect(page.locator('.box[aria-expanded="false"]')).to_have_count(0)
        assert page.locator(".box").count() >= first
        page.locator("[data-do=fold]").click()
        expect(page.locator('.box[aria-expanded="true"]')).to_have_count(0)


def test_a_page_opens_unfolds_and_folds_quietly(browser: Browser, pages: Pages) -> None:
    for name in ("smn", "modular_networks_lm"):
        unfold_and_fold(browser, pages[name])


@pytest.mark.slow
def test_every_page_opens_unfolds_and_folds_quietly(browser: Browser, pages: Pages) -> None:
    for path in map(pages.__getitem__, NAMES):
        unfold_and_fold(browser, path)


# ---------------------------------------------------------------- folding


def test_a_group_folds_and_unfolds_where_it_stands(smn: Page) -> None:
    expect(box(smn, "logits.glimpses.conv")).to_have_count(1)
    before = box(smn, "logits.glimpses").bounding_box()
    fold(smn, "logits.glimpses")
    expect(box(smn, "logits.glimpses.conv")).to_have_count(0)
    expect(box(smn, "logits.glimpses")).to_have_attribute("aria-expanded", "false")
    after = box(smn, "logits.glimpses").bounding_box()
    assert before is not None and after is not None
    assert abs(before["y"] - after["y"]) < 3
    fold(smn, "logits.glimpses")
    expect(box(smn, "logits.glimpses.conv")).to_have_count(1)


def test_a_repeat_displays_its_first_repetition_until_all_are_asked_for(gmoe: Page) -> None:
    expect(box(gmoe, "blocks.0.attn")).to_have_count(1)
    expect(box(gmoe, "blocks.0")).to_have_count(0)  # the frame of the repeat is its own
    expect(box(gmoe, "blocks.1.attn")).to_have_count(0)
    expect(box(gmoe, "blocks.0-7")).to_contain_text("× 8")
    gmoe.locator('[data-all="blocks.0-7"]').click()
    expect(box(gmoe, "blocks.0")).to_have_count(1)
    expect(box(gmoe, "blocks.7.attn")).to_have_count(1)
    gmoe.locator('[data-all="blocks.0-7"]').click()
    expect(box(gmoe, "blocks.7")).to_have_count(0)


# ---------------------------------------------------------------- search


def test_search_counts_steps_and_unfolds_what_it_finds(gmoe: Page) -> None:
    gmoe.locator("[data-do=fold]").click()
    expect(gmoe.locator('.box[aria-expanded="true"]')).to_have_count(0)
    gmoe.keyboard.press("/")
    gmoe.keyboard.type("expert fc1")
    expect(gmoe.locator(".search output")).to_have_text("1 found")
    gmoe.keyboard.press("Enter")
    expect(box(gmoe, "blocks.8.expert/ffn.fc1")).to_have_class(re.compile("selected"))
    expect(gmoe.locator(".search output")).to_have_text("1 of 1")
    gmoe.keyboard.press("Escape")
    gmoe.keyboard.press("/")
    gmoe.keyboard.type("attention")
    gmoe.keyboard.press("Escape")
    for at in (1, 2, 3, 1):
        gmoe.keyboard.press("n")
        expect(gmoe.locator(".search output")).to_have_text(f"{at} of 3")


# ---------------------------------------------------------------- selection and source


def test_a_click_displays_what_is_known_of_a_node_and_its_line(smn: Page) -> None:
    box(smn, "logits.linear").click()
    panel = smn.locator(".panel")
    for text in ("linear(width=10)", "float[10]", "3,850", "weight", "[10, 384]", "logits.mean"):
        expect(panel).to_contain_text(text)
    lines = Path("specs/smn.mod").read_text().splitlines()
    assert [lines[at - 1].split()[0] for at in marked_lines(smn)] == ["logits"]
    expect(smn.locator(".line.here")).to_be_in_viewport()
    box(smn, "agree").click()
    for text in ("iterations", "gates", "router"):
        expect(panel).to_contain_text(text)


def test_a_line_selects_its_nodes_and_unfolds_them(smn: Page) -> None:
    smn.locator("[data-do=fold]").click()
    expect(box(smn, "specialist/modulated_linear")).to_have_count(0)
    lines = Path("specs/smn.mod").read_text().splitlines()
    number = next(at for at, line in enumerate(lines, 1) if line.strip().startswith("pool"))
    smn.locator(f'.line[data-line="{number}"]').click()
    expect(box(smn, "specialist/modulated_linear")).to_have_class(re.compile("selected"))
    number = next(at for at, line in enumerate(lines, 1) if line.strip().startswith("tokenizer"))
    smn.locator(f'.line[data-line="{number}"]').click()
    expect(box(smn, "logits.glimpses.conv2")).to_have_class(re.compile("selected"))
    assert number in marked_lines(smn)


def test_a_line_of_an_import_is_displayed_in_its_file(browser: Browser, pages: Pages) -> None:
    with quiet_page(browser, pages["gmoe_digits"]) as page:
        page.keyboard.press("/")
        page.keyboard.type("mlp.fc1")
        page.keyboard.press("Enter")
        expect(page.locator(".source select")).to_have_value(re.compile("gmoe.mod$"))
        expect(page.locator(".line.here")).to_contain_text('name="fc1"')


# ---------------------------------------------------------------- keys, themes, widths


def test_everything_is_done_from_the_keyboard(smn: Page) -> None:
    smn.locator('.canvas .box[tabindex="0"]').focus()
    seen = set()
    for _ in range(12):
        smn.keyboard.press("ArrowDown")
        seen.add(smn.evaluate("document.activeElement.dataset.id"))
        assert highlighted(smn) == [smn.evaluate("document.activeElement.dataset.id")]
    assert len(seen) >= 6
    box(smn, "logits.glimpses").focus()
    smn.keyboard.press("-")
    expect(box(smn, "logits.glimpses")).to_have_attribute("aria-expanded", "false")
    smn.keyboard.press("Enter")
    expect(box(smn, "logits.glimpses")).to_have_attribute("aria-expanded", "true")
    assert smn.evaluate("document.activeElement.dataset.id") == "logits.glimpses"
    outline = smn.evaluate("getComputedStyle(document.activeElement.querySelector('.frame')).strokeWidth")
    assert outline == "3px"
    line = smn.locator('.line[tabindex="0"]')
    line.focus()
    smn.keyboard.press("ArrowDown")
    smn.keyboard.press("Enter")
    assert highlighted(smn) == ["label"]
    smn.keyboard.press("Escape")
    expect(smn.locator(".box.selected")).to_have_count(0)


def test_zoom_and_pan_move_the_drawing(smn: Page) -> None:
    drawing = smn.locator(".canvas .drawing").first
    seen = [drawing.get_attribute("transform")]
    canvas = smn.locator(".canvas").bounding_box()
    assert canvas is not None
    smn.mouse.move(canvas["x"] + 30, canvas["y"] + 300)
    for act in (
        lambda: smn.mouse.wheel(0, -200),
        lambda: (smn.mouse.down(), smn.mouse.move(canvas["x"] + 90, canvas["y"] + 340), smn.mouse.up()),
        lambda: smn.get_by_role("button", name="zoom in").click(),
        lambda: smn.keyboard.press("w"),
        lambda: smn.keyboard.press("f"),
    ):
        act()
        smn.wait_for_function(
            "was => document.querySelector('.canvas .drawing').getAttribute('transform') !== was", arg=seen[-1]
        )
        seen.append(drawing.get_attribute("transform"))
    assert seen[-1] == seen[0]


def contrast(page: Page, selector: str) -> float:
    """The contrast of a text with the page behind it, as WCAG counts."""
    script = """([text, paper]) => {
      const shade = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
        .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
        .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
      const style = (where, what) => getComputedStyle(document.querySelector(where))[what];
      const [a, b] = [shade(style(text, "color")), shade(style(paper, "backgroundColor"))];
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    }"""
    ratio: float = page.evaluate(script, [selector, "body"])
    return ratio


@pytest.mark.some(1)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_follow_the_system_and_the_button(browser: Browser, pages: Pages, theme: str) -> None:
    with quiet_page(browser, pages["smn"], theme=theme) as page:
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        assert contrast(page, ".panel h2") > 7
        assert contrast(page, ".panel dt") > 4.5
        page.get_by_role("button", name="light and dark").click()
        assert page.evaluate("document.documentElement.dataset.theme") != theme
        assert contrast(page, ".panel h2") > 7
        page.emulate_media(color_scheme="light")
        assert page.evaluate("document.documentElement.dataset.theme") != theme


def test_on_a_phone_graph_source_and_details_are_tabs(browser: Browser, pages: Pages) -> None:
    with quiet_page(browser, pages["gmoe"], width=400) as page:
        assert not find_wide(page)
        expect(page.locator(".source")).to_be_hidden()
        box(page, "image").click()
        page.get_by_role("tab", name="Details").click()
        expect(page.locator(".panel")).to_contain_text("float[3, 224, 224]")
        expect(page.locator(".canvas")).to_be_hidden()
        assert not find_wide(page)
        page.get_by_role("tab", name="Spec").click()
        assert not find_wide(page)
        page.locator(".line", has_text="logits = x").click()
        page.get_by_role("tab", name="Graph").click()
        expect(box(page, "head")).to_have_class(re.compile("selected"))


# ---------------------------------------------------------------- two panes, sections


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b"")
    )


def test_two_panes_are_picked_and_folded_together(browser: Browser, tmp_path: Path) -> None:
    text = re.sub(r"\bagree\b", "agreed", Path("specs/smn.mod").read_text())
    moved = {"agree": Mark("moved", ("was agree",), counterpart="agreed")}
    changed = Mark("changed", ("modules: 2 → 3",))
    path = written(
        tmp_path,
        "diff",
        pane_of(load("specs/smn.mod"), label="old", marks={"specialist": changed, **moved}),
        pane_of(loads(text, modules=3), label="new", marks={"specialist": changed}),
    )
    with quiet_page(browser, path) as page:
        panes = page.locator(".pane")
        expect(panes.nth(0).locator(".box.mark-changed")).to_have_count(1)
        panes.nth(0).locator('.box[data-id="agree"]').click()
        expect(panes.nth(1).locator('.box[data-id="agreed"]')).to_have_class(re.compile("selected"))
        expect(page.locator(".panel [data-mark=moved]")).to_contain_text("was agree")
        for is_open in ("true", "false"):
            panes.nth(0).locator('[data-fold="logits.glimpses"]').click()
            expect(panes.nth(1).locator('.box[data-id="logits.glimpses"]')).to_have_attribute("aria-expanded", is_open)


def test_sections_stand_in_a_tab_of_their_own(browser: Browser, tmp_path: Path) -> None:
    content = (
        Text("a note"),
        Table(("name", "value"), [("loss", 0.25), ("nothing", float("nan"))], "numbers"),
        Bars(("0", "1"), (0.25, 0.75), "load"),
        Heatmap(("a", "b"), ("x", "y"), ((1, 0), (0, 2)), "together"),
        Curves((Curve("loss", [(0, 1.0), (1, 0.5), (2, float("inf"))]),), "over time", "epoch"),
        Picture(png(), "a picture"),
    )
    path = written(tmp_path, "data", pane_of(load("specs/smn.mod")), sections=(Section("Measured", content),))
    with quiet_page(browser, path) as page:
        expect(page.locator(".charts")).to_be_hidden()
        page.get_by_role("tab", name="Data").click()
        for text in ("Measured", "a note", "numbers", "0.25", "nan", "together", "over time", "epoch"):
            expect(page.locator(".charts")).to_contain_text(text)
        assert page.evaluate("document.querySelector('.charts img').naturalWidth") == 1


# ---------------------------------------------------------------- hostile texts

HOSTILE = """</script><script>window.hit = 1</script><img src=x onerror="window.hit = 1"><!-- ]]> & ' \\u2028"""


def test_hostile_texts_are_displayed_and_do_nothing(browser: Browser, tmp_path: Path) -> None:
    quoted = json.dumps(HOSTILE.replace("\\", "/"))
    head = f"# {HOSTILE}\nmodel m(note={quoted}) {{ # <!-- <script>\n"
    text = head + "  input x: float[4]\n  y = x -> linear(4)\n  output y\n}\n"
    program = loads(text, "</title><script>window.hit = 1</script>.mod")
    marks = {"x": Mark("changed", (HOSTILE,)), HOSTILE: Mark("added", counterpart=HOSTILE)}
    section = Section(HOSTILE, (Text(HOSTILE), Table((HOSTILE,), ((HOSTILE,),), HOSTILE), Bars((HOSTILE,), (1.0,))))
    path = tmp_path / "hostile.html"
    path.write_text(page_of(HOSTILE, [pane_of(program, label=HOSTILE, marks=marks)], [section]))
    with quiet_page(browser, path) as page:
        page.locator('.box[data-id="x"]').click()
        expect(page.locator(".panel")).to_contain_text("<img src=x")
        expect(page.locator(".source")).to_contain_text("</script>")
        page.get_by_role("tab", name="Data").click()
        expect(page.locator(".charts")).to_contain_text("<img src=x")
        assert page.title() == HOSTILE
        assert page.evaluate("window.hit") is None
        assert page.locator("img").count() == 0
