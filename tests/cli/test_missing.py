"""What a command says of a path where nothing stands, or something else: the path, and where to find the right one."""

from __future__ import annotations

from pathlib import Path

import pytest

from modgraph.cli import main

SPEC = Path("specs/smn.mod").absolute()
MISSING = {
    "check {}": ["cannot read", "check the path"],
    "fmt {}": ["cannot read", "check the path"],
    "show {}": ["cannot read", "check the path"],
    "cost {}": ["cannot read", "check the path"],
    "compile {}": ["cannot read", "check the path"],
    "visualize {}": ["cannot read", "check the path"],
    "train {}": ["cannot read", "check the path"],
    "new mine --from {}": ["cannot read", "check the path"],
    "diff {} spec.mod": ["cannot read", "check the path"],
    "diff spec.mod {}": ["cannot read", "check the path"],
    "train spec.mod --recipe {}": ["cannot find the recipe", "--recipe FILE"],
    "train --resume {}": ["is not a run", "modgraph train wrote"],
    "eval {}": ["is not a run", "modgraph train wrote"],
    "export {} -o x.onnx": ["is not a run", "modgraph train wrote"],
    "trace {}": ["is not a run", "modgraph train wrote"],
    "migrate {} --to spec.mod --out out": ["is not a run", "modgraph train wrote"],
    "run {}.onnx --input x.npz": ["no such file", "modgraph export RUN"],
    "trace {}.onnx": ["no such file", "modgraph export RUN"],
    "diff spec.mod {}.onnx": ["cannot read bundle", "modgraph export RUN"],
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spec.mod").write_text(SPEC.read_text())
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)


def error_of(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(command.split()) == 1
    return capsys.readouterr().err


@pytest.mark.parametrize("command", MISSING)
def test_a_path_where_there_is_nothing(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = error_of(command.format("nothing_of_that_name"), capsys)
    assert "nothing_of_that_name" in text, "the message names the path"
    assert text.rstrip().endswith("1 error"), "and blames nothing else"
    for words in MISSING[command]:
        assert words in text


@pytest.mark.parametrize("command", [each for each in MISSING if not each.startswith(("trace", "run", "train --r"))])
def test_a_folder_where_a_file_or_a_run_is_wanted(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = error_of(command.replace("{}.onnx", "{}").format("empty"), capsys)
    assert '"empty"' in text, "the message names the folder"
    assert "it is a folder" in text or "is not a run" in text


def test_a_folder_of_specs_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert "name a spec: spec.mod" in error_of("check .", capsys)
