"""`modgraph new --from`: the copy is whole, and nothing that is there is overwritten."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import modgraph
from modgraph.cli import main

ROOT = Path(__file__).parents[2]
INNER = "block widen(d) { input x: float[n] y = x -> linear(d) output y }"
OUTER = """import widen from "../../shared/inner.mod"
block twice(d) { input x: float[n] y = x -> widen(d) -> widen(d) output y }"""
MODEL = 'import twice from "parts/outer.mod" model m() { input x: float[4] y = x -> twice(3) output y }'


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A spec that imports a file beside it, which imports one from another folder; the current folder is a third."""
    files = {"specs/m.mod": MODEL, "specs/parts/outer.mod": OUTER, "shared/inner.mod": INNER, "specs/m.yaml": "data: x"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "specs" / "m.mod"


def test_a_copy_runs_where_its_origin_is_gone(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = modgraph.load(spec).ir
    assert main(["new", "mine", "--from", str(spec)]) == 0
    written = capsys.readouterr().out.split()
    assert sorted(written) == ["imports/inner.mod", "mine.mod", "mine.yaml", "parts/outer.mod"], "all is said"
    assert sorted(written) == sorted(path.as_posix() for path in Path().rglob("*.*")), "and nothing else is written"
    for folder in ("specs", "shared"):
        shutil.rmtree(spec.parents[1] / folder)
    assert main(["check", "mine.mod"]) == 0, capsys.readouterr().err
    assert list(modgraph.load("mine.mod").ir) == list(before), "the copy is the same network"


@pytest.mark.parametrize("name", ["mt_rmn", "sema"])
def test_copies_of_the_published_specs_are_whole(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "mine", "--from", str(ROOT / f"specs/{name}.mod")]) == 0
    assert capsys.readouterr().out.split() == ["mine.mod", "mine.yaml", f"parts/{name}.mod"]
    assert main(["check", "mine.mod"]) == 0, capsys.readouterr().err


def test_what_is_there_is_kept(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "mine", "--from", str(spec)]) == 0
    assert main(["new", "other", "--from", str(spec)]) == 0, "two copies share what they import"
    assert "parts/outer.mod is there already, with the same text" in capsys.readouterr().err
    Path("parts/outer.mod").write_text("mine")
    assert main(["new", "third", "--from", str(spec)]) == 1
    assert '"parts/outer.mod" is there already' in capsys.readouterr().err
    assert Path("parts/outer.mod").read_text() == "mine"
    assert not Path("third.mod").exists(), "nothing is written where something is in the way"


def test_a_copy_is_not_called_like_a_file_that_it_imports(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec.write_text(MODEL.replace("parts/outer", "twice"))
    (spec.parent / "twice.mod").write_text(OUTER.replace("../../", "../"))
    assert main(["new", "twice", "--from", str(spec)]) == 1
    assert "imports a file with this one" in capsys.readouterr().err
    assert main(["new", "once", "--from", str(spec)]) == 0
    assert main(["check", "once.mod"]) == 0


def test_an_import_that_cannot_be_read_is_reported(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (spec.parents[1] / "shared" / "inner.mod").unlink()
    assert main(["new", "mine", "--from", str(spec)]) == 1
    assert "inner.mod" in capsys.readouterr().err
    assert not list(Path().iterdir())


def test_files_of_one_name_from_two_places_stay_apart(spec: Path) -> None:
    elsewhere = spec.parents[1] / "more" / "inner.mod"
    elsewhere.parent.mkdir()
    elsewhere.write_text(INNER.replace("widen", "other"))
    text = spec.read_text().replace("model", f'import other from "{elsewhere}" model')
    spec.write_text(text.replace("twice(3)", "twice(3) -> other(2)"))
    assert main(["new", "mine", "--from", str(spec)]) == 0
    elsewhere.unlink()
    assert main(["check", "mine.mod"]) == 0
    assert {path.name for path in Path("imports").iterdir()} == {"inner.mod", "inner2.mod"}
