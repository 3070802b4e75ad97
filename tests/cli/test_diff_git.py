"""`git diff` of specs through modgraph, in real repositories."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from modgraph.cli import main

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
SPEC = """import part from "parts.mod"
model m(width=8) {
  input x: float[4]
  y = x -> part(width) -> linear(3)
  output y
}
"""
PARTS = "block part(width) {\n  input x: float[4]\n  y = x -> linear(width) -> relu\n  output y\n}\n"


class Repository:
    """A repository with two specs in a folder, and the two lines of docs/diff.md."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "specs").mkdir()
        (folder / "specs" / "m.mod").write_text(SPEC)
        (folder / "specs" / "parts.mod").write_text(PARTS)
        self.git("init", "-q")
        command = f"{shlex.quote(sys.executable)} -m modgraph diff --git"
        self.git("config", "diff.modgraph.command", command)
        (folder / ".gitattributes").write_text("*.mod diff=modgraph\n")
        self.commit()

    def git(self, *words: str) -> str:
        names = {
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@b",
        }
        paths = os.pathsep.join([str(Path(folder).resolve()) for folder in (".", "grammar", "export/runtime")])
        environment = {**os.environ, **names, "PYTHONPATH": paths, "GIT_CONFIG_GLOBAL": os.devnull}
        done = subprocess.run(["git", *words], cwd=self.folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", "work")

    def change(self, old: str, new: str, name: str = "m.mod") -> None:
        path = self.folder / "specs" / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))


@needs_git
def test_git_prints_what_differs_between_versions(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.change("linear(3)", "linear(5)")
    printed = repository.git("diff")
    assert "specs/m.mod (spec) → specs/m.mod (spec)" in printed
    assert "~ op y.linear\n" in printed and "    width: 3 → 5" in printed
    repository.commit()
    repository.git("mv", "specs/m.mod", "specs/n.mod")
    repository.change("width=8", "width=6", "n.mod")
    repository.commit()
    moved = repository.git("diff", "-M", "HEAD~1")
    assert "specs/m.mod (spec) → specs/n.mod (spec)" in moved and "  width: 8 → 6" in moved


@pytest.mark.slow
@needs_git
def test_git_gets_texts_where_there_is_no_architecture(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.change("relu", "gelu", "parts.mod")
    repository.change("linear(3)", "liner(3)")
    printed = repository.git("diff")
    assert 'did you mean "linear"?' in printed and "+  y = x -> part(width) -> liner(3)" in printed
    assert "-  y = x -> linear(width) -> relu" in printed
    (tmp_path / "specs" / "new.mod").write_text(SPEC)
    repository.git("add", "-A")
    assert "specs/new.mod (new)" in repository.git("diff", "--cached")


def test_words_that_are_not_gits_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "--git", "a", "b"]) == 1
    assert "MG821" in capsys.readouterr().err
    assert main(["diff", "--git", "specs/smn.mod"]) == 0
    assert capsys.readouterr().out == "specs/smn.mod (not merged)\n"


def test_one_architecture_is_too_few(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "specs/smn.mod"]) == 1
    assert "MG820" in capsys.readouterr().err
