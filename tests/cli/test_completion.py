"""What shells are told of an unfinished command line."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from modgraph.cli import main
from modgraph.cli.completion_command import SCRIPTS

SPEC = "model m(width=4, deep=true) { input x: float[4] y = x -> linear(width) output y }"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "net.mod").write_text(SPEC)
    (tmp_path / "net.onnx").write_text("")
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)


def complete(words: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main(["completion", "--complete", *words]) == 0
    return [line.partition("\t")[0] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["tr"], ["trace", "train"]),
        (["check", ""], ["net.mod", "runs/"]),
        (["eval", ""], ["runs/"]),
        (["show", "n"], ["net.mod", "net.onnx"]),
        (["train", "net.mod", "--re"], ["--recipe", "--resume"]),
        (["train", "net.mod", "--recipe", "no"], ["notes.txt"]),
        (["show", "net.mod", "--format", ""], ["text", "json"]),
        (["check", "net.mod", "-s", ""], ["width=", "deep="]),
        (["train", "net.mod", "-s", "train.ep"], ["train.epochs="]),
        (["completion", "z"], ["zsh"]),
        (["check", "nothing/"], []),
    ],
)
def test_words_that_can_follow(words: list[str], expected: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert complete(words, capsys) == expected


def test_words_come_with_what_they_mean(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "--complete", "check", "net.mod", "-s", "w"]) == 0
    assert capsys.readouterr().out == "width=\ta parameter of m\n"


@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_shell_reads_its_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "modgraph completion --complete" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, "-n", "/dev/stdin"], input=script, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_bash_completes(capsys: pytest.CaptureFixture[str]) -> None:
    script = 'eval "$(python -m modgraph completion bash)"; modgraph() { python -m modgraph "$@"; }\n'
    script += 'COMP_WORDS=(modgraph check net.mod -s w) COMP_CWORD=4; _modgraph 2>/dev/null; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert done.stdout == "width=\n", done.stderr
