"""What a page and a picture have at first: readable text, routes as papers draw them, and the options of a drawing."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import modgraph
from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.inspect.drawing import write_svg
from modgraph.inspect.graph_text import write_dot, write_mermaid
from modgraph.inspect.page import document
from modgraph.inspect.page.content import FITTING, DrawingOptions, Pane
from modgraph.inspect.page.document import page_of, read_colours, render, room_of
from modgraph.inspect.scene import Scene, scene_of
from modgraph.program import load
from tests.inspect.browser import quiet_page

SPECS = [*sorted(Path("specs").glob("*.mod")), *sorted(Path("specs/zoo").glob("*.mod"))]
LEAST = 9  # pixels of a text
MOST_LAYOUTS = 6  # until a page is written
COUNT = """globalThis.count = 0; globalThis.plain = ELK.prototype.layout;
ELK.prototype.layout = function (...given) { count++; return plain.apply(this, given); }; 0"""


@pytest.fixture(scope="module")
def counting() -> Iterator[Callable[[], int]]:
    """The number of layouts of the renderer since the last call."""
    engine = document._engine()
    engine.eval(COUNT)
    yield lambda: int(engine.eval("var seen = count; count = 0; seen"))
    engine.eval("ELK.prototype.layout = plain; 0")


@pytest.mark.some(3)
@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_text_of_nine_pixels_fits_across_a_page_of_every_spec(path: Path, counting: Callable[[], int]) -> None:
    pane = Pane(scene_of(load(path).ir))
    room = room_of(1, has_source=True)
    counting()
    layout = render(pane.as_json(), room, pane.options)["positions"]
    assert layout["width"] <= room[0], f"{layout['width']} pixels do not fit, {room[0]} do"
    assert 1 <= counting() <= MOST_LAYOUTS


def written(folder: Path, name: str, options: DrawingOptions = FITTING) -> Path:
    path = folder / f"{name}.html"
    program = load(f"specs/{name}.mod")
    path.write_text(page_of(name, [Pane(scene_of(program.ir), program.source, options=options)]))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("looks")


@pytest.fixture
def mixtral(browser: Browser, folder: Path) -> Iterator[Page]:
    (folder / "zoo").mkdir(exist_ok=True)
    path = folder / "zoo/mixtral.html"
    with quiet_page(browser, path if path.exists() else written(folder, "zoo/mixtral")) as page:
        yield page


def smallest_text(page: Page) -> float:
    """The size on the screen of the smallest text in the drawing."""
    found: float = page.evaluate("""() => {
      const texts = [...document.querySelectorAll(".canvas > svg > .drawing text")], scale = texts[0].getScreenCTM().a;
      return Math.min(...texts.map((text) => parseFloat(getComputedStyle(text).fontSize) * scale));
    }""")
    return found


@pytest.mark.parametrize("name", ["mt_rmn", "smn"])
def test_texts_are_readable_on_the_screen_and_the_drawing_fits_across(
    browser: Browser, folder: Path, name: str
) -> None:
    with quiet_page(browser, written(folder, name)) as page:
        assert smallest_text(page) >= LEAST - 0.01
        drawing = page.locator(".canvas > svg > .drawing").bounding_box()
        canvas = page.locator(".canvas").bounding_box()
        assert drawing is not None
        assert canvas is not None
        assert canvas["x"] <= drawing["x"]
        assert drawing["x"] + drawing["width"] <= canvas["x"] + canvas["width"]


def test_a_phone_folds_until_the_drawing_fits_across(browser: Browser, folder: Path) -> None:
    with quiet_page(browser, written(folder, "smn"), width=390) as page:
        route = page.locator('.box[data-id="logits.specialist"]')
        expect(route).to_have_attribute("aria-expanded", "false")
        assert smallest_text(page) >= LEAST - 0.01


def test_unfolding_all_keeps_a_box_in_its_place_and_readable(mixtral: Page) -> None:
    box = mixtral.locator('.box[data-id="embed_tokens"]')
    box.click()
    mixtral.get_by_role("button", name="zoom out").click()
    mixtral.get_by_role("button", name="zoom out").click()
    assert smallest_text(mixtral) < LEAST
    before = box.bounding_box()
    mixtral.locator("[data-do=unfold]").click()
    expect(mixtral.locator('.box[aria-expanded="false"]')).to_have_count(0)
    after = box.bounding_box()
    assert before is not None
    assert after is not None
    assert (after["x"], after["y"]) == pytest.approx((before["x"], before["y"]), abs=3)
    assert smallest_text(mixtral) >= LEAST - 0.01


def test_edges_of_lengths_and_losses_come_on_request(mixtral: Page) -> None:
    lengths, losses = mixtral.get_by_label("lengths"), mixtral.get_by_label("losses")
    expect(lengths).not_to_be_checked()
    expect(mixtral.locator(".edge-length")).to_have_count(0)
    lengths.check()
    expect(mixtral.locator(".edge-length").first).to_be_attached()
    expect(mixtral.locator('.box[data-id="time_length"]')).to_be_attached()
    expect(losses).not_to_be_checked()  # there is no room for them at first
    losses.check()
    expect(mixtral.locator(".box.kind-loss").first).to_be_attached()
    losses.uncheck()
    expect(mixtral.locator(".box.kind-loss")).to_have_count(0)
    mixtral.locator(".line", has_text="loss cross_entropy").click()
    expect(mixtral.locator(".box.kind-loss").first).to_be_attached()
    expect(losses).to_be_checked()


def test_a_route_has_tokens_router_and_modules_side_by_side(mixtral: Page) -> None:
    names = (".tokens", '.box[data-id="layers.0.x2.weighted"]', '.box[data-id="layers.0.expert"]')
    places = [mixtral.locator(name).first.bounding_box() for name in names]
    tokens, router, modules = (place for place in places if place is not None)
    assert tokens["x"] + tokens["width"] < router["x"]
    assert router["x"] + router["width"] < modules["x"]
    count = mixtral.locator(".module").count()
    assert 1 < count < 8, "the first and the last of eight"
    assert mixtral.locator(".strand").count() == count


def test_panes_resize_by_keys_and_keep_their_width(mixtral: Page) -> None:
    canvas = mixtral.locator(".canvas")
    before, splitter = canvas.bounding_box(), mixtral.get_by_role("separator", name="width of the spec")
    splitter.focus()
    splitter.press("ArrowRight")
    after = canvas.bounding_box()
    assert before is not None
    assert after is not None
    assert before["width"] - after["width"] == pytest.approx(24, abs=1)
    mixtral.reload()
    again = canvas.bounding_box()
    assert again is not None
    assert again["width"] == pytest.approx(after["width"], abs=1)
    details = mixtral.get_by_role("separator", name="width of the details").bounding_box()
    assert details is not None
    mixtral.mouse.move(details["x"] + 4, 400)
    mixtral.mouse.down()
    mixtral.mouse.move(details["x"] - 46, 400)
    mixtral.mouse.up()
    narrower = canvas.bounding_box()
    assert narrower is not None
    assert again["width"] - narrower["width"] == pytest.approx(50, abs=2)


def test_long_lines_wrap_next_to_their_numbers(mixtral: Page) -> None:
    assert mixtral.evaluate(
        "(({scrollWidth, clientWidth}) => scrollWidth <= clientWidth)(document.querySelector('.source'))"
    )
    lines = mixtral.evaluate("""() => [...document.querySelectorAll(".line")].map((line) => {
      const [number, text] = [...line.children].map((each) => each.getBoundingClientRect());
      return [line.children[0].textContent, line.children[1].textContent, number.top - text.top, text.height];
    })""")
    source = Path("specs/zoo/mixtral.mod").read_text().split("\n")
    assert [(int(number), text) for number, text, _, _ in lines] == [*enumerate(source, 1)]
    assert max(abs(apart) for _, _, apart, _ in lines) < 1
    assert max(height for *_, height in lines) > 30, "a long line has more than one row"


# ---------------------------------------------------------------- options


def scene(name: str = "specs/zoo/mixtral.mod") -> Scene:
    return scene_of(load(name).ir)


def boxes_of(picture: str) -> set[str]:
    return {
        each.get("data-id", "") for each in ElementTree.fromstring(picture).iter() if each.get("role") == "treeitem"
    }


def boxes_of_dot(text: str) -> set[str]:
    return set(re.findall(r'^ *"([^"]+)" \[label', text, re.M))


def test_a_picture_has_no_signs_that_fold() -> None:
    picture = ElementTree.fromstring(write_svg(scene()))
    assert not [each for each in picture.iter() if each.get("data-fold")]


def test_depth_says_how_many_levels_are_unfolded() -> None:
    whole = scene()
    top = {box.id for box in whole.boxes if box.serves != "lengths"}
    assert boxes_of(write_svg(whole, DrawingOptions(depth=0))) == top
    assert boxes_of_dot(write_dot(whole, DrawingOptions(depth=0))) == top
    counts = [len(boxes_of(write_svg(whole, DrawingOptions(depth=depth)))) for depth in range(4)]
    assert counts == sorted(set(counts)), "each level has more boxes"
    assert counts[1] == len(top) + len(whole.boxes[4].children[0].children), "a repeat of one box is one level with it"
    lengths = [len(write_mermaid(whole, DrawingOptions(depth=depth))) for depth in range(3)]
    assert lengths == sorted(set(lengths))


def test_a_direction_changes_where_values_go() -> None:
    sides = [
        [float(root.get(side, 0)) for side in ("width", "height")]
        for root in (
            ElementTree.fromstring(write_svg(scene(), DrawingOptions(0, direction))) for direction in ("down", "right")
        )
    ]
    assert sides[0][0] < sides[0][1]
    assert sides[1][0] > sides[1][1]
    assert "rankdir=LR" in write_dot(scene(), DrawingOptions(direction="right"))
    assert "flowchart LR" in write_mermaid(scene(), DrawingOptions(direction="right"))


def test_without_losses_nothing_that_serves_only_them_is_rendered() -> None:
    whole = scene()
    gone = {box.id for box in whole.walk() if box.kind in ("loss", "target")} | {"layers.0.shares.multiply"}
    for draw, boxes in ((write_svg, boxes_of), (write_dot, boxes_of_dot)):
        assert boxes(draw(whole, DrawingOptions(depth=2))) & gone
        left = boxes(draw(whole, DrawingOptions(depth=2, without=("losses",))))
        assert not left & gone
        assert "output.logits" in left
    assert "loss" not in write_mermaid(whole, DrawingOptions(without=("losses",)))


def test_shapes_parameters_and_lengths_are_left_out_or_rendered() -> None:
    whole = scene()
    assert "time×32" in write_svg(whole)
    assert "time×32" not in write_svg(whole, DrawingOptions(without=("shapes",)))
    assert "time×32" not in write_dot(whole, DrawingOptions(without=("shapes",)))
    assert "parameters" in write_svg(whole)
    assert "parameters" not in write_svg(whole, DrawingOptions(without=("parameters",)))
    for draw in (write_svg, write_dot, write_mermaid):
        assert "time_length" not in draw(whole)
        assert "time_length" in draw(whole, DrawingOptions(lengths=True))


def test_graphs_for_other_programs_have_the_colours_of_pages() -> None:
    colours, dot, mermaid = read_colours(), write_dot(scene()), write_mermaid(scene())
    assert f'fillcolor="{colours["pool"]}"; color="{colours["pool-line"]}"' in dot
    assert f"classDef pool fill:{colours['pool']},stroke:{colours['pool-line']}" in mermaid
    assert dot.count("fontcolor") == 3, "all texts have a colour of their own, on any ground"


def test_options_reach_files_from_commands_and_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    command = ["--depth", "1", "--direction", "right", "--without", "losses", "--without", "shapes", "--lengths"]
    assert main(["visualize", "specs/smn.mod", "-o", str(first), *command]) == 0
    program = load("specs/smn.mod")
    program.visualize(second, depth=1, direction="right", without=("losses", "shapes"), lengths=True)
    assert first.read_text() == second.read_text()
    assert main(["visualize", "specs/smn.mod", "-o", str(tmp_path / "a.dot"), "--without", "parameters"]) == 1
    assert "MG951" in capsys.readouterr().err
    with pytest.raises(ModgraphError) as caught:
        modgraph.visualize(program, depth=-1, direction="up", without="noise")  # the types of the API allow any text
    assert [each.code for each in caught.value.diagnostics] == ["MG950"] * 3


def test_a_page_opens_with_its_options(browser: Browser, folder: Path) -> None:
    options = DrawingOptions(depth=0, direction="right", without=("losses",))
    with quiet_page(browser, written(folder, "smn", options)) as page:
        expect(page.locator('.canvas .box[aria-expanded="true"]')).to_have_count(0)
        expect(page.locator(".canvas .box.kind-loss")).to_have_count(0)
        page.locator('[data-fold="logits.glimpses"]').click()
        first, last = (
            page.locator(f'.box[data-id="logits.glimpses.{name}"]').bounding_box() for name in ("conv", "tokens")
        )
        assert first is not None
        assert last is not None
        assert first["x"] + first["width"] < last["x"], "values still go to the right"
