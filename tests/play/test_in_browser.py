"""The front end in a browser says what the command line says, in order, and loads nothing from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from modgraph.cli import main
from modgraph.play.library import read_library
from modgraph.play.write import write_playground
from tests.inspect.browser import answer_of, started
from tests.play.browser import Worker, started_worker
from tests.play.texts import broken_specs

modgraph_web = pytest.importorskip("modgraph_web", reason="needs pip install -e ./export/web")
pytestmark = pytest.mark.skipif(not modgraph_web.available(), reason="needs pip install -e ./export/web")

CANCELLED, OUTDATED = -32800, -32801
NET = "model net(width=4) { input x: float[8] y = x -> linear(width) output y }"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from started()


@pytest.fixture(scope="module")
def worker(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    folder = tmp_path_factory.mktemp("play") / "site"
    write_playground(folder)
    with started_worker(browser, folder) as found:
        yield found


def messages_of(name: str, text: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What the command line says of a text: JSON and rendered text."""
    Path(name).write_bytes(text.encode("utf-8", "surrogatepass"))
    capsys.readouterr()
    main(["check", "--json", name])
    found = json.loads(capsys.readouterr().out)
    main(["check", name])
    *rendered, _ = [*capsys.readouterr().err.removesuffix("\n").split("\n\n")] if found else [""]
    both = [{"rendered": said, "diagnostic": each} for each, said in zip(found, rendered, strict=True)]
    here: list[dict[str, Any]] = json.loads(json.dumps(both).replace(str(Path.cwd()), "/play"))
    return here  # the folder of imports is another one in the browser


def compare(worker: Worker, texts: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for text, found in zip(texts, worker.check("net.mod", texts), strict=True):
        expected = messages_of("net.mod", text, capsys)
        once = [each for at, each in enumerate(expected) if each not in expected[:at]]
        assert found == once, text


def test_it_says_what_it_has_loaded(worker: Worker) -> None:
    ready = worker.page.evaluate("play.ready")["params"]
    progress = worker.page.evaluate("play.heard.filter(({ method }) => method === 'modgraph/progress')")
    loaded = [each["params"]["loaded"] for each in progress]
    assert loaded == sorted(loaded) and loaded[-1] == progress[-1]["params"]["total"] == ready["bytes"]
    assert {each["params"]["what"] for each in progress} == {"engine", "library", "start"}
    assert ready["root"] == "file:///play/" and ready["seconds"] > 0


def test_broken_specs_have_the_messages_of_the_command_line(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    compare(worker, broken_specs(50), capsys)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(1, 40))
def test_two_thousand_broken_specs_have_the_messages_of_the_command_line(
    part: int, worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    compare(worker, broken_specs(2000)[50 * part : 50 * part + 50], capsys)


def test_a_spec_of_the_library_is_sound_with_its_recipe(worker: Worker) -> None:
    entry = next(each for each in read_library() if each["title"] == "story")
    assert "error" not in worker.ask("modgraph/write", files=entry["files"])
    (found,) = worker.check(entry["open"], [entry["files"][entry["open"]]])
    assert [each for each in found if each["diagnostic"]["severity"] == "error"] == []
    uri = f"file:///play/{entry['open']}"
    assert "cache" in worker.ask("modgraph/cost", uri=uri)["result"]["cost"], "which needs the packages that come later"
    assert "result" in worker.ask("modgraph/show", uri=uri, after="stepwise.incremental")


def test_what_a_later_change_makes_pointless_is_dropped(worker: Worker) -> None:
    found = answer_of(
        worker.page,
        """async (text) => {
          const uri = "file:///play/net.mod", params = { uri };
          const change = (text) => play.say({ method: "textDocument/didChange",
            params: { textDocument: { uri, version: 1 }, contentChanges: [{ text }] } });
          const ids = [1, 2, 3, 4].map(() => ++play.number);
          change(text);
          play.say({ id: ids[0], method: "modgraph/cost", params });
          play.say({ id: ids[1], method: "modgraph/graph", params });
          play.say({ id: ids[2], method: "modgraph/explain", params: { name: "linear" } });
          play.say({ method: "$/cancelRequest", params: { id: ids[2] } });
          for (let n = 0; n < 5; n++) change(text.replace("linear", "liner" + n));
          play.say({ id: ids[3], method: "modgraph/check", params });
          const answers = [];
          for (const id of ids) answers.push(await play.hear((each) => each.id === id));
          const published = play.heard.filter((each) => each.params?.uri === uri).length;
          return [answers, published];
        }""",
        NET,
    )
    (cost, graph, explain, check), published = found
    assert {each["error"]["code"] for each in (cost, graph) if "error" in each} <= {OUTDATED}
    assert graph["error"]["code"] == OUTDATED
    assert explain["error"]["code"] == CANCELLED
    assert "liner4" in check["result"]["rendered"], "the last text is the one that counts"
    assert published <= 3, "of six changes, those that waited were dropped"


def test_a_request_that_fails_leaves_the_worker_at_work(worker: Worker) -> None:
    assert worker.ask("modgraph/cost", uri="file:///etc/passwd")["error"]["code"] == -32602
    with worker.page.expect_console_message(lambda message: "KeyError" in message.text):
        unknown = worker.ask("textDocument/hover", textDocument={"uri": "file:///play/net.mod"})
    assert unknown["error"]["code"] == -32603
    worker.faults.clear()  # no page asks that
    assert "Project the last axis" in worker.ask("modgraph/explain", name="linear")["result"]["text"]
