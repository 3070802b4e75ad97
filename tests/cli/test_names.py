"""Names of files, models and parameters that are too long, odd, or not files at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from modgraph.cli import main
from modgraph.cli.common import read_overrides
from modgraph.diagnostics import Report, Source
from modgraph.lsp.analysis import analyse
from modgraph.syntax import read

SPEC = "model m() { input x: float[4] output x }"
LONG = "a" * 300


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("ok.mod").write_text(SPEC)
    os.mkfifo("pipe.mod")
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 1
    text = capsys.readouterr().err
    assert "error[MG" in text
    return text


def test_long_names_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert "at most 250 letters" in refused(capsys, "new", LONG)
    assert "at most 250 letters" in refused(capsys, "new", "a" * 251)
    assert main(["new", "a" * 250]) == 0
    for command in ("check", "show", "cost", "fmt"):
        assert "file name too long" in refused(capsys, command, f"{LONG}.mod")
    assert "unknown parameter" in refused(capsys, "check", "ok.mod", "-s", f"{LONG}=3")
    assert "file name too long" in refused(capsys, "new", "b", "--from", f"{LONG}.mod")


def test_what_blocks_is_no_spec(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["check"], ["show"], ["cost"], ["fmt"], ["new", "b", "--from"]):
        for path, what in (("pipe.mod", "a pipe"), ("/dev/zero", "a device")):
            assert what in (text := refused(capsys, *command, path))
            assert f'did you mean "{path}"' not in text
    for path in ("pipe.mod", "/dev/zero"):
        text = f'import b from "{path}" {SPEC}'
        Path("importing.mod").write_text(text)
        assert "not a file" in refused(capsys, "check", "importing.mod")
        assert {each.code for each in analyse(Source("importing.mod", text)).diagnostics} >= {"MG101"}


def test_a_recipe_that_is_no_text_or_no_file_gets_no_copy(capsys: pytest.CaptureFixture[str]) -> None:
    Path("ok.yaml").write_bytes(b"\xff")
    assert "not UTF-8" in refused(capsys, "new", "b", "--from", "ok.mod")
    assert not Path("b.mod").exists()
    Path("ok.yaml").unlink()
    os.mkfifo("ok.yaml")
    assert main(["new", "b", "--from", "ok.mod"]) == 0


@pytest.mark.parametrize("name", [b"\xff.mod", b"x\x1b[31m\n.mod", "é.mod".encode(), b"\xed\xa0\x80.mod"])
def test_odd_names_are_printed_without_what_a_terminal_would_obey(
    name: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    path = os.fsdecode(name)
    for text in (None, "model m() { x }", f'import b from "{LONG}" {SPEC}'):
        if text is not None:
            Path(path).write_text(text)
        message = refused(capsys, "check", path)
        assert "\x1b" not in message
        message.encode("utf-8")
        assert main(["check", "--json", path]) == 1
    capsys.readouterr()


def test_links_that_lead_back_to_themselves_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    Path("loop.mod").symlink_to("loop.mod")
    Path("importing.mod").write_text(f'import b from "loop.mod" {SPEC}')
    refused(capsys, "check", "loop.mod")
    refused(capsys, "check", "importing.mod")
    report = Report()
    assert read("loop.mod", report) is None and report.errors


def test_a_value_that_takes_too_long_is_no_value(capsys: pytest.CaptureFixture[str]) -> None:
    Path("ok.mod").write_text(SPEC.replace("()", "(n=3)"))
    assert "whole number" in refused(capsys, "check", "ok.mod", "-s", f"n={' + '.join(['min(0..99999)'] * 20)}")
    assert "whole number" in refused(capsys, "check", "ok.mod", "-s", "n=1.5 in 0..10**15")


def test_values_of_a_recipe_are_as_yaml_would_read_them() -> None:
    texts = ["data.test_from=2014-06-01", "train.best=null", "kind=null", "n=2014-6", "train.batch=8"]
    assert read_overrides(texts) == {
        "data.test_from": "2014-06-01",
        "train.best": None,
        "kind": "null",
        "n": 2008,
        "train.batch": 8,
    }
