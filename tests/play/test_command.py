"""`modgraph play` writes a folder whole or not at all, and says what is wrong otherwise."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from modgraph.cli import main
from modgraph.cli.new_command import TASKS
from modgraph.play.errors import NoPackage, NoPlayground, NotAFolder

modgraph_web = pytest.importorskip("modgraph_web", reason="needs pip install -e ./export/web")
pytestmark = pytest.mark.skipif(not modgraph_web.available(), reason="needs pip install -e ./export/web")

NET = 'import part from "parts/a.mod"\nmodel net() { input x: float[8] y = x -> part output y }\n'
PART = "block part() { input x: float[8] y = x -> linear(3) output y }\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/a.mod").write_text(PART)
    (tmp_path / "net.mod").write_text(NET)
    (tmp_path / "net.yaml").write_text("train: {epochs: 3}\n")
    return tmp_path


def test_the_folder_opens_with_a_spec_its_imports_and_its_recipe(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["play", "net.mod", "-o", "site"]) == 0
    printed = capsys.readouterr().out
    assert "MB, of which Python" in printed and "python -m http.server -d site 8000" in printed
    entry = json.loads((folder / "site/opened.json").read_text())["entry"]
    assert entry["open"] == "net.mod"
    assert entry["files"] == {"net.mod": NET, "parts/a.mod": PART, "net.yaml": "train: {epochs: 3}\n"}
    record = json.loads((folder / "site/page.json").read_text())
    there = {path.relative_to(folder / "site").as_posix() for path in (folder / "site").rglob("*") if path.is_file()}
    assert {*record["files"]} == there
    assert main(["play", "-o", "site"]) == 0, "it takes the place of its own files"
    assert json.loads((folder / "site/opened.json").read_text())["entry"] is None


def test_the_packages_are_those_of_the_front_end_and_always_the_same(folder: Path) -> None:
    assert main(["play", "-o", "one"]) == main(["play", "-o", "two"]) == 0
    assert (folder / "one/packages.zip").read_bytes() == (folder / "two/packages.zip").read_bytes()
    names = zipfile.ZipFile(folder / "one/packages.zip").namelist()
    assert {"modgraph/play/service.py", "modgraph/prelude/__init__.py", "lark/__init__.py"} <= {*names}
    assert not [name for name in names if name.startswith("modgraph/nn/") and not name.endswith("__init__.py")]
    assert sum((folder / "one" / name).stat().st_size for name in ("packages.zip", "more.zip")) < 3_000_000


def test_the_library_has_every_shipped_spec_with_its_files(folder: Path) -> None:
    assert main(["play", "-o", "site"]) == 0
    entries = json.loads((folder / "site/library.json").read_text())["entries"]
    titles = {each["title"]: each for each in entries}
    assert {"smn", "gmoe", "mixtral", "cosine"} <= titles.keys()
    for task in TASKS:
        main(["new", task, "--task", task])
        written = {name: (folder / name).read_text() for name in (f"{task}.mod", f"{task}.yaml")}
        assert titles[task]["files"] == written, "as the command writes it"
    assert {"gmoe.mod", "gmoe.yaml", "gmoe_timm.yaml"} == titles["gmoe"]["files"].keys()
    assert all(each["open"] in each["files"] and each["about"] for each in entries)


@pytest.mark.parametrize("text", ["model net( {", "", "model net() { input x: float[8] y = x -> liner(3) output y }"])
def test_a_spec_with_mistakes_is_welcome(folder: Path, text: str) -> None:
    (folder / "net.mod").write_text(text)
    assert main(["play", "net.mod", "-o", "site"]) == 0
    assert json.loads((folder / "site/opened.json").read_text())["entry"]["files"]["net.mod"] == text


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The message of a command that the user must change; it has a way out."""
    capsys.readouterr()
    try:
        assert main(["play", *words]) == 1
    except SystemExit as usage:
        assert usage.code == 1
    message = capsys.readouterr().err
    assert "help:" in message and "Traceback" not in message
    return message


def test_what_is_wrong_is_said_and_changes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "file").write_text("mine")
    (folder / "mine").mkdir()
    (folder / "mine/index.html").write_text("mine")
    (folder / "bytes.mod").write_bytes(b"\xff\xfe\0")
    before = sorted(map(str, folder.rglob("*")))
    cases = {
        (): "-o",
        ("-o",): "-o",
        ("-o", "file"): "it is a file",
        ("-o", "page.html"): NotAFolder.code,
        ("-o", "nowhere/site"): "no folder",
        ("-o", "mine"): "modgraph did not write it",
        ("nothing.mod", "-o", "site"): "no such file",
        ("parts", "-o", "site"): "parts",
        ("bytes.mod", "-o", "site"): "bytes.mod",
        ("net.mod", "file", "-o", "site"): "unexpected argument",
        ("net.mod", "-o", "site", "--forse"): "--force",
    }
    for words, part in cases.items():
        assert part in refused(capsys, *words), words
    assert sorted(map(str, folder.rglob("*"))) == before


def test_a_folder_of_others_is_overwritten_on_demand(folder: Path) -> None:
    (folder / "site").mkdir()
    (folder / "site/index.html").write_text("mine")
    (folder / "site/notes.txt").write_text("mine")
    assert main(["play", "-o", "site"]) == 1
    assert main(["play", "-o", "site", "--force"]) == 0
    assert (folder / "site/notes.txt").read_text() == "mine"


def test_the_engine_must_be_installed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(modgraph_web, "FOLDER", folder)
        assert NoPlayground.code in refused(capsys, "-o", "site")
    hidden = "import sys; sys.modules['modgraph_web'] = None; from modgraph.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", hidden, "play", "-o", "site"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "pip install ./export/web" in done.stderr
    assert not (folder / "site").exists()


def test_a_package_that_is_missing_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("modgraph.play.write.MORE", ("no_such_package",))
    assert NoPackage.code in refused(capsys, "-o", "site")
    assert not (folder / "site").exists()
