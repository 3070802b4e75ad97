"""The folder of a page: written whole or not at all, and never over what is not a page's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.version import VERSION
from modgraph.web.folder import PAGE, RECORD, check_place, list_files_in, replacing_folder


def write(folder: Path, *names: str, force: bool = False) -> None:
    """Write a page of some files."""
    with replacing_folder(folder, force) as new:
        (new / PAGE).write_text(f'<meta name="generator" content="modgraph {VERSION}">')
        for name in names:
            (new / name).parent.mkdir(exist_ok=True)
            (new / name).write_text("new")
        (new / RECORD).write_text(json.dumps({"files": [PAGE, RECORD, *names]}))


def test_a_page_takes_the_place_of_a_page_whole(tmp_path: Path) -> None:
    write(tmp_path / "page", "a.js", "wasm/b.wasm")
    write(tmp_path / "page", "c.js")
    assert list_files_in(tmp_path / "page") == {PAGE, RECORD, "c.js"}
    assert [each.name for each in tmp_path.iterdir()] == ["page"]


def test_what_fails_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path / "page", "a.js")
    with pytest.raises(KeyboardInterrupt), replacing_folder(tmp_path / "page", force=False) as new:
        (new / "b.js").write_text("half")
        raise KeyboardInterrupt
    assert list_files_in(tmp_path / "page") == {PAGE, RECORD, "a.js"}
    assert [each.name for each in tmp_path.iterdir()] == ["page"]


@pytest.mark.parametrize("foreign", ["notes.txt", "deep/notes.txt"])
def test_files_of_others_are_kept(tmp_path: Path, foreign: str) -> None:
    """Neither beside a page nor in a folder without one is anything lost; with --force the page comes beside it."""
    folder = tmp_path / "page"
    for there in ((), ("a.js",)):
        if there:
            write(folder, *there, force=True)
        (folder / foreign).parent.mkdir(parents=True, exist_ok=True)
        (folder / foreign).write_text("mine")
        before = list_files_in(folder)
        with pytest.raises(ModgraphError, match=r"MG121.*notes\.txt"):
            check_place(folder, force=False)
        with pytest.raises(ModgraphError, match="MG121"):
            write(folder, "b.js")
        assert list_files_in(folder) == before and (folder / foreign).read_text() == "mine"
    write(folder, "b.js", force=True)
    assert list_files_in(folder) == {PAGE, RECORD, "b.js", foreign} and (folder / foreign).read_text() == "mine"
    assert [each.name for each in tmp_path.iterdir()] == ["page"]


def test_a_file_that_comes_during_the_work_stays(tmp_path: Path) -> None:
    folder = tmp_path / "page"
    write(folder, "a.js")
    with pytest.raises(ModgraphError, match="MG121"), replacing_folder(folder, force=False):
        (folder / "mine.txt").write_text("mine")
    assert list_files_in(folder) == {PAGE, RECORD, "a.js", "mine.txt"}


def test_a_page_whose_record_is_damaged_is_not_ours(tmp_path: Path) -> None:
    folder = tmp_path / "page"
    for record in ("", "[", '{"files": 3}', '["index.html"]', '{"files": [[]]}'):
        write(folder, "a.js", force=True)
        (folder / RECORD).write_text(record)
        with pytest.raises(ModgraphError, match="MG121"):
            check_place(folder, force=False)


def test_an_empty_folder_and_a_link_to_one_are_written_to(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "page").symlink_to(tmp_path / "there")
    write(tmp_path / "page", "a.js")
    assert (tmp_path / "page").is_symlink() and (tmp_path / "there/a.js").exists()


def test_a_place_that_cannot_be_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "nowhere/page", tmp_path / "file/page"):
        with pytest.raises(ModgraphError, match="MG113"):
            check_place(place, force=False)


def test_a_page_needs_what_runs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "modgraph_web", None)  # as if it were not installed
    assert main(["export", str(tmp_path), "-o", str(tmp_path / "page"), "--web"]) == 1
    errors = capsys.readouterr().err
    assert "MG860" in errors and "pip install ./export/web" in errors
    assert not (tmp_path / "page").exists()


def test_a_bundle_has_no_examples_to_leave_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(tmp_path), "-o", str(tmp_path / "m.onnx"), "--no-examples"]) == 1
    assert "MG862" in capsys.readouterr().err


def test_a_page_is_no_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(tmp_path), "-o", str(tmp_path / "page.onnx"), "--web"]) == 1
    assert "MG861" in capsys.readouterr().err
