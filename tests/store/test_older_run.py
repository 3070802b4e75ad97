"""A run of a version in which every router was Python (1945a88): what it holds is read, and its training goes on."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from modgraph.cli import main
from modgraph.ir import RouterNode, hash_of_stored
from modgraph.program import load
from modgraph.routers.prelude import definitions
from modgraph.store.checkpoint_record import CheckpointRecord
from modgraph.store.records import sealed, unsealed
from modgraph.store.run_directory import RunDirectory

STORED = Path(__file__).parent / "older_run.zip"  # after two of three epochs, and the metrics after the third
WAS_THERE = "/tmp/p2_run/"


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """The folder with the run, its spec and its data, which its recipe looks for here."""
    with zipfile.ZipFile(STORED) as archive:
        archive.extractall(tmp_path)
    recipe, record = tmp_path / "run" / "recipe.yaml", tmp_path / "run" / "run.json"
    recipe.write_text(recipe.read_text().replace(WAS_THERE, f"{tmp_path}/"))
    told = unsealed(json.loads(record.read_text()))
    told["files"][recipe.name] = hashlib.sha256(recipe.read_bytes()).hexdigest()
    record.write_bytes(sealed(told))
    return tmp_path


def test_its_graph_is_that_of_its_spec(older: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = json.loads((older / "run" / "ir.json").read_text())
    former = {node["is"] for node in stored["nodes"] if node["kind"] == "router"}
    assert former & {*definitions()} > {"noisy_top_k", "linear", "cosine", "truncated_kernel"}
    graph = RunDirectory(older / "run").graph_now()
    assert graph == load(older / "small.mod").ir
    assert all(
        not node.router.computes for node in graph.of_kind(RouterNode) if node.name in ("noisy", "plain", "near")
    )
    assert main(["diff", str(older / "small.mod"), str(older / "run")]) == 0
    assert "the architectures are the same" in capsys.readouterr().out


def test_its_checkpoints_are_known_by_the_graph_that_it_began_with(older: Path) -> None:
    run = RunDirectory(older / "run")
    record = CheckpointRecord.read(run.checkpoints / "step-00000004.safetensors")
    assert record.origin == run.origin() == hash_of_stored(json.loads(run.ir.read_text()))
    assert record.origin != run.read_graph().hash()
    assert record.graph == run.read_graph()


def test_its_training_goes_on_as_it_would_have(older: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--resume", str(older / "run")]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found == pytest.approx(json.loads((older / "expected.json").read_text()), rel=1e-5, abs=1e-7)
    assert main(["eval", str(older / "run"), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["test.total_loss"] == pytest.approx(found["test.total_loss"], rel=1e-6)
