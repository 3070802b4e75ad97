"""The folder of a run: nothing foreign is touched, nothing changed is taken for what was written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from modgraph.data.errors import bad_file
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph
from modgraph.store.checkpoint import Checkpoint, read_newest_checkpoint, write_checkpoint
from modgraph.store.checkpoint_record import list_steps_in, path_of
from modgraph.store.records import seal, unseal
from modgraph.store.run_directory import RunDirectory
from modgraph.training.run import start_run
from modgraph.training.stored_run import load_run
from tests.small_runs import begin, final_weights, go_on


def contents(folder: Path) -> dict[str, bytes | None]:
    """All that is in a folder, but for the lock."""
    paths = sorted(path for path in folder.rglob("*") if path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in paths}


def code_of(action: Callable[[], object]) -> str:
    with pytest.raises(ModgraphError) as caught:
        action()
    return caught.value.diagnostics[0].code


FOREIGN = {
    "a file": ["notes.txt"],
    "checkpoints of others": ["checkpoints/model.pt", "checkpoints/step-00000000.json"],
    "names that a run has": ["spec.mod", "metrics.jsonl", "seconds.jsonl"],
    "another run.json": ["run.json"],
    "another recipe": ["run.json", "recipe.yaml", "checkpoints/last.ckpt"],
    "a hidden file": [".git/config"],
    "an empty folder": ["data/"],
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_folder_that_modgraph_did_not_make_is_refused_and_left_as_it_is(
    spec: Path, tmp_path: Path, kind: str
) -> None:
    out = tmp_path / "out"
    for name in FOREIGN[kind]:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            (out / name).mkdir()
        else:
            (out / name).write_text("{}")
    before = contents(out)
    assert code_of(lambda: begin(spec, out)) == "MG608"
    assert contents(out) == before
    assert not (out / ".lock").exists()


@pytest.mark.parametrize("damage", [None, b"", b'{"format": 2}'])
def test_a_run_that_lost_its_record_keeps_its_checkpoints(spec: Path, tmp_path: Path, damage: bytes | None) -> None:
    out = tmp_path / "run"
    begin(spec, out, train__epochs=1)
    if damage is None:
        (out / "run.json").unlink()
    else:
        (out / "run.json").write_bytes(damage)
    before = contents(out)
    assert code_of(lambda: begin(spec, out)) == "MG609"
    assert contents(out) == before


@pytest.mark.parametrize("left", [[], [".lock"], [".lock", ".modgraph-0123456789abcdef.partial"]])
def test_a_folder_that_is_empty_or_was_left_at_once_is_taken(spec: Path, tmp_path: Path, left: list[str]) -> None:
    out = tmp_path / "run"
    out.mkdir()
    for name in left:
        (out / name).write_text("")
    begin(spec, out, train__epochs=1)
    assert {path.name for path in out.iterdir()} - {".lock"} == set(
        "spec.mod ir.json recipe.yaml data.json run.json metrics.jsonl steps.jsonl seconds.jsonl confusion.json "
        "tensorboard checkpoints".split()
    )


def cut_off(spec: Path, out: Path, monkeypatch: pytest.MonkeyPatch, **overrides: object) -> None:
    """A start that dies before it says that it is one."""

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(RunDirectory, "mark", die)
        begin(spec, out, **overrides)


def test_a_start_that_was_cut_off_is_begun_anew(spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that had inherited weights: its step 0 is none of the new run's."""
    begin(spec, tmp_path / "old", train__epochs=1)
    whole = begin(spec, tmp_path / "whole", train__epochs=1)
    out = tmp_path / "run"
    cut_off(spec, out, monkeypatch, start__run=str(tmp_path / "old"))
    assert {"start.json", "checkpoints"} <= {path.name for path in out.iterdir()}
    assert code_of(lambda: go_on(out)) == "MG610"
    assert code_of(lambda: load_run(out)) == "MG610"
    assert code_of(lambda: begin(spec, tmp_path / "other", start__run=str(out))) == "MG610"
    assert begin(spec, out, train__epochs=1) == whole
    assert not (out / "start.json").exists()
    assert list_steps_in(out / "checkpoints") == list_steps_in(tmp_path / "whole/checkpoints")
    assert final_weights(out) == final_weights(tmp_path / "whole")


@pytest.mark.parametrize("name", ["notes.txt", "spec.mod", "checkpoints/step-00000007.json"])
def test_what_was_put_next_to_a_start_that_was_cut_off_stays(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    out = tmp_path / "run"
    cut_off(spec, out, monkeypatch)
    (out / name).parent.mkdir(exist_ok=True)
    (out / name).write_text("mine")
    before = contents(out)
    assert code_of(lambda: begin(spec, out)) == "MG608"
    assert contents(out) == before


def stop_at_first_step(spec: Path, out: Path, **overrides: object) -> None:
    """A run that ends as one whose data cannot be read: it has begun, and keeps no step."""
    with pytest.raises(ModgraphError), start_run(str(spec), None, overrides, str(out)):
        raise bad_file("image.png", "it is damaged")


def test_a_run_that_kept_no_step_is_begun_anew(spec: Path, tmp_path: Path) -> None:
    whole = begin(spec, tmp_path / "whole", train__epochs=1)
    out = tmp_path / "run"
    stop_at_first_step(spec, out, **{"train.epochs": 7})
    assert json.loads((out / "run.json").read_text())["status"] == "started", "the run has begun"
    assert begin(spec, out, train__epochs=1) == whole
    assert final_weights(out) == final_weights(tmp_path / "whole")


KEPT = ["notes.txt", "spec.mod", "checkpoints/step-00000007.json", "metrics.jsonl", "seconds.jsonl"]


@pytest.mark.parametrize("name", KEPT)
def test_a_run_that_kept_no_step_stays_with_what_was_put_next_to_it(spec: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "run"
    stop_at_first_step(spec, out)
    (out / name).parent.mkdir(exist_ok=True)
    (out / name).write_text("mine")
    before = contents(out)
    assert code_of(lambda: begin(spec, out)) == "MG601"
    assert contents(out) == before, "nothing in the folder changes"


def test_a_run_that_kept_only_inherited_weights_stays(spec: Path, tmp_path: Path) -> None:
    begin(spec, tmp_path / "old", train__epochs=1)
    stop_at_first_step(spec, tmp_path / "run", **{"start.run": str(tmp_path / "old")})
    assert code_of(lambda: begin(spec, tmp_path / "run")) == "MG601", "the source of its weights may be gone"


def test_a_training_that_lives_keeps_its_folder_before_its_first_step(spec: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with start_run(str(spec), None, {}, str(out)):
        before = contents(out)
        assert code_of(lambda: begin(spec, out)) == "MG606"
        assert contents(out) == before, "the folder of a living training is not touched"


def test_changed_data_of_a_run_that_kept_no_step_name_a_way_out_that_succeeds(spec: Path, tmp_path: Path) -> None:
    out, data = tmp_path / "run", spec.with_suffix(".npz")
    stop_at_first_step(spec, out)
    with np.load(data) as arrays:
        fewer = {name: array[:500] for name, array in arrays.items()}
    np.savez(data, **fewer)
    with pytest.raises(ModgraphError, match="begin the run anew") as caught:
        go_on(out)
    assert caught.value.diagnostics[0].code == "MG620"
    begin(spec, out, train__epochs=1)


def test_a_run_is_found_through_a_link(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk")
    begin(spec, tmp_path / "link", train__epochs=1)
    assert (tmp_path / "link").is_symlink()
    assert code_of(lambda: begin(spec, tmp_path / "link")) == "MG601"
    with start_run(str(spec), None, {"start.run": str(tmp_path / "link")}, str(tmp_path / "next")):
        pass
    (tmp_path / "nowhere").symlink_to("gone")
    assert code_of(lambda: begin(spec, tmp_path / "nowhere")) == "MG113"


def test_a_run_cannot_start_from_itself(spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_off(spec, tmp_path / "run", monkeypatch)
    assert code_of(lambda: begin(spec, tmp_path / "run", start__run=str(tmp_path / "run"))) == "MG610"


@pytest.mark.parametrize("name", ["spec.mod", "ir.json", "recipe.yaml"])
def test_a_file_of_a_run_that_was_changed_is_reported(spec: Path, tmp_path: Path, name: str) -> None:
    begin(spec, tmp_path / "run", train__epochs=1)
    path = tmp_path / "run" / name
    content = path.read_bytes()
    path.write_bytes(content.replace(b"1", b"2", 1))
    for read in (load_run, go_on):
        assert code_of(lambda read=read: read(tmp_path / "run")) == "MG611"  # type: ignore[misc]
    path.unlink()
    assert code_of(lambda: go_on(tmp_path / "run")) == "MG611"
    path.write_bytes(content)
    assert go_on(tmp_path / "run")["epochs"] == 1


@pytest.mark.parametrize("file", ["run.json", "checkpoint"])
@pytest.mark.parametrize("number", [1, 99])
def test_another_format_is_refused_with_the_way_out(spec: Path, tmp_path: Path, file: str, number: int) -> None:
    begin(spec, tmp_path / "run", train__epochs=1)
    path = tmp_path / "run" / file
    if file == "checkpoint":
        (path,) = (tmp_path / "run/checkpoints").glob("*.json")
    record = unseal(json.loads(path.read_text()))
    path.write_bytes(seal({**record, "format": number}))
    for read in (go_on, lambda run: load_run(run).model()):
        with pytest.raises(ModgraphError) as caught:
            read(tmp_path / "run")
        (refusal,) = caught.value.diagnostics
        assert refusal.code == "MG630"
        assert f"has format {number}, but this modgraph reads format {record['format']}" in refusal.text()
        assert refusal.advice().startswith("train the model anew: modgraph train SPEC")


def test_a_checkpoint_that_lacks_a_fact_is_refused(spec: Path, tmp_path: Path) -> None:
    begin(spec, tmp_path / "run", train__epochs=1)
    (path,) = (tmp_path / "run/checkpoints").glob("*.json")
    record = unseal(json.loads(path.read_text()))
    for fact in ("logs", "accumulators", "algorithm", "at", "monitored"):
        facts = {name: value for name, value in record["facts"].items() if name != fact}
        path.write_bytes(seal({**record, "facts": facts}))
        assert code_of(lambda: go_on(tmp_path / "run")) == "MG603", fact


# ------------------------------------------------------------ checkpoints


def checkpoint(step: int, best: int | None = None) -> Checkpoint:
    graph = Graph("empty", {})
    weights = {"w": torch.tensor([float(step)])}
    return Checkpoint(0, step, weights, {}, {"best_step": best}, graph=graph, origin=graph.hash())


def test_checkpoints_are_ordered_by_number(tmp_path: Path) -> None:
    """As text, step 100,000,000 stands before step 99,999,999."""
    for step in (99_999_998, 99_999_999, 100_000_000, 100_000_001, 10**9):
        write_checkpoint(tmp_path, checkpoint(step), keep=2, best=99_999_998)
        found = read_newest_checkpoint(tmp_path)
        assert found is not None
        assert found.step == step
    assert list_steps_in(tmp_path) == list_steps_in(tmp_path, ".safetensors") == [99_999_998, 100_000_001, 10**9]


def test_what_is_no_checkpoint_is_neither_read_nor_deleted(tmp_path: Path) -> None:
    names = ["step-x.json", "step-x.safetensors", "step-1.json", "step-00000001.json.bak", "step-000000001.safetensors"]
    for name in names:
        (tmp_path / name).write_text("mine")
    for step in range(3):
        write_checkpoint(tmp_path, checkpoint(step), keep=1)
    assert list_steps_in(tmp_path) == [2]
    assert {path.name for path in tmp_path.iterdir()} == {*names, "step-00000002.json", "step-00000002.safetensors"}


@pytest.mark.parametrize("best", [False, True])
def test_a_checkpoint_that_a_training_deletes_while_it_is_read_gives_way_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, best: bool
) -> None:
    """The training gets on whenever a record has been read, twice; the tensors read last are whole."""
    from modgraph.store.checkpoint_record import CheckpointRecord

    write_checkpoint(tmp_path, checkpoint(1, best=1 if best else None), keep=1)
    plain, written = CheckpointRecord.read, [2, 3]

    def read_and_then_get_on(path: Path) -> object:
        found = plain(path)
        if written:
            step = written.pop(0)
            write_checkpoint(tmp_path, checkpoint(step, best=step if best else None), keep=1)
        return found

    monkeypatch.setattr(CheckpointRecord, "read", read_and_then_get_on)
    found = read_newest_checkpoint(tmp_path, best=best)
    assert found is not None
    assert (found.step, found.weights["w"].item()) == (3, 3.0)


@pytest.mark.parametrize(
    "wrong", [{"step": 3}, {"step": True}, {"epoch": "1"}, {"epoch": None}, {"facts": []}, {"x": 1}]
)
def test_a_record_of_the_wrong_kind_is_refused(tmp_path: Path, wrong: dict[str, object]) -> None:
    """Whether its digest is that of the record before, or its own; so is one without digest and format."""
    path = write_checkpoint(tmp_path, checkpoint(2)).with_suffix(".json")
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | wrong))
    assert code_of(lambda: read_newest_checkpoint(tmp_path)) == "MG603"
    path.write_bytes(seal(unseal(record) | wrong))
    assert code_of(lambda: read_newest_checkpoint(tmp_path)) == "MG603"
    del record["format"], record["digest"]
    path.write_text(json.dumps(record))
    assert code_of(lambda: read_newest_checkpoint(tmp_path)) == "MG603"
    assert path_of(tmp_path, 2).exists()
