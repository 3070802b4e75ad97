"""What a visitor does on the screen of the playground, in a real browser."""

from __future__ import annotations

import json
import zlib
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import modgraph_web
import pytest
from playwright.sync_api import Browser, Page, expect

import modgraph
from modgraph.cli import main
from modgraph.play.library import read_library
from modgraph.syntax import keywords
from tests.inspect.browser import find_wide, started
from tests.play.screen import SPEC, go, opened_screen, put, served_screen, settle, show, text_of

pytestmark = pytest.mark.skipif(not modgraph_web.available(), reason="modgraph-web was built without npm")
browser = pytest.fixture(started, scope="module")
FOCUSED = "(({ dataset, role, tagName }) => dataset.do || role || tagName)(document.activeElement)"
TABS = ("graph", "costs", "text", "difference", "run", "help", "tour")
ENDED_WHILE_ASKED = """
async (reason) => {
  const { connection, results } = playground, [first] = connection.workers;
  connection.answering = { postMessage() {} }; // asked, it ends before it answers
  results.changed();
  await new Promise((resolve) => setTimeout(resolve));
  connection.failed(first, reason);
}
"""
HOSTILE = "</script><img src=http://elsewhere.test/x onerror=window.hurt=1><script>window.hurt=1</script>"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_screen(tmp_path_factory.mktemp("screen")) as found:
        yield found


@pytest.fixture(scope="module")
def shared(browser: Browser, address: str) -> Iterator[Page]:
    with opened_screen(browser, address) as page:
        yield page


@pytest.fixture
def page(shared: Page) -> Page:
    """The page that all tests share, with the small spec and its graph in sight."""
    put(shared, {"small.mod": SPEC})
    shared.locator("[role=tab][data-tab=graph]").click()
    shared.wait_for_selector("#view-graph[data-state=current]")
    return shared


def link(work: Any) -> str:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(json.dumps(work).encode()) + packer.flush()
    return "#work=" + urlsafe_b64encode(packed).decode().rstrip("=")


def copy_link(page: Page) -> str:
    page.evaluate("playground.status.say('')")
    page.locator("[data-do=link]").click()
    expect(page.locator(".status")).to_contain_text("link")
    return str(page.evaluate("location.href"))


def work(files: dict[str, str], **values: str) -> dict[str, Any]:
    return {"version": 1, "files": [*files.items()], "values": [*values.items()], "active": next(iter(files))}


# ------------------------------------------------------------ messages


def test_a_mistake_has_the_words_of_the_command_line(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    go(page, "-> relu")
    page.keyboard.type("x")
    message = page.locator(".problem pre")
    expect(message).to_contain_text("relux")
    settle(page)
    with monkeypatch.context() as patch:
        patch.chdir(tmp_path)
        Path("small.mod").write_text(SPEC.replace("-> relu", "-> relux"))
        main(["check", "small.mod"])
    assert message.text_content() in capsys.readouterr().err, "the caret and the help are those of check"
    expect(page.locator(".cm-lintRange-error")).to_have_count(1)  # it is underlined
    expect(page.locator("#view-graph")).to_have_attribute("data-state", "outdated")
    assert page.locator("#view-graph .box").count() > 3, "the last good graph stays"
    page.keyboard.press("Backspace")
    expect(page.locator(".problem")).to_have_count(0)
    page.wait_for_selector("#view-graph[data-state=current]")


def test_a_mistake_in_the_recipe_stands_with_the_recipe(page: Page) -> None:
    put(page, {"small.yaml": "data: {name: digits}\ntrain: {epoch: 3}\n", "small.mod": SPEC})
    expect(page.locator(".problem pre").first).to_contain_text('unknown key "epoch" in train')


def test_a_link_of_a_message_leads_to_its_help(page: Page) -> None:
    put(page, {"small.mod": SPEC.replace("relu", "rellu")})
    page.locator(".problem .link", has_text="explain").click()
    expect(page.locator("#view-help pre")).to_contain_text("MG202")


HOLD = """
() => {
  const [, second] = playground.connection.workers, held = [];
  second.postMessage = (text) => held.push(text);
  playground.release = () => { delete second.postMessage; for (const text of held) second.postMessage(text); };
}
"""
QUEUE = """
async () => {
  const { Queue } = await import("./page/queue.js"), queue = new Queue(() => {});
  const about = { params: { uri: "a", textDocument: { uri: "a" } } };
  const methods = ["modgraph/diff", "textDocument/completion", "textDocument/didClose", "modgraph/graph"];
  methods.forEach((method, id) => queue.add({ method, ...(method.endsWith("didClose") ? {} : { id }), ...about }));
  return methods.map(() => queue.next().method);
}
"""


def test_a_message_does_not_wait_for_results(page: Page) -> None:
    page.wait_for_function("() => playground.connection.answering === playground.connection.workers[1]")
    page.evaluate(HOLD)
    page.evaluate("playground.work.set('width', '6')")
    page.wait_for_function("() => playground.results.isRunning")
    go(page, "-> relu")
    page.keyboard.type("x")
    expect(page.locator(".problem pre")).to_contain_text("relux")
    page.keyboard.press("Escape")
    page.keyboard.press("Backspace")
    expect(page.locator(".problem")).to_have_count(0)
    page.evaluate("playground.release()")
    expect(page.locator("#view-graph")).to_contain_text("linear(width=6)")


def test_results_wait_for_what_the_editor_asks(page: Page) -> None:
    found = page.evaluate(QUEUE)
    assert found == ["textDocument/completion", "textDocument/didClose", "modgraph/diff", "modgraph/graph"]


def test_the_first_worker_answers_what_the_second_leaves(browser: Browser, address: str) -> None:
    with opened_screen(browser, address) as page:
        page.wait_for_function("() => playground.connection.answering === playground.connection.workers[1]")
        page.evaluate(HOLD)
        page.evaluate("playground.work.set('width', '6')")
        page.wait_for_function("() => playground.results.isRunning")
        page.evaluate("playground.connection.failed(playground.connection.workers[1], 'out of memory')")
        expect(page.locator(".notice")).to_contain_text("out of memory")
        expect(page.locator("#view-graph")).to_contain_text("linear(width=6)")


# ------------------------------------------------------------ the editor


def test_rename_changes_every_use(page: Page) -> None:
    go(page, "hidden")
    page.keyboard.press("F2")
    page.locator(".cm-lsp-rename-panel input").fill("inner")
    page.keyboard.press("Enter")
    page.wait_for_function("() => !playground.editor.view.state.doc.toString().includes('hidden')")
    assert text_of(page) == SPEC.replace("hidden", "inner")


def test_a_key_formats_as_fmt_does(page: Page) -> None:
    put(
        page,
        {"small.mod": SPEC.replace("  logits = hidden  ->", "  logits=hidden->").replace("  hidden =", " hidden  =")},
    )
    go(page, "model")
    page.keyboard.press("Shift+Alt+F")
    page.wait_for_function("(text) => playground.editor.view.state.doc.toString() === text", arg=SPEC)


def test_completion_and_hover_come_from_the_language_server(page: Page) -> None:
    go(page, "-> relu")
    page.keyboard.type(" -> soft")
    expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text("softmax")
    page.keyboard.press("Escape")
    page.locator(".cm-line", has_text="hidden = x").locator("text=linear").first.hover()
    expect(page.locator(".cm-lsp-hover-tooltip")).to_contain_text("linear")
    page.mouse.move(5, 5)


def test_a_definition_in_another_file_opens(page: Page) -> None:
    part = "block twice(width) {\n  input x: float[width]\n  y = x + x\n  output y\n}\n"
    spec = 'import twice from "part.mod"\n\n' + SPEC.replace("-> relu", "-> twice(width)")
    put(page, {"small.mod": spec, "part.mod": part})
    expect(page.locator(".problem")).to_have_count(0)
    go(page, "-> twice")
    page.keyboard.press("F12")
    page.wait_for_function("() => playground.work.active === 'part.mod'")


def test_the_colours_know_every_word_of_the_language(page: Page) -> None:
    words = sorted(set(keywords()) - {"over"})
    put(page, {"small.mod": SPEC, "words.mod": "\n".join(words)})
    page.evaluate("playground.work.open('words.mod')")
    is_plain = "(line) => /\\w/.test(line.textContent) && !line.querySelector('span')"
    plain = page.locator(".cm-line:visible").evaluate_all(
        f"(every) => every.filter({is_plain}).map((line) => line.innerText)"
    )
    assert plain == [], "each keyword has a colour"


# ------------------------------------------------------------ results


def test_a_slider_changes_graph_and_costs(page: Page) -> None:
    show(page, "costs")
    whole = page.locator(".costs .whole td").first
    expect(whole).to_have_text(f"{modgraph_cost(4):,}")
    page.locator("input[type=range][data-name=width]").fill("7")
    expect(whole).to_have_text(f"{modgraph_cost(7):,}")
    show(page, "graph")
    expect(page.locator("#view-graph")).to_contain_text("linear(width=7)")
    page.locator(".reset").click()
    expect(page.locator("#view-graph")).to_contain_text("linear(width=4)")


def modgraph_cost(width: int) -> int:
    return (8 + 1) * width + (width + 1) * 3


def test_a_value_that_does_not_fit_is_refused_and_the_last_graph_stays(page: Page) -> None:
    page.locator("input[type=text][data-name=width]").fill("none")
    expect(page.locator("#view-graph .note")).not_to_be_empty()
    expect(page.locator("#view-graph")).to_have_attribute("data-state", "outdated")
    assert page.locator("#view-graph .box").count() > 3


def test_the_pinned_state_is_compared(page: Page) -> None:
    page.locator("[data-do=pin]").click()
    page.wait_for_selector("[data-do=pin][aria-pressed=true]")
    page.locator("input[type=range][data-name=width]").fill("5")
    show(page, "difference")
    expect(page.locator("#view-difference .changes")).to_contain_text("width: 4 → 5")
    expect(page.locator("#view-difference .mark-changed").nth(1)).to_be_attached()  # both graphs have marks
    show(page, "costs")
    expect(page.locator(".costs .more").first).to_have_text(f" +{modgraph_cost(5) - modgraph_cost(4)}")


def test_the_text_after_a_pass_is_that_of_show(page: Page, tmp_path: Path) -> None:
    (tmp_path / "small.mod").write_text(SPEC)
    show(page, "text")
    text = page.evaluate("playground.results.view.data.text")
    assert text == str(modgraph.load(tmp_path / "small.mod").ir)
    page.locator("#view-text select").select_option(index=1)
    page.wait_for_function("() => playground.results.view.data.after !== null")


# ------------------------------------------------------------ links


def test_a_link_holds_files_and_parameters(browser: Browser, address: str, page: Page) -> None:
    put(page, {"other.mod": SPEC.replace("small", "other"), "own.yaml": "train: {epochs: 2}\n"}, width="9")
    whole = copy_link(page)
    with opened_screen(browser, whole) as again:
        again.wait_for_selector("#view-graph[data-state=current]")
        expect(again.locator(".files [role=tab]")).to_have_count(2)
        expect(again.locator("#view-graph")).to_contain_text("linear(width=9)")


def test_a_link_holds_the_pinned_state(browser: Browser, address: str, page: Page) -> None:
    page.locator("[data-do=pin]").click()
    page.wait_for_selector("[data-do=pin][aria-pressed=true]")
    page.locator("input[type=range][data-name=width]").fill("5")
    with opened_screen(browser, copy_link(page)) as again:
        expect(again.locator("[data-do=pin]")).to_have_attribute("aria-pressed", "true")
        show(again, "costs")
        expect(again.locator(".costs .more").first).to_have_text(f" +{modgraph_cost(5) - modgraph_cost(4)}")
        show(again, "difference")
        expect(again.locator("#view-difference .changes")).to_contain_text("width: 4 → 5")
        sign = again.locator("#view-difference .sign circle").first
        assert sign.evaluate("(each) => getComputedStyle(each).fill") != "rgb(0, 0, 0)", "signs have their colours"
        again.locator("[data-do=pin]").click()
        expect(again.locator("#view-difference")).to_contain_text("Pin a state")


def test_a_text_with_mistakes_cannot_be_pinned(page: Page) -> None:
    put(page, {"small.mod": SPEC.replace("relu", "rellu")})
    page.locator("[data-do=pin]").click()
    expect(page.locator(".status")).to_contain_text("nothing is pinned")
    expect(page.locator("[data-do=pin]")).to_have_attribute("aria-pressed", "false")


DAMAGED = {
    "cut": link(work({"a.mod": SPEC}))[:-9],
    "no base64": "#work=%%%%",
    "another version": link({**work({"a.mod": SPEC}), "version": 2}),
    "no files": link({"version": 1, "files": [], "values": [], "active": ""}),
    "a path outside": link(work({"../a.mod": SPEC})),
    "another kind of file": link(work({"a.js": "alert(1)"})),
    "a file that is no text": link({**work({"a.mod": SPEC}), "files": [["a.mod", {"toString": 1}]]}),
    "keys of prototypes": link({**work({"a.mod": SPEC}), "values": [["__proto__", {"hurt": 1}]]}),
    "a pinned state without a text": link({**work({"a.mod": SPEC}), "pinned": {"values": []}}),
    "a pinned state from elsewhere": link(
        {**work({"a.mod": SPEC}), "pinned": {"text": {"uri": "http://elsewhere.test/a.mod"}, "values": []}}
    ),
    "values of a pinned state": link({**work({"a.mod": SPEC}), "pinned": {"text": SPEC, "values": [["__proto__", 1]]}}),
    "enormous": link(work({"a.mod": " " * 5_000_000})),
    "not an object": link([1, 2]),
    "null": link(None),
}


@pytest.mark.parametrize("fragment", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_link_is_refused_with_a_message(page: Page, fragment: str) -> None:
    before = text_of(page)
    page.evaluate("(hash) => { location.hash = hash; }", fragment)
    expect(page.locator(".notice")).to_contain_text("The link cannot be opened")
    assert text_of(page) == before
    assert page.evaluate("({}).hurt") is None
    page.locator(".notice button", has_text="Close").click()


def test_a_hostile_link_is_only_text(browser: Browser, address: str) -> None:
    spec = f"# {HOSTILE}\n" + SPEC.replace("relu", f'"{HOSTILE}"').replace("hidden", "constructor")
    files = {
        "small.mod": spec,
        f"{'x' * 40}.mod": HOSTILE,
        "small.yaml": f"data: {{name: javascript:alert(1)}}\n# {HOSTILE}",
    }
    with opened_screen(browser, address + link(work(files, __proto__="1", width=HOSTILE))) as page:
        expect(page.locator(".problem").first).to_be_visible()
        for tab in ("costs", "text", "difference", "help", "graph"):
            page.locator(f"[role=tab][data-tab={tab}]").click()
            settle(page)
        page.evaluate("(word) => playground.explain(word)", HOSTILE)
        settle(page)
        page.locator(".cm-line", has_text="constructor =").locator("text=constructor").first.hover()
        page.wait_for_timeout(700)
        assert page.evaluate("window.hurt") is None
        assert page.locator("img, iframe, object, script[src*=elsewhere]").count() == 0


# ------------------------------------------------------------ files, keys, storage


@pytest.mark.slow
@pytest.mark.parametrize("entry", read_library(), ids=lambda entry: f"{entry['group']}: {entry['title']}")
def test_each_entry_of_the_library_opens_without_a_mistake(page: Page, entry: Any) -> None:
    page.evaluate("(title) => playground.take(playground.entries.find((each) => each.title === title))", entry["title"])
    settle(page)
    expect(page.locator(".problem.error")).to_have_count(0)
    assert text_of(page) == entry["files"][entry["open"]]


def test_an_entry_is_found_and_opened_by_keys(page: Page) -> None:
    page.locator("body").press("Control+o")
    page.keyboard.type("scalable modular")
    page.keyboard.press("Enter")
    page.wait_for_function("() => playground.work.active === 'smn.mod'")
    expect(page.locator("dialog")).to_be_hidden()


def test_tabs_and_borders_move_by_keys(page: Page) -> None:
    page.locator("[role=tab][data-tab=graph]").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("[role=tab][data-tab=costs]")).to_be_focused()
    expect(page.locator("#view-costs")).to_be_visible()
    border = page.locator("[data-border=columns]")
    before = page.locator(".left").evaluate("(left) => left.clientWidth")
    border.press("ArrowRight")
    assert page.locator(".left").evaluate("(left) => left.clientWidth") > before
    border.press("ArrowLeft")


def test_every_control_has_a_name_and_is_reached_by_tab(page: Page) -> None:
    page.locator(".skip").first.focus()
    reached = set[str]()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate(FOCUSED))
    assert {"open", "format", "pin", "link", "new", "fit", "theme", "tab", "separator"} <= reached
    is_nameless = "(each) => !(each.ariaLabel || each.textContent || each.title || each.labels?.length)"
    controls = page.locator("button:visible, input:visible")
    names = controls.evaluate_all(f"(every) => every.filter({is_nameless}).length")
    assert names == 0, "each button and field has a name"


def test_own_files_are_made_and_closed(page: Page) -> None:
    page.locator("[data-do=new]").click()
    page.wait_for_function("() => playground.work.active === 'mine1.mod'")
    expect(page.locator(".problem")).to_have_count(0)
    page.locator(".files [role=tab][aria-selected=true]").press("Delete")
    expect(page.locator(".files [role=tab]")).to_have_count(1)


def test_the_work_outlives_a_reload_and_needs_no_storage(browser: Browser, address: str) -> None:
    with opened_screen(browser, address) as page:
        page.wait_for_function("() => location.hash.length > 20")
        before = page.evaluate("location.hash")
        page.evaluate("Object.defineProperty(window, 'localStorage', { get() { throw new Error('none'); } })")
        go(page, "relu")
        page.keyboard.type(" -> tanh")
        page.wait_for_function("(before) => location.hash !== before", arg=before)
        page.wait_for_timeout(1000)
        page.reload()
        page.wait_for_selector("[data-state=ready]")
        assert "relu -> tanh" in text_of(page)


def test_a_worker_that_ends_is_started_again_and_no_text_is_lost(page: Page) -> None:
    go(page, "relu")
    page.keyboard.type(" -> tanh")
    page.evaluate(f"({ENDED_WHILE_ASKED})('out of memory')")
    expect(page.locator(".notice")).to_contain_text("out of memory")
    expect(page.locator("#view-graph .note")).to_contain_text("the engine has ended: out of memory")
    asked = page.evaluate("playground.ask('cost').catch(({ message }) => message)")
    assert asked == "the engine has ended: out of memory", "a later request is answered too"
    page.locator(".notice button", has_text="Start it again").click()
    page.wait_for_selector("[data-state=ready]")
    expect(page.locator("#view-graph")).to_contain_text("tanh")
    assert "relu -> tanh" in text_of(page)


@pytest.mark.parametrize("width", [390, 820, 1280])
def test_nothing_is_wider_than_the_window(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    wide = [f"{tab}: {each}" for tab in TABS for each in (show(page, tab), find_wide(page))[1]]
    page.set_viewport_size({"width": 1280, "height": 800})
    assert not wide
