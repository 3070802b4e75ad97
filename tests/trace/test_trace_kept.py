"""What a trace leaves in its run: numbers and pictures, whole, told to be stale when the run goes on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.store.run_directory import RunDirectory
from modgraph.store.stored_trace import StoredTrace, read_trace
from modgraph.training.run import finish, resume_run, start_run
from modgraph.training.stored_run import load_run
from tests.trace.test_trace import TRANSFORMER, trained


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("kept"), TRANSFORMER)


@pytest.fixture
def run(once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(once, tmp_path / "run"))


@pytest.fixture(scope="module")
def traced_once(once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = Path(shutil.copytree(once, tmp_path_factory.mktemp("traced") / "run"))
    assert main(["trace", str(run)]) == 0
    return run


@pytest.fixture
def traced(traced_once: Path, tmp_path: Path) -> Path:
    """A run that has its trace."""
    return Path(shutil.copytree(traced_once, tmp_path / "traced"))


def kept_in(run: Path) -> StoredTrace:
    found = read_trace(RunDirectory(run))
    assert found is not None
    return found


def test_a_trace_is_left_in_the_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert read_trace(RunDirectory(run)) is None
    assert main(["trace", str(run), "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == f"trace.json and 5 pictures are in {run}\n"
    kept = kept_in(run)
    assert {name: value for name, value in kept.content.items() if name != "pictures"} == json.loads(printed.out)
    assert (kept.content["format"], kept.content["epoch"], kept.content["step"]) == (1, 1, 4)
    assert kept.content["graph"] == RunDirectory(run).graph_now().hash()
    assert not kept.stale
    assert list(kept.pictures) == ["places", "groups", "training", "controllers", "paths"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in kept.pictures.values())
    assert sorted(path.name for path in (run / "trace").iterdir()) == sorted(f"{view}.png" for view in kept.pictures)


@pytest.mark.slow
def test_what_is_there_already_is_not_rendered_again(traced: Path) -> None:
    before = (traced / "trace.json").stat().st_mtime_ns
    assert main(["trace", str(traced), "--examples", "2"]) == 0
    assert (traced / "trace.json").stat().st_mtime_ns == before
    (traced / "trace" / "paths.png").unlink()
    assert main(["trace", str(traced)]) == 0
    assert (traced / "trace.json").stat().st_mtime_ns != before
    assert "paths" in kept_in(traced).pictures


@pytest.mark.parametrize("options", [["--route", "blocks.1.expert"], ["-s", "data.test=DATA"]])
def test_of_other_data_and_of_one_route_nothing_is_left(run: Path, once: Path, options: list[str]) -> None:
    options = [each.replace("DATA", f'"{once.parent}/data.npz"') for each in options]
    assert main(["trace", str(run), *options]) == 0
    assert read_trace(RunDirectory(run)) is None


def test_a_run_with_a_trace_is_still_a_run(traced: Path, once: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with resume_run(str(traced)) as engine:
        finish(engine)
    assert main(["eval", str(traced)]) == 0
    capsys.readouterr()
    spec = str(traced.parent / "net.mod")
    Path(spec).write_text(TRANSFORMER)
    with (
        pytest.raises(ModgraphError, match="already contains a run"),
        start_run(spec, str(traced / "recipe.yaml"), {}, str(traced)),
    ):
        pass


@pytest.mark.slow
def test_a_trace_of_before_further_training_is_stale(tmp_path: Path, once: Path) -> None:
    run = tmp_path / "run"
    spec, recipe = once.parent / "net.mod", once.parent / "net.yaml"
    with start_run(
        str(spec), str(recipe), {"train.epochs": 2, "train.checkpoint_every": 2, "train.keep": 9}, str(run)
    ) as engine:
        finish(engine)
    later = sorted((run / "checkpoints").glob("step-0000000[5-9]*"))
    aside = [each.rename(tmp_path / each.name) for each in later]
    assert main(["trace", str(run)]) == 0
    assert not kept_in(run).stale
    for each in aside:
        each.rename(run / "checkpoints" / each.name)
    assert load_run(run).checkpoint().step == 8
    assert kept_in(run).stale
    assert main(["trace", str(run)]) == 0
    assert (kept_in(run).stale, kept_in(run).content["step"]) == (False, 8)


@pytest.mark.some(1)
@pytest.mark.parametrize(("text", "code"), [("{", "MG835"), ("[1]", "MG835"), ("{}", "MG835"), (None, "MG630")])
def test_a_damaged_trace_and_one_of_a_newer_format_are_reported(run: Path, text: str | None, code: str) -> None:
    newer = {"modgraph": "9", "split": "test", "routes": {}, "format": 99}
    (run / "trace.json").write_text(json.dumps(newer) if text is None else text)
    with pytest.raises(ModgraphError) as caught:
        read_trace(RunDirectory(run))
    assert [each.code for each in caught.value.diagnostics] == [code]
    assert main(["trace", str(run), "--force"]) == 0
    assert not kept_in(run).stale


def test_a_trace_that_was_edited_is_reported(traced: Path) -> None:
    text = (traced / "trace.json").read_text()
    (traced / "trace.json").write_text(text.replace('"examples": 40', '"examples": 41'))
    with pytest.raises(ModgraphError, match="it has changed"):
        read_trace(RunDirectory(traced))
    assert main(["trace", str(traced)]) == 0
    assert (traced / "trace.json").read_text() == text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["trace.json", "trace/places.png"])
def test_what_somebody_else_has_put_there_stays(run: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = run / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"mine")
    assert main(["trace", str(run)]) == 1
    assert "MG121" in capsys.readouterr().err
    assert path.read_bytes() == b"mine"
    assert main(["trace", str(run), "--force"]) == 0
    assert path.read_bytes() != b"mine"


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_to_is_a_warning(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (run / "trace").write_text("")
    assert main(["trace", str(run)]) == 0
    printed = capsys.readouterr()
    assert "warning[MG836]" in printed.err
    assert "largest gate" in printed.out
    assert read_trace(RunDirectory(run)) is None


@pytest.mark.slow
def test_a_trace_whose_pictures_cannot_be_written_is_none(traced: Path) -> None:
    """The one that was there is gone by then: its pictures are not all its own any more."""
    (traced / "trace" / "paths.png").unlink()
    (traced / "trace" / "paths.png").mkdir()
    assert main(["trace", str(traced), "--split", "train"]) == 0
    assert read_trace(RunDirectory(traced)) is None


def test_numbers_of_the_trace_are_whole(traced: Path) -> None:
    """Every route has what the schema says, as numbers that JSON has."""
    content: dict[str, Any] = json.loads(
        (traced / "trace.json").read_text(), parse_constant=lambda name: pytest.fail(name)
    )
    for route in content["routes"].values():
        assert len(route["importance"]) == len(route["load"]) == 4
        assert len(route["positions"]["use"]) == 7
        assert shape_of(route["together"]) == (4, 4)
    assert [each["routes"] for each in content["coactivation"]] == [["blocks.0.expert", "blocks.1.expert"]]


def shape_of(rows: list[list[float]]) -> tuple[int, int]:
    return len(rows), len(rows[0])
