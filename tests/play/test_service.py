"""What the service of the playground answers, request by request, is what the commands print."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from modgraph.checking import check_spec
from modgraph.cli import main
from tests.hostile import TEXTS
from tests.play.service import Page
from tests.play.texts import broken_specs

NET = """model net(width=4, rate=0.5, depth=-2, name="a", deep=true, sizes=[1, 2]) {
  input x: float[time, 8]
  h = x -> linear(width) -> relu
  output h
}
"""
WRONG = NET.replace("linear", "liner")
RECIPE = "train:\n  epoch: 3\n"
PARTS = "block part() { input x: float[8] y = x -> liner(3) output y }\n"
IMPORTING = 'import part from "parts.mod"\nmodel net() { input x: float[8] y = x -> part output y }\n'
UNKNOWN, INVALID, REFUSED = -32601, -32602, -32803
UNKNOWN_KEY = "MG503"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Page:
    monkeypatch.chdir(tmp_path)
    return Page(tmp_path)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    main(list(words))
    return capsys.readouterr().out.removesuffix("\n")


def test_it_says_what_it_can(page: Page) -> None:
    capabilities = page.ask("initialize")["capabilities"]
    assert capabilities["textDocumentSync"] == {"openClose": True, "change": 1}
    assert {
        "hoverProvider",
        "completionProvider",
        "renameProvider",
        "documentFormattingProvider",
    } <= capabilities.keys()
    assert page.ask("shutdown") is None
    assert page.receive(method="initialized", params={}) == []


def test_a_mistake_is_published_as_the_command_prints_it(page: Page, capsys: pytest.CaptureFixture[str]) -> None:
    (message,) = page.open("net.mod", WRONG)["net.mod"]
    assert main(["check", "net.mod"]) == 1
    assert capsys.readouterr().err == f"{message['data']['rendered']}\n\n1 error\n"
    assert printed(capsys, "check", "--json", "net.mod") == json.dumps([message["data"]["diagnostic"]], indent=2)
    assert message["code"] == "MG202" and message["severity"] == 1
    assert message["range"]["start"] == {"line": 2, "character": 11}
    assert page.change("net.mod", NET)["net.mod"] == []


def test_a_recipe_is_checked_with_its_spec(page: Page) -> None:
    assert page.open("net.mod", NET)["net.mod"] == []
    found = page.open("net.yaml", RECIPE)
    assert [each for each in found["net.yaml"] if each["code"] == UNKNOWN_KEY and each["range"]["start"]["line"] == 1]
    found = page.change("net.mod", WRONG)
    assert found["net.mod"][0]["code"] == "MG202"
    assert "net.yaml" not in found, "its messages are as before"
    again = page.change("net.yaml", RECIPE.replace("epoch", "epochs"))["net.yaml"]
    assert UNKNOWN_KEY not in [each["code"] for each in again]


def test_a_mistake_in_an_imported_file_stands_there(page: Page) -> None:
    page.open("parts.mod", PARTS)
    found = page.open("net.mod", IMPORTING)
    assert found["net.mod"] == []
    page.close("net.mod")
    assert page.change("parts.mod", PARTS)["parts.mod"][0]["code"] == "MG202"
    assert page.change("parts.mod", PARTS.replace("liner", "linear"))["parts.mod"] == []


def test_a_mistake_is_published_before_other_specs_are_checked(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    page.open("other.mod", NET)
    page.open("net.mod", NET)
    checked = list[str]()

    def check(spec: str, *given: Any, **more: Any) -> Any:
        checked.append(spec)
        return check_spec(spec, *given, **more)

    monkeypatch.setattr("modgraph.play.diagnosis.check_spec", check)
    document = {"uri": page.uri("net.mod"), "version": 2}
    params = {"textDocument": document, "contentChanges": [{"text": WRONG}]}
    answers = page.service.receive(json.dumps({"method": "textDocument/didChange", "params": params}))
    assert "MG202" in next(answers)
    assert checked == ["net.mod"]
    assert [*answers] == [], "the other has the messages that it had"
    assert checked == ["net.mod", "other.mod"]


def test_every_broken_text_has_the_messages_of_the_command(page: Page, capsys: pytest.CaptureFixture[str]) -> None:
    for number, text in enumerate(broken_specs(40, seed=1)):
        messages = page.open("net.mod", text)["net.mod"]
        found = [each["data"]["diagnostic"] for each in messages]
        expected = json.loads(printed(capsys, "check", "--json", "net.mod"))
        assert [each for each in expected if each not in found] == [], f"text {number}"
        assert len(found) <= len(expected), f"text {number}"


def test_an_editor_is_served(page: Page) -> None:
    page.open("net.mod", NET)
    at = page.place("net.mod", NET, "lin")
    assert "Project the last axis" in page.ask("textDocument/hover", **at)["contents"]["value"]
    labels = [
        each["label"] for each in page.ask("textDocument/completion", **page.place("net.mod", NET, "-> "))["items"]
    ]
    assert {"linear", "relu"} <= {*labels}
    help_ = page.ask("textDocument/signatureHelp", **page.place("net.mod", NET, "linear("))
    assert help_["signatures"][0]["label"].startswith("op linear")
    place = page.place("net.mod", NET, "\n  h")
    edit = page.ask("textDocument/rename", **place, newName="hidden")["changes"]
    assert [each["newText"] for each in edit[page.uri("net.mod")]] == ["hidden", "hidden"]
    assert page.fail("textDocument/rename", **place, newName="x")["code"] == REFUSED
    assert page.ask("textDocument/definition", **page.place("net.mod", NET, "output h"))["range"]["start"]["line"] == 2
    document = {"textDocument": {"uri": page.uri("net.mod")}}
    assert page.ask("textDocument/formatting", **document) is None
    page.change("net.mod", NET.replace("  input", "input"))
    assert page.ask("textDocument/formatting", **document)[0]["newText"] == NET
    assert page.ask("textDocument/semanticTokens/full", **document)["data"]


def test_a_recipe_has_no_completion(page: Page) -> None:
    page.open("net.yaml", RECIPE)
    assert page.ask("textDocument/completion", **page.place("net.yaml", RECIPE, "epoch")) is None


def test_panes_say_what_the_commands_print(page: Page, capsys: pytest.CaptureFixture[str]) -> None:
    page.open("net.mod", NET)
    uri, given = page.uri("net.mod"), {"width": "6"}
    cost = page.ask("modgraph/cost", uri=uri, parameters=given, lengths={"time": 3})
    words = ("-s", "width=6", "--length", "time=3")
    assert cost["text"] == printed(capsys, "cost", "net.mod", *words)
    assert json.dumps(cost["cost"], indent=2) == printed(capsys, "cost", "net.mod", *words, "--json")
    page.open("other.mod", NET.replace("net", "other"))
    other = page.ask("modgraph/cost", uri=page.uri("other.mod"), text=NET, parameters=given, lengths={"time": 3})
    assert other["cost"] == cost["cost"], "of the text, not of the file"
    show = page.ask("modgraph/show", uri=uri, parameters={"width": 6}, after="training.lower")
    assert show["text"] == printed(capsys, "show", "net.mod", "-s", "width=6", "--after", "training.lower")
    assert "training.lower" in show["passes"] and "stepwise.incremental" in show["passes"]
    assert page.ask("modgraph/explain", name="linear")["text"] == printed(capsys, "explain", "linear")
    graph = page.ask("modgraph/graph", uri=uri)
    assert graph["scene"]["name"] == "net" and graph["sources"][0]["text"] == NET
    wrong = page.ask("modgraph/check", uri=uri, parameters={"width": "x"})
    assert not wrong["ok"] and "width" in wrong["rendered"]


def test_a_difference_is_that_of_the_command(page: Page, capsys: pytest.CaptureFixture[str]) -> None:
    page.open("net.mod", NET.replace("relu", "gelu"))
    found = page.ask("modgraph/diff", uri=page.uri("net.mod"), before={"text": NET})
    (page.folder / "old.mod").write_text(NET)
    command = printed(capsys, "diff", "old.mod", "net.mod")
    assert found["text"].splitlines()[1:] == command.splitlines()[1:], "but for the names of both"
    assert found["different"]
    assert any(pane["marks"] for pane in found["panes"])
    same = page.ask("modgraph/diff", uri=page.uri("net.mod"), before={"uri": page.uri("net.mod")})
    assert not same["different"]


def test_parameters_have_ends_between_which_the_default_lies(page: Page) -> None:
    page.open("net.mod", NET)
    found = {each["name"]: each for each in page.ask("modgraph/parameters", uri=page.uri("net.mod"))["parameters"]}
    kinds = [found[name]["kind"] for name in ("width", "rate", "depth", "name", "deep", "sizes")]
    assert kinds == ["integer", "number", "integer", "text", "boolean", "list"]
    for name in ("width", "rate", "depth"):
        assert found[name]["minimum"] <= found[name]["default"] <= found[name]["maximum"]
        assert found[name]["minimum"] < found[name]["maximum"] and found[name]["step"] > 0
    for each in found.values():
        given = {each["name"]: each["text"]}
        assert page.ask("modgraph/check", uri=page.uri("net.mod"), parameters=given)["ok"], each
    page.change("net.mod", WRONG)
    again = page.ask("modgraph/parameters", uri=page.uri("net.mod"))["parameters"]
    assert [each["name"] for each in again] == [*found]


def test_files_are_written_read_and_removed(page: Page) -> None:
    found = page.ask("modgraph/write", files={"net.mod": NET, "parts/a.mod": PARTS})["files"]
    assert [each["name"] for each in found] == ["net.mod", "parts/a.mod"]
    assert page.ask("modgraph/read", uri=found[1]["uri"])["text"] == PARTS
    assert [each["name"] for each in page.ask("modgraph/write", files={"parts/a.mod": None})["files"]] == ["net.mod"]


def test_a_service_that_only_answers_publishes_nothing(page: Page) -> None:
    page.service.is_checking = False
    assert page.open("net.mod", WRONG) == {}
    assert page.ask("modgraph/check", uri=page.uri("net.mod"))["ok"] is False
    page.receive(method="modgraph/write", params={"files": {"net.mod": None}})
    assert page.ask("modgraph/files")["files"] == []


BAD: list[tuple[str, dict[str, Any], int]] = [
    ("modgraph/nothing", {}, UNKNOWN),
    ("nothing", {}, UNKNOWN),
    ("modgraph/cost", {}, INVALID),
    ("modgraph/cost", {"uri": "file:///etc/passwd"}, INVALID),
    ("modgraph/cost", {"uri": "NET", "parameters": {"width": []}}, INVALID),
    ("modgraph/cost", {"uri": "NET", "parameters": {"nothing": 1}}, REFUSED),
    ("modgraph/cost", {"uri": "NET", "lengths": {"time": 0}}, INVALID),
    ("modgraph/cost", {"uri": "NET", "lengths": {"nothing": 1}}, REFUSED),
    ("modgraph/show", {"uri": "NET", "after": "nothing"}, INVALID),
    ("modgraph/diff", {"uri": "NET"}, INVALID),
    ("modgraph/diff", {"uri": "NET", "before": {"text": "model"}}, REFUSED),
    ("modgraph/explain", {"name": "nothing"}, REFUSED),
    ("modgraph/read", {"uri": "NETS"}, INVALID),
    ("modgraph/write", {"files": {"../a.mod": ""}}, INVALID),
    ("modgraph/write", {"files": {"/a.mod": ""}}, INVALID),
    ("modgraph/write", {"files": {"a": 1}}, INVALID),
    ("textDocument/hover", {}, INVALID),
    ("textDocument/hover", {"textDocument": {"uri": "file:///elsewhere/a.mod"}}, INVALID),
]


@pytest.mark.parametrize(("method", "params", "code"), BAD)
def test_a_request_that_does_not_fit_is_refused(page: Page, method: str, params: dict[str, Any], code: int) -> None:
    page.open("net.mod", NET)
    if str(params.get("uri", "")).startswith("NET"):
        params = params | {"uri": page.uri("net.mod") + params["uri"][3:]}
    error = page.fail(method, **params)
    assert error["code"] == code and error["message"]
    if code == REFUSED:
        assert error["data"]["rendered"] and error["data"]["diagnostics"]
    assert [each.name for each in page.folder.parent.glob("a.mod")] == []


@pytest.mark.parametrize("text", TEXTS)
def test_a_hostile_text_is_a_mistake_and_no_more(page: Page, text: str) -> None:
    for name in ("net.mod", "net.yaml"):
        assert name in page.open(name, text)
    spoiled = NET.replace("relu", text)
    page.change("net.mod", spoiled)
    for method in ("check", "cost", "graph", "show", "parameters"):
        page.respond(f"modgraph/{method}", uri=page.uri("net.mod"), parameters={text: text})
    assert [each.name for each in sorted(page.folder.iterdir())] == ["net.mod", "net.yaml"]


def test_it_imports_neither_torch_nor_numpy(tmp_path: Path) -> None:
    (tmp_path / "net.mod").write_text(NET)
    program = f"""
import sys
from pathlib import Path
from tests.play.service import Page
page = Page(Path({str(tmp_path)!r}))
import os; os.chdir({str(tmp_path)!r})
page.open("net.mod", Path("net.mod").read_text())
for method in ("check", "parameters", "cost", "show", "graph"):
    page.ask("modgraph/" + method, uri=page.uri("net.mod"))
page.ask("modgraph/diff", uri=page.uri("net.mod"), before={{"text": "model a() {{ input x: float[2] output x }}"}})
page.ask("modgraph/explain", name="linear")
print(*sorted({{"torch", "numpy", "pygls", "lsprotocol"}} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == ("", 0), done.stderr
