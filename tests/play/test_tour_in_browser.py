"""The tour on the screen: a script types the answers; a hostile text of a step injects nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator

import modgraph_web
import pytest
from playwright.sync_api import Browser, Page, expect

from modgraph.play.tour import read_tour
from tests.inspect.browser import started
from tests.play.screen import opened_screen, served_screen, show, text_of

pytestmark = pytest.mark.skipif(not modgraph_web.available(), reason="modgraph-web was built without npm")
browser = pytest.fixture(started, scope="module")
STEPS = read_tour()
TOUR = "playground.results.views.get('tour').tour"
HURT = (
    "<img src=http://elsewhere.test/x onerror='window.hurt=1'> <script>window.hurt=1</script> [a](javascript:hurt) "
    "<svg onload='window.hurt=1'></svg> <form action=http://elsewhere.test><input></form>"
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_screen(tmp_path_factory.mktemp("screen")) as found:
        yield found


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with opened_screen(browser, address) as found:
        show(found, "tour")
        yield found


def press(page: Page, name: str) -> None:
    page.locator(f"[data-tour={name}]").click()


def type_over(page: Page, text: str) -> None:
    page.locator(".cm-content:visible").first.click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def test_a_script_that_types_the_answers_finishes_the_tour(page: Page) -> None:
    own = page.evaluate("[...playground.work.files]")
    press(page, "begin")
    for number, step in enumerate(STEPS):
        expect(page.locator(".tour h2")).to_have_text(step["title"])
        assert text_of(page) == step["begin"]
        expect(page.locator("#view-tour .verdict")).not_to_have_class("verdict met")
        type_over(page, step["answer"])
        expect(page.locator("#view-tour .verdict")).to_contain_text("Done")
        expect(page.locator("#view-tour .muted").first).to_contain_text(f"{number + 1} done")
        if number + 1 < len(STEPS):
            press(page, "next")
    expect(page.locator("#view-tour .verdict")).to_contain_text("the whole tour")
    files = dict(page.evaluate("[...playground.work.files]"))
    assert dict(own).items() <= files.items(), "the visitor's own files are as they were"
    page.reload()
    page.wait_for_selector("[data-state=ready]")
    show(page, "tour")
    expect(page.locator(".tour h2")).to_have_text(STEPS[-1]["title"])
    expect(page.locator("#view-tour .muted").first).to_contain_text(f"{len(STEPS)} done")


def test_the_answer_opens_and_is_put_into_the_editor(page: Page) -> None:
    press(page, "begin")
    answer = page.locator(".tour-answer")
    expect(answer).to_be_hidden()
    press(page, "show")
    expect(answer).to_contain_text("cross_entropy(logits, label)")
    type_over(page, "# mine\n")
    press(page, "use")
    expect(page.locator("#view-tour .verdict")).to_contain_text("Done")
    assert text_of(page) == STEPS[0]["answer"]
    page.locator(".cm-content:visible").first.press("Control+z")
    assert text_of(page) == "# mine\n", "what the visitor wrote comes back"


def test_links_of_the_tutorial_lead_to_the_documents_where_they_are_known(page: Page) -> None:
    links = "See [this](../language.md#causality), [that](06-router.md) and [evil](//elsewhere.test/)."
    for home, expected in (
        ("../docs/", ["/docs/language.html#causality", "/docs/tutorial/06-router.html"]),
        (None, []),
    ):
        draw = f"(text) => {{ playground.home = {json.dumps(home)}; {TOUR}.step.text = text; {TOUR}.drawStep(); }}"
        page.evaluate(draw, links)
        found = page.locator(".tour-text a").evaluate_all("(every) => every.map((each) => each.href)")
        place = page.url.partition("#")[0].removesuffix("/")
        assert found == [place.removesuffix("/play") + each for each in expected]
        expect(page.locator(".tour-text")).to_have_text("See this, that and evil.")


def test_on_a_phone_the_text_of_a_step_stands_above_the_editor(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    tour, editor = (page.locator(each).bounding_box() for each in (".tour-text", "#editor"))
    assert tour and editor and tour["y"] < 844 / 2 and editor["y"] > tour["y"]
    press(page, "begin")
    facts, editor = (page.locator(each).bounding_box() for each in (".facts", "#editor"))
    assert facts and editor and 0 < facts["y"] < editor["y"] < 600, "the facts and the text are in sight together"
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_hostile_text_of_a_step_injects_nothing(page: Page) -> None:
    page.evaluate(f"(text) => {{ Object.assign({TOUR}.step, {{ text, title: text }}); {TOUR}.drawStep(); }}", HURT)
    assert page.evaluate("window.hurt") is None
    assert page.locator(".tour-text").locator("img, script, a, svg, form, input").count() == 0
    expect(page.locator(".tour h2")).to_have_text(HURT)
