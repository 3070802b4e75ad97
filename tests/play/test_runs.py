"""Models of pages in the playground: what `play --with` takes and refuses, and what a visitor does with a run."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Frame, Page, expect

import modgraph
from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.play.errors import BadPage, BundleOfAnother, BundleWithoutRouting, GrownOtherwise, NotAPage
from modgraph.play.page_of_run import StoredPage
from modgraph.training.run import finish, start_run
from tests.continual_runs import lay_out_run
from tests.inspect.browser import started
from tests.play.screen import opened_screen, put, served_screen, show
from tests.runtime.test_runtime import tampered
from tests.web.served import last, made, page_of_images, trained

modgraph_web = pytest.importorskip("modgraph_web", reason="needs pip install -e ./export/web")
pytestmark = pytest.mark.skipif(not modgraph_web.available(), reason="needs pip install -e ./export/web")

WRITER = """model writer(vocabulary=4, width=8) {
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]
  pool   expert[3] = linear(width)
  router gate = cosine(1, width=4, noise=0.0)
  x = words -> embedding(width)
  logits = x -> expert by gate -> linear(vocabulary)
  require causal(logits, words)
  output logits
  loss cross_entropy(logits, next)
}
"""
RECIPE = (
    "model: {vocabulary: 10}\ndata: {name: text, train: FOLDER/words.txt, window: 6}\ntrain: {epochs: 1, batch: 10}\n"
)
HOSTILE = '"><img src=x onerror="window.harm=1"><script>window.harm=1</script>'


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page_of_images(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words")
    (folder / "words.txt").write_text("the cat sat on the mat and the dog sat on the log\n" * 30)
    return made(folder, trained(folder, WRITER, RECIPE))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from started()


@pytest.fixture(scope="module")
def address(images: Path, words: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_screen(tmp_path_factory.mktemp("screen"), images, words) as found:
        yield found


def take(page: Page, entry: str) -> Frame:
    """Open a run from the dialogue, and wait until its model has run."""
    page.locator("[data-do=open]").click()
    page.locator(f'dialog [data-entry="{entry}"]').first.click()
    page.frame_locator("iframe.run").locator("body[data-runs]").wait_for()
    return page.frames[-1]


def draw(page: Page, frame: Frame) -> None:
    """Draw a line over the image of a run."""
    box = frame.locator(".draw canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.2 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 0.7 * box["height"], steps=4)
    page.mouse.up()


def test_a_digit_of_the_visitor_changes_the_routing(address: str, browser: Browser, images: Path) -> None:
    with opened_screen(browser, address) as page:
        show(page, "run")
        hint = page.locator("#view-run .prose")
        expect(hint).to_contain_text("modgraph play small.mod -o playground --with runs/small")
        assert hint.get_by_role("button").all_inner_texts() == ["seen", "writer"]
        assert not page.locator("iframe").count(), "ONNX Runtime is loaded where a run is opened"
        frame = take(page, "seen.mod")
        expect(page.locator(".origin")).to_have_text("This run was trained from this text.")
        before, runs = last(frame, "outputs"), frame.evaluate("modgraph.last.runs")
        draw(page, frame)
        frame.wait_for_function("(runs) => !modgraph.running && modgraph.last.runs > runs", arg=runs)
        after = last(frame, "outputs")
        gates = [name for name in after if name.endswith(".gates")]
        assert gates and any((before[name] != after[name]).any() for name in gates)
        expect(page.locator(".cm-editor:visible")).to_have_count(1)  # one file is in sight
        expect(page.locator(".cm-editor:visible")).to_contain_text("model seen")


def test_a_language_model_writes_behind_what_one_types(address: str, browser: Browser) -> None:
    with opened_screen(browser, address) as page:
        frame = take(page, "writer.mod")
        assert page.evaluate("[...playground.work.values]") == [["vocabulary", "10"]], "as it was trained"
        expect(page.locator(".origin")).to_have_text("This run was trained from this text.")
        frame.locator("textarea").fill("the dog sat")
        frame.locator("[data-do=write]").click()
        frame.locator(".writer [role=status]", has_text="a second").wait_for()
        expect(frame.locator(".written .word")).to_have_count(32)
        assert frame.locator(".written .word sub").count() >= 31, "each word has the module that read it"


def test_a_changed_text_says_so_until_the_run_is_opened_again(address: str, browser: Browser) -> None:
    with opened_screen(browser, address) as page:
        take(page, "seen.mod")
        text, said = str(page.evaluate("playground.work.files.get('seen.mod')")), page.locator(".origin")
        put(page, {"seen.mod": f"# a comment is no change\n{text}"})
        expect(said).to_have_text("This run was trained from this text.")
        put(page, {"seen.mod": text.replace("linear(16)", "linear(24)")})
        expect(said).to_contain_text("was changed since: this run is of seen.mod as it was trained")
        put(page, {"seen.mod": text}, experts="4")
        expect(said).to_contain_text("changed since")
        put(page, {"seen.mod": text.replace("relu", "rellu")})
        said.get_by_text("The text has mistakes").wait_for()
        page.get_by_role("button", name="Open as trained").click()
        said.get_by_text("This run was trained from this text.").wait_for()
        put(page, {"other.mod": text.replace("model seen", "model other")})
        page.wait_for_selector("iframe", state="detached")
        page.locator("#view-run .prose").get_by_role("button", name="writer").click()
        page.frame_locator("iframe.run").locator("textarea").wait_for()


def test_the_run_is_light_or_dark_as_the_page_is(address: str, browser: Browser) -> None:
    with opened_screen(browser, address, color_scheme="dark") as page:
        frame = take(page, "seen.mod")
        ground, around = (f"getComputedStyle({each}document.body).backgroundColor" for each in ("", "parent."))
        dark = frame.evaluate(ground)
        page.locator("[data-do=theme]").click()
        frame.wait_for_function(f"(dark) => {ground} !== dark && {ground} === {around}", arg=dark)


def change(name: str, act: Callable[[dict[str, Any]], Any]) -> Callable[[Path], Any]:
    """Change a JSON file of a page."""

    def edit(page: Path) -> None:
        record = json.loads((page / name).read_text())
        act(record)
        (page / name).write_text(json.dumps(record))

    return edit


def flip(page: Path) -> None:
    content = bytearray((page / "model.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (page / "model.onnx").write_bytes(content)


def swap_texts(record: dict[str, Any]) -> None:
    name, text = next(iter(record["spec"].items()))
    record["spec"] = {name: text.replace("linear(16)", "linear(24)")}


DAMAGES: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    "no folder": (lambda page: shutil.rmtree(page), NotAPage.code, "no such file or folder"),
    "no model": (lambda page: (page / "model.onnx").unlink(), NotAPage.code, "no model.onnx"),
    "no record": (lambda page: (page / "page.json").unlink(), BadPage.code, "page.json"),
    "no JSON": (lambda page: (page / "page.json").write_text("[" * 100_000), BadPage.code, "page.json"),
    "other format": (change("page.json", lambda each: each.update(format=9)), BadPage.code, "another format"),
    "no spec": (change("page.json", lambda each: each.pop("spec")), BadPage.code, "no texts of a spec"),
    "a name that leads out": (
        change("page.json", lambda each: each.update(spec={"../../out.mod": "model a() {}"})),
        BadPage.code,
        "no texts of a spec",
    ),
    "no parameters": (change("page.json", lambda each: each.update(parameters=[1])), BadPage.code, "no parameters"),
    "other parameters": (
        change("page.json", lambda each: each.update(parameters={"experts": {"a": None}})),
        BadPage.code,
        "its spec: ",
    ),
    "grown otherwise": (change("page.json", lambda each: each.update(parameters=None)), GrownOtherwise.code, "grown"),
    "no number": (change("page.json", lambda each: each.update(routes=[math.nan])), BadPage.code, "page.json"),
    "another spec": (change("page.json", swap_texts), BadPage.code, "its spec is not that of its model"),
    "a flipped bit": (flip, BadPage.code, "is damaged"),
    "a cut model": (lambda page: (page / "model.onnx").write_bytes(b"onnx"), BadPage.code, "no bundle"),
    "no examples": (lambda page: (page / "examples.json").write_text("{}"), BadPage.code, "examples"),
    "other outputs": (
        change("examples.json", lambda each: each["examples"][0].update(outputs=each["examples"][1]["outputs"])),
        BadPage.code,
        "the model computes others",
    ),
    "a file": (lambda page: (shutil.rmtree(page), page.write_text("mine")), NotAPage.code, "it is a file"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_page_that_is_not_whole_is_refused(
    what: str, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    act, code, part = DAMAGES[what]
    page = tmp_path / "page"
    shutil.copytree(images, page, ignore=shutil.ignore_patterns("modgraph_web"))
    act(page)
    assert main(["play", "-o", str(tmp_path / "built"), "--with", str(page)]) == 1
    message = capsys.readouterr().err
    assert code in message and part in message and "help:" in message, message
    assert not (tmp_path / "built").exists() and not (tmp_path / "out.mod").exists()


def test_every_fault_of_several_pages_is_reported(
    images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [each for page in (images, images, tmp_path / "none") for each in ("--with", str(page))]
    assert main(["play", "-o", str(tmp_path / "built"), *words]) == 1
    message = capsys.readouterr().err
    assert "given twice" in message and NotAPage.code in message


def test_runtimes_are_written_once_and_pages_as_they_are(images: Path, words: Path, tmp_path: Path) -> None:
    built = tmp_path / "built"
    assert main(["play", "-o", str(built), "--with", str(images), "--with", str(words)]) == 0
    assert len([*built.rglob("ort*.wasm")]) == 1
    assert (built / "runs/1/model.onnx").read_bytes() == (images / "model.onnx").read_bytes()
    for name in ("app.js", "routes.js"):
        assert (built / "runs/page" / name).read_bytes() == (images / "page" / name).read_bytes()
    digests = {*json.loads((built / "page.json").read_text())["files"]}
    assert digests == {each.relative_to(built).as_posix() for each in built.rglob("*") if each.is_file()}


def built_runs(folder: Path, *words: str) -> list[dict[str, Any]]:
    """The runs of a playground that the command writes."""
    assert main(["play", *words, "-o", str(folder), "--force"]) == 0
    entries: list[dict[str, Any]] = json.loads((folder / "runs.json").read_text())["entries"]
    return entries


def test_a_run_is_exported_on_the_way(words: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = words.parent / "run"
    (made,) = built_runs(tmp_path / "made", "--with", str(run))
    steps = (f"{run}: exporting its page", f"{run}: checking its page", f"{tmp_path / 'made'}: writing the engine")
    errors = capsys.readouterr().err
    at = [errors.find(f"{step}") for step in steps]
    assert at[0] >= 0 and at == sorted(at), f"a line for each step, in order: {errors}"
    (given,) = built_runs(tmp_path / "given", "--with", str(words))
    assert {**made, "about": ""} == {**given, "about": ""} and made["about"] == "run, vocabulary=10"
    for name in ("model.onnx", "examples.json", "page.json"):
        assert (tmp_path / "made/runs/1" / name).read_bytes() == (tmp_path / "given/runs/1" / name).read_bytes(), name


def test_a_grown_model_joins_its_spec_with_the_parameters_of_its_size(tmp_path: Path) -> None:
    with start_run(str(lay_out_run(tmp_path)), None, {}, str(tmp_path / "run")) as engine:
        finish(engine)
    (entry,) = built_runs(tmp_path / "built", "--with", str(tmp_path / "run"))
    assert entry["values"] == {"layers": "[1, 2]", "classes": "6"}
    assert entry["run"]["program"] == modgraph.load(tmp_path / "growing.mod", layers=[1, 2], classes=6).ir.hash()


def test_a_bundle_joins_the_spec_that_is_given(words: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle, spec = str(words / "model.onnx"), tmp_path / "own.mod"
    spec.write_text(WRITER)
    (found,) = built_runs(tmp_path / "found", str(spec), "--with", bundle)
    (given,) = built_runs(tmp_path / "given", "--with", str(words))
    assert {**found["run"], **found["values"]} == {**given["run"], **given["values"]}
    assert found["files"] == {"own.mod": WRITER} and found["about"] == "model, vocabulary=10"
    records = [json.loads((tmp_path / each / "runs/1/page.json").read_text()) for each in ("found", "given")]
    assert records[0] == records[1], "its routes and the graph of whole sequences"
    assert json.loads((tmp_path / "found/runs/1/examples.json").read_text())["examples"] == []
    silent = tmp_path / "silent.onnx"
    modgraph.export(modgraph.loads(WRITER).build(), silent, stepwise=True)
    for text, path, code, part in (
        (None, bundle, BundleOfAnother.code, "no spec is given"),
        (WRITER.replace("writer", "reader"), bundle, BundleOfAnother.code, "the model writer, the spec reader"),
        (
            WRITER.replace("(width)\n  router", "(width) -> relu\n  router"),
            bundle,
            BundleOfAnother.code,
            "another graph",
        ),
        (WRITER.replace("expert[3]", "expert[3"), bundle, "MG", "own.mod"),
        (WRITER, str(silent), BundleWithoutRouting.code, "--routing"),
    ):
        spec.write_text(text or "")
        assert main(["play", *([str(spec)] if text else []), "-o", str(tmp_path / "none"), "--with", path]) == 1
        message = capsys.readouterr().err
        assert code in message and part in message and "help:" in message, message
    assert not (tmp_path / "none").exists()


def test_a_stepwise_page_of_another_architecture_with_the_same_weights_is_refused(
    words: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page"
    shutil.copytree(words, page, ignore=shutil.ignore_patterns("modgraph_web"))
    other = WRITER.replace("(width)\n  router", "(width) -> relu\n  router")
    change("page.json", lambda each: each.update(spec={"writer.mod": other}))(page)
    assert main(["play", "-o", str(tmp_path / "built"), "--with", str(page)]) == 1
    assert "its spec is not that of its model" in capsys.readouterr().err


def spoil(box: dict[str, Any]) -> None:
    """Give the box of a graph hostile texts in all places that are not looked up."""
    box.update(label=HOSTILE, detail=HOSTILE, help=HOSTILE, types=[HOSTILE], short=HOSTILE, settings={HOSTILE: HOSTILE})
    box.update(weights=[{"name": HOSTILE, "type": HOSTILE, "note": HOSTILE}])


def with_manifest(page: Path, target: Path, act: Callable[[dict[str, Any]], Any]) -> Path:
    """A copy of a page whose bundle has another manifest, under a digest that is right."""
    shutil.copytree(page, target, ignore=shutil.ignore_patterns("modgraph_web", "model.json"))
    tampered(page / "model.onnx", target / "model.onnx", act)
    return target


@pytest.mark.parametrize("value", [None, 3, "x", [1], {"a": []}, {"a": {"b": None}}], ids=repr)
def test_a_forged_manifest_is_used_or_refused(value: Any, words: Path, tmp_path: Path) -> None:
    for number, key in enumerate(json.loads((words / "model.json").read_text())):
        forged = {key: value}
        page = with_manifest(words, tmp_path / str(number), methodcaller("update", forged))
        try:
            assert StoredPage(page, page).read().model == "writer"
        except ModgraphError as error:
            assert error.diagnostics, key


def test_hostile_words_of_a_bundle_inject_nothing(words: Path, browser: Browser, tmp_path: Path) -> None:
    names = json.loads((words / "model.json").read_text())["words"]["words"]
    names[1:4] = [f"<u>{number}{HOSTILE.replace(' ', '/')}" for number in range(3)]
    facts = {"words": {"words": names}, "classes": {"logits": names}, "modgraph": HOSTILE}
    page = with_manifest(words, tmp_path / "page", methodcaller("update", facts))
    (tmp_path / "screen").mkdir()
    with served_screen(tmp_path / "screen", page) as address, opened_screen(browser, address) as screen:
        frame = take(screen, "writer.mod")
        frame.locator("textarea").fill(" ".join(names[1:4]))
        frame.locator("[data-do=write]").click()
        frame.locator(".writer [role=status]", has_text="a second").wait_for()
        assert frame.evaluate("window.harm") is None and "onerror" in frame.locator(".written").inner_text()
        assert not frame.locator("img, u, script:not([src])").count()


def test_hostile_names_in_a_page_inject_nothing(images: Path, browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / HOSTILE.replace("/", "")
    shutil.copytree(images, page, ignore=shutil.ignore_patterns("modgraph_web"))
    facts = {name: HOSTILE for name in ("decides", "name", "pool", "router")}
    change("page.json", lambda each: each["routes"][0].update(facts))(page)
    change("page.json", lambda each: each["graph"].update(label=HOSTILE, notes=[HOSTILE]))(page)
    change("page.json", lambda each: each["graph"]["scene"].update(name=HOSTILE, parameters={HOSTILE: HOSTILE}))(page)
    change("page.json", lambda each: [spoil(box) for box in each["graph"]["scene"]["boxes"]])(page)
    change("examples.json", lambda each: each["examples"][0].update(truth={"logits": HOSTILE}))(page)
    (tmp_path / "screen").mkdir()
    with served_screen(tmp_path / "screen", page) as address, opened_screen(browser, address) as screen:
        frame = take(screen, "seen.mod")
        show(screen, "graph")
        assert frame.evaluate("window.harm") is None and screen.evaluate("window.harm") is None
        expect(frame.locator(".outputs")).to_contain_text("onerror")
        assert not frame.locator("img").count()
