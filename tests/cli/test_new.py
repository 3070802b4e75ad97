"""`modgraph new --from`: the copy is whole, and nothing that is there is overwritten."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import modgraph
from modgraph.cli import main
from modgraph.cli.new_command import TASKS, write_sentences
from modgraph.files import list_shipped_specs

ROOT = Path(__file__).parents[2]
INNER = "block widen(d) { input x: float[n] y = x -> linear(d) output y }"
OUTER = """import widen from "../../shared/inner.mod"
block twice(d) { input x: float[n] y = x -> widen(d) -> widen(d) output y }"""
MODEL = 'import twice from "parts/outer.mod" model m() { input x: float[4] y = x -> twice(3) output y }'


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A spec that imports a file beside it, which imports one from another folder; the current folder is a third."""
    files = {
        "specs/m.mod": MODEL,
        "specs/parts/outer.mod": OUTER,
        "shared/inner.mod": INNER,
        "specs/m.yaml": "data: digits",
    }
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
    maps = ["sema_timm.yaml"] if name == "sema" else []
    assert capsys.readouterr().out.split() == ["mine.mod", "mine.yaml", *maps, f"parts/{name}.mod"]
    assert main(["check", "mine.mod"]) == 0, capsys.readouterr().err


def test_what_is_there_is_kept(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "mine", "--from", str(spec)]) == 0
    assert main(["new", "other", "--from", str(spec)]) == 0, "two copies share what they import"
    assert "parts/outer.mod exists, with the same text" in capsys.readouterr().err
    Path("parts/outer.mod").write_text("mine")
    assert main(["new", "third", "--from", str(spec)]) == 1
    assert '"parts/outer.mod" exists' in capsys.readouterr().err
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


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.some(2)
@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize("task", TASKS)
def test_a_starting_point_of_each_task_trains_at_once(task: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "mine", "--task", task]) == 0
    written = capsys.readouterr().out.split()
    assert written[:2] == ["mine.mod", "mine.yaml"]
    assert sorted(written) == sorted(path.name for path in Path().iterdir()), "all that is written is said"
    assert main(["check", "mine.mod"]) == 0
    assert main(["fmt", "--check", "mine.mod"]) == 0
    assert capsys.readouterr() == ("", ""), "no caution"
    assert main(["train", "mine.mod", "-q", "-s", "train.epochs=1"]) == 0
    assert '"test.' in capsys.readouterr().out


def test_images_are_what_new_begins_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "mine"]) == 0
    assert "image: float[1, 28, 28]" in Path("mine.mod").read_text()
    assert "digits" in Path("mine.yaml").read_text()


def test_the_sentences_have_as_many_words_as_the_spec_knows() -> None:
    lines = write_sentences().splitlines()
    known = {word for line in lines for word in line.split()} | {"<unk>", "<eos>"}
    assert len(set(lines)) == len(lines), "each sentence stands once"
    spec = modgraph.load(ROOT / "modgraph/cli/starters/texts.mod")
    assert spec.ir.input_types["words"].size == len(known)


@pytest.mark.some(5)
@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize("name", list_shipped_specs())
def test_every_spec_that_comes_along_can_be_duplicated_by_its_name(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", "mine", "--from", name]) == 0
    assert Path("mine.mod").exists()
    assert main(["check", "mine.mod"]) == 0, capsys.readouterr().err
    assert main(["fmt", "--check", "mine.mod"]) == 0


@pytest.mark.usefixtures("empty")
def test_maps_of_weights_come_along() -> None:
    assert main(["new", "mine", "--from", "gmoe"]) == 0
    assert "map: gmoe_timm.yaml" in Path("mine.yaml").read_text()
    assert Path("gmoe_timm.yaml").read_text() == (ROOT / "specs/gmoe_timm.yaml").read_text()


@pytest.mark.usefixtures("empty")
def test_a_name_that_no_spec_has_is_answered_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "copy", "--from", "switch"]) == 0, "the last part of a name will do"
    Path("copy.mod").unlink()
    Path("copy.yaml").unlink()
    capsys.readouterr()
    assert main(["new", "mine", "--from", "zoo/mixtrl"]) == 1
    errors = capsys.readouterr().err
    assert "no shipped spec of that name" in errors
    assert "zoo/mixtral" in errors
    assert not list(Path().iterdir())
