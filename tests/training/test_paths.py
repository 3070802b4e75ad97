"""Files that a recipe names are those that were there when the run began, wherever it is looked at from."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.training.recipe import read_recipe
from tests.children import output_of_child
from tests.small_runs import RECIPE, begin, go_on


@pytest.fixture
def folders(spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two folders with other data under one name; the spec's recipe names that, and the first is the current one."""
    recipe = RECIPE.replace("{folder}/", "").format(optimizer="adam").replace("}\ntrain", ", test: test.npz}\ntrain")
    spec.with_suffix(".yaml").write_text(recipe)
    whole = dict(np.load(tmp_path / "digits.npz"))
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        other = whole if name == "here" else {**whole, "label": (whole["label"] + 1) % 10}
        np.savez(tmp_path / name / "digits.npz", **other)
        np.savez(tmp_path / name / "test.npz", **{key: array[:200] for key, array in other.items()})
    (tmp_path / "digits.npz").unlink()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here", tmp_path / "there"


def accuracy(capsys: pytest.CaptureFixture[str], *arguments: str) -> float:
    capsys.readouterr()
    assert main(["eval", *arguments, "--json"]) == 0
    return float(json.loads(capsys.readouterr().out)["test.accuracy"])


def test_a_run_reads_its_own_files_from_anywhere(
    spec: Path, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = begin(spec, Path("run"), train__epochs=8)
    expected = metrics["test.accuracy"]
    assert expected > 0.6
    assert accuracy(capsys, "run") == expected
    monkeypatch.chdir(folders[1])
    assert accuracy(capsys, "../here/run") == expected
    assert go_on(Path("../here/run")) == metrics
    assert accuracy(capsys, "../here/run", "-s", "data.test=test.npz") < 0.3  # of this folder
    assert accuracy(capsys, "../here/run", "-s", "data.test=../here/test.npz") == expected


def test_a_run_may_be_moved(spec: Path, folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    expected = begin(spec, Path("run"), train__epochs=2)["test.accuracy"]
    shutil.move("run", folders[1] / "moved")
    assert accuracy(capsys, str(folders[1] / "moved")) == expected


def test_other_weights_are_found_again_too(
    spec: Path, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(spec, Path("run"), train__epochs=1)
    begin(spec, Path("next"), train__epochs=1, start__run="run")
    record = yaml.safe_load(Path("next/recipe.yaml").read_text())
    assert record["start"]["run"] == str(folders[0] / "run")
    assert record["data"]["train"] == str(folders[0] / "digits.npz")


PATHS = {
    "data: {name: npz, train: a.npz, test: b.npz}": {"train": "a.npz", "test": "b.npz"},
    "data: {name: text, train: a, validation: ../b, test: ./c, vocabulary: d}": {
        "train": "a",
        "validation": "../b",
        "test": "c",
        "vocabulary": "d",
    },
    "data: {name: min_max_digits, images: i, labels: l}": {"images": "i", "labels": "l"},
    "data: {name: cifar10, folder: f}": {"folder": "f"},
    "data: {name: image_folders, root: r}": {"root": "r"},
    "data: {name: text, train: ''}": {},
    "data: {name: text, train: /x/../a}": {},
}


@pytest.mark.parametrize("text", PATHS)
def test_every_path_of_a_recipe_is_kept_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("recipe.yaml").write_text(text + "\nstart: {weights: w, map: m}\n")
    given = yaml.safe_load(text)["data"]
    recipe = read_recipe("recipe.yaml")
    data: dict[str, Any] = {key: value for key, value in recipe.data.plain().items() if key in given}
    assert data == {**given, **{key: f"{tmp_path}/{path}" for key, path in PATHS[text].items()}}
    assert recipe.start is not None
    assert (recipe.start.weights, recipe.start.map) == (f"{tmp_path}/w", f"{tmp_path}/m")
    monkeypatch.chdir("/")
    (tmp_path / "resolved.yaml").write_text(recipe.to_yaml())
    assert read_recipe(tmp_path / "resolved.yaml") == recipe


def test_a_current_folder_that_is_gone_is_reported(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text("data: {name: npz, train: a.npz}")
    (tmp_path / "gone").mkdir()

    def read() -> int:
        os.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        with pytest.raises(ModgraphError, match="the current folder no longer exists"):
            read_recipe(str(tmp_path / "recipe.yaml"))
        return 0

    assert output_of_child(read) == (0, "")
