"""Sweeps from Python: the same points as the command's, and mistakes before anything trains."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

import modgraph
from modgraph.cli import main
from tests.study.tiny_sweeps import SPEC, runs_in, write_tiny


@pytest.fixture(autouse=True)
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A spec, a recipe and data in the current folder."""
    monkeypatch.chdir(tmp_path)
    return write_tiny(tmp_path)


def test_a_sweep_in_python_is_that_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    program = modgraph.load("tiny.mod", hidden=3)
    settings, recipe = {"train.epochs": 1}, yaml.safe_load(Path("tiny.yaml").read_text())
    runs = modgraph.sweep(
        program, {"train.optimizer.lr": [0.01, 1e30]}, seeds=1, out="s", overrides=settings, recipe=recipe
    )
    assert {run.settings["hidden"] for run in runs} == {3}, "the program's own parameter"
    assert sorted(run.state for run in runs) == ["failed", "finished"]
    assert "lr=1e+30,seed=0  failed: MG604" in capsys.readouterr().err
    words = ["-s", "hidden=3", "-s", "train.optimizer.lr=[0.01,1e30]", "-s", "train.epochs=1", "--seeds", "1"]
    assert main(["sweep", "tiny.mod", *words, "--out", "s"]) == 1
    assert "2 of 2 points are done already" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sweep_file_takes_other_values(capsys: pytest.CaptureFixture[str]) -> None:
    Path("two.yaml").write_text("{spec: tiny.mod, grid: {hidden: [2, 3]}, seeds: 5, set: {train.epochs: 2}}")
    runs = modgraph.sweep("two.yaml", {"hidden": range(4, 5)}, seeds=1, overrides={"train.epochs": 1}, quiet=True)
    assert capsys.readouterr().err == ""
    assert list(runs_in(Path("runs/two-sweep"))) == ["hidden=4,seed=0"]
    assert [(run.settings["hidden"], run.costs["epochs"]) for run in runs] == [(4, 1)]


def test_mistakes_are_reported_before_anything_trains() -> None:
    with pytest.raises(modgraph.ModgraphError, match="MG877"):
        modgraph.sweep(modgraph.loads(SPEC), {"hidden": [2]}, out="s")
    with pytest.raises(modgraph.ModgraphError, match="hiden"):
        modgraph.sweep("tiny.mod", {"hiden": [2, 4]}, out="s")
    with pytest.raises(modgraph.ModgraphError, match=r"grid\.hidden"):
        modgraph.sweep("tiny.mod", {"hidden": 2}, out="s")
    with pytest.raises(TypeError, match="plain values, not ndarray"):
        modgraph.sweep("tiny.mod", {"hidden": np.arange(2, 4)}, out="s")
    Path("one.yaml").write_text("{spec: tiny.mod, grid: {hidden: [2]}}")
    with pytest.raises(TypeError, match="a sweep file has recipe, random of its own"):
        modgraph.sweep("one.yaml", recipe="tiny.yaml", random=2)
    with pytest.raises(TypeError, match="jobs is a number of processes from 1, not 0"):
        modgraph.sweep("tiny.mod", {"hidden": [2]}, out="s", jobs=0)
    with pytest.raises(TypeError, match="the path of a spec"):
        modgraph.sweep(3, {"hidden": [2]}, out="s")  # type: ignore[arg-type]
    assert not Path("s").exists()
