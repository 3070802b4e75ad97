"""Sweep files: what each part means, and the JSON schema that editors check them by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from editors.recipe_schema import SWEEPS, format_schema
from modgraph.diagnostics import ModgraphError
from modgraph.study.file import read_sweep_file
from modgraph.study.plan import make_plan
from modgraph.study.schema import sweep_schema
from modgraph.study.space import Range
from tests.study.sweeps import find_mistakes, lay_out_spec, plan_file
from tests.study.test_messages import BAD

FILE = """
sweeps:
  first:
    spec: net.mod
    set: {train.epochs: 2, train.clip: null, train.optimizer: {name: adam, lr: 0.5}, sparse: [1, 2]}
    points: &rows
      plain:
      "three experts, wide": {experts: 3, width: 16}
    about: {plain: {paper: 44.6, source: Table 2}}
    grid: {train.batch: [4, 8]}
    seeds: {count: 2, keys: [train.seed, data.seed]}
  last:
    spec: net.mod
    recipe: net.yaml
    start: first
    points: *rows
    grid: {train.batch: [8], train.optimizer.lr: [0.1, 1e-2]}
    seeds: 1
  sampled:
    spec: net.mod
    random: 3
    grid: {train.optimizer.lr: {log: [1e-4, 1e-2]}, experts: {integers: [2, 9]}, scale: {uniform: [0, 1]}}
  searched:
    spec: net.mod
    optuna: {trials: 5, metric: validation.total_loss, prune: true}
    grid: {sparse: [[], [1]], train.optimizer.lr: {log: [1e-4, 1e-2]}}
  level:
    spec: net.mod
    iso: {parameters: spec, vary: width}
out: runs/all
tables:
  means: {of: [first, last], rows: [point], columns: {loss: train.total_loss, paper: paper}}
"""
SCHEMA = json.loads(SWEEPS.read_text())
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return lay_out_spec(tmp_path).parent


def test_every_part_of_a_sweep_file_is_read(folder: Path) -> None:
    found = plan_file(folder, FILE)
    runs = {name: [each.run for each in found.points if each.sweep == name] for name in ("first", "last", "sampled")}
    assert runs["first"][:2] == ["first/plain,batch=4,seed=0", "first/plain,batch=4,seed=1"], "seeds are innermost"
    assert runs["first"][-1] == "first/three-experts-wide,batch=8,seed=1" and len(runs["first"]) == 8, runs
    last = [each for each in found.points if each.sweep == "last"]
    assert [each.after for each in last[::2]] == [
        "first/plain,batch=8,seed=0",
        "first/three-experts-wide,batch=8,seed=0",
    ]
    first = found.points[0]
    assert first.about == {"paper": 44.6, "source": "Table 2"}, "facts belong to their point"
    expected = {"train.epochs": 2, "train.clip": None, "train.optimizer": {"name": "adam", "lr": 0.5}, "sparse": (1, 2)}
    seeds = {"train.batch": 4, "train.seed": 0, "data.seed": 0}
    assert first.overrides == {**expected, **seeds}, "a list that is set is one value"
    assert len(runs["sampled"]) == 3 and all(
        0 < each.values["scale"] < 1 for each in found.points if "scale" in each.values
    )
    assert found.searches[0].space == {"sparse": ((), (1,)), "train.optimizer.lr": Range("log", 1e-4, 1e-2)}
    assert found.points[-1].overrides == {"width": 12}, "the recipe's own width costs what the spec costs"
    assert found.tables["means"].of == ("first", "last"), "tables are kept"


def test_the_sweep_file_of_the_page_is_planned(tmp_path: Path) -> None:
    page = Path("docs/sweep-files.md").read_text()
    (tmp_path / "page.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    found = read_sweep_file(tmp_path / "page.yaml")
    points = make_plan(found.sweeps, tmp_path, found.tables).points
    assert len(points) == 20 + 20 and points[0].run in page, "the page names its first run"
    assert points[-1].after == "networks/agreement-T-4,lr=0.0003,seed=4", "the point of the same name and values"


def test_a_file_names_its_folder_and_may_hold_one_sweep(folder: Path) -> None:
    (folder / "one.yaml").write_text("spec: net.mod\nout: runs/one\ntables: {all: {rows: [experts]}}")
    found = read_sweep_file("one.yaml")
    assert found.out == Path("runs/one") and [each.name for each in found.sweeps] == [""], found
    assert [each.run for each in make_plan(found.sweeps, folder).points] == ["net"], "a sweep of one point"


def test_sweeps_and_tables_may_differ_in_some_keys_from_others(folder: Path) -> None:
    text = """
sweeps:
  one: &one {spec: NET, set: {scale: 2.0}, grid: {experts: [2, 3]}}
  two: {<<: *one, set: {width: 16}}
tables:
  first: &first {of: one, rows: [experts]}
  second: {<<: *first, of: two}
"""
    found = plan_file(folder, text)
    assert [each.run for each in found.points] == [f"{name}/experts={n}" for name in ("one", "two") for n in (2, 3)]
    assert found.points[-1].overrides == {"experts": 3, "width": 16}, "a key of its own counts"
    assert (found.tables["second"].of, found.tables["second"].rows) == ("two", ("experts",))
    broken = find_mistakes(folder, text.replace("<<: *first", "<<: 3"))
    assert "<< needs the alias of a mapping" in broken, "which is reported"


def test_a_file_that_is_no_sweep_is_explained(folder: Path) -> None:
    found = find_mistakes(folder, Path("net.yaml").read_text())
    assert "error[MG659]: this is a recipe" in found and "modgraph sweep" in found and "1 error" in found, found
    with pytest.raises(ModgraphError, match=r"nothing\.yaml"):
        read_sweep_file("nothing.yaml")


def test_the_schema_is_generated_from_the_declarations() -> None:
    assert SWEEPS.read_text() == format_schema(sweep_schema), "run: python editors/recipe_schema.py"
    jsonschema.Draft7Validator.check_schema(SCHEMA)


def read_plain(text: str) -> Any:
    return yaml.safe_load(text)


def test_the_schema_accepts_every_part() -> None:
    assert [each.message for each in VALIDATOR.iter_errors(read_plain(FILE.replace("1e-", "1.0e-")))] == []


BY_SCHEMA = (
    "one value in a grid",
    "a misspelt key of the file",
    "a misspelt key of a sweep",
    "a key of the recipe by itself",
    "no seeds",
    "an empty list",
    "a misspelt key of a table",
    "no spec",
)


@pytest.mark.parametrize("case", BY_SCHEMA)
def test_the_schema_refuses_what_the_reader_refuses(case: str) -> None:
    assert not VALIDATOR.is_valid(read_plain(BAD[case][0])), case
