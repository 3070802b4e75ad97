"""Plans: points in order, their names, identities, and the runs that they start from."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from modgraph.diagnostics import ModgraphError
from modgraph.program import Program
from modgraph.study import specs
from modgraph.study.checks import refuse_changed
from modgraph.study.plan import identify_run, make_plan
from modgraph.study.space import Range
from modgraph.study.sweep import Optuna, Random, Seeds, Sweep
from modgraph.training.recipe import read_recipe
from modgraph.training.run import finish, start_run
from tests.study.sweeps import lay_out_spec, plan, plan_file

TWO = Seeds(count=2, keys=("train.seed",))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return lay_out_spec(tmp_path).parent


def test_a_grid_has_every_combination_with_seeds_innermost(folder: Path) -> None:
    found = plan(folder, grid={"experts": (2, 4), "train.optimizer.lr": (0.1, 0.01)}, seeds=TWO).points
    expected = [(e, lr, s) for e, lr, s in itertools.product((2, 4), (0.1, 0.01), (0, 1))]
    assert [tuple(each.values.values()) for each in found] == expected, "in the order given"
    assert found[1].run == "experts=2,lr=0.1,seed=1", "a run is named by its values"
    assert found[-1].overrides == {"experts": 4, "train.optimizer.lr": 0.01, "train.seed": 1}, "as training takes them"
    assert len({each.identity for each in found}) == 8, "all are different trainings"


def test_a_point_has_the_identity_of_its_finished_run(folder: Path) -> None:
    (point,) = plan(folder, grid={"experts": (3,)}, settings={"train.clip": 1}).points
    run = folder / "another name"
    with start_run(point.spec, point.recipe, point.overrides, run) as engine:
        finish(engine)
    assert identify_run(run) == point.identity, "the folder alone gives the same identity"
    (folder / "net.mod").write_text("# a comment\n" + (folder / "net.mod").read_text())
    (again,) = plan(folder, grid={"experts": (3,)}, settings={"train.clip": 1.0}).points
    assert again.identity == point.identity, "comments, and 1 for 1.0, make no other training"
    (other,) = plan(folder, grid={"experts": (3,)}, settings={"train.clip": 2}).points
    assert other.identity != point.identity, "another value does"


def test_a_point_that_begins_with_a_run_has_the_identity_of_its_own_run(folder: Path) -> None:
    first, second = Sweep(spec=folder / "net.mod", name="first"), Sweep(spec=folder / "net.mod", name="second")
    second = Sweep(spec=folder / "net.mod", name="second", start="first", settings={"train.epochs": 2})
    found = make_plan([second, first], folder / "out").points
    assert [each.run for each in found] == ["first/net", "second/net"], "the run to start from trains before"
    for point in found:
        with start_run(point.spec, point.recipe, point.overrides, folder / "out" / point.run) as engine:
            finish(engine)
    assert [identify_run(folder / "out" / each.run) for each in found] == [each.identity for each in found]
    (folder / "out").rename(folder / "moved")
    known = {identify_run(folder / "moved" / each.run): f"old/{each.run}" for each in found[:1]}
    moved = make_plan([second, first], folder / "moved", known=known).points
    assert moved[1].overrides["start.run"] == str(folder / "moved/old/first/net"), "it starts from the known run"
    assert moved[1].identity == found[1].identity, "wherever that stands"
    last = folder / "moved" / found[1].run
    assert identify_run(last, known=found[1].identity) == found[1].identity, "as the sweep's record has it"


def test_equal_points_train_once(folder: Path) -> None:
    points = {"plain": {}, "two experts": {"experts": 2}, "scaled": {"scale": 3.0}}
    found = plan(folder, points=points, about={"plain": {"paper": 0.5}})
    assert found.repeats == {"two-experts": "plain", "scaled": "plain"}, "a parameter without effect makes no other"
    assert [each.run for each in found.trained] == ["plain"], "only one of them trains"
    assert [(each.label, dict(each.about)) for each in found.points[:2]] == [
        ("plain", {"paper": 0.5}),
        ("two experts", {}),
    ]


def test_known_runs_keep_their_names_and_no_other_point_takes_them(folder: Path) -> None:
    before = plan(folder, grid={"experts": (2, 4)}).points
    known = {before[0].identity: "old", "another": "experts=4"}
    sweep = Sweep(spec=folder / "net.mod", grid={"experts": (2, 4)})
    after = make_plan([sweep], folder / "out", known=known).points
    assert after[0].run == "old", "an equal run is found whatever its name"
    assert after[1].run == f"experts=4-{after[1].identity[:8]}", "a name that another run has is not taken"


def test_names_are_short_safe_and_distinct(folder: Path) -> None:
    points = {"a/b": {"experts": 2}, "a b": {"experts": 3}, "A-b": {"experts": 4}, "x" * 300: {"experts": 5}}
    found = [each.run for each in plan(folder, points=points).points]
    assert found[0] == "a-b" and len({each.lower() for each in found}) == 4, found
    assert all(len(each) <= 100 and "/" not in each for each in found), found


def test_names_of_runs_keep_keys_apart(folder: Path) -> None:
    found = plan(folder, grid={"data.seed": (1,), "train.optimizer.lr": (0.1,)}, seeds=TWO).points
    assert found[0].run == "data.seed=1,lr=0.1,train.seed=0", "two keys end in the same word"


def test_sweeps_start_from_the_points_with_equal_values(folder: Path) -> None:
    first = Sweep(spec=folder / "net.mod", name="first", grid={"experts": (2, 4)}, seeds=TWO)
    last = Sweep(
        spec=folder / "net.mod",
        name="last",
        start="first",
        grid={"train.optimizer.lr": (0.1, 0.2), "experts": (4,)},
        seeds=TWO,
    )
    found = [each for each in make_plan([last, first], folder / "out").points if each.sweep == "last"]
    expected = [f"first/experts=4,seed={seed}" for _ in range(2) for seed in range(2)]
    assert [each.after for each in found] == expected, "keys that both vary have equal values"
    assert found[0].overrides["start.run"] == str(folder / "out" / expected[0]), "which is where that run will stand"


def test_weights_that_cannot_be_the_first_ones_are_reported_before_any_training(folder: Path) -> None:
    first = Sweep(spec=folder / "net.mod", name="first")
    wider = Sweep(spec=folder / "net.mod", name="wider", start="first", settings={"width": 16})
    with pytest.raises(ModgraphError) as error:
        make_plan([first, wider], folder / "out")
    assert "[16, 4] here and [12, 4] there" in str(error.value), error.value


def test_a_spec_that_changes_during_a_sweep_is_noticed(folder: Path) -> None:
    (point,) = plan(folder).points
    refuse_changed(point)
    (folder / "net.yaml").write_text((folder / "net.yaml").read_text().replace("lr: 0.1", "lr: 0.2"))
    with pytest.raises(ModgraphError) as error:
        refuse_changed(point)
    assert error.value.diagnostics[0].code == "MG658", error.value


def test_each_spec_with_its_parameters_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[dict[str, Any]] = []
    plain = specs.load

    def load(path: Path, **parameters: Any) -> Program:
        reads.append(parameters)
        return plain(path, **parameters)

    monkeypatch.setattr(specs, "load", load)
    found = plan(folder, grid={"train.batch": (4, 8), "experts": (2, 3)}, seeds=Seeds(count=5, keys=("train.seed",)))
    assert len(found.points) == 20 and len(reads) == 2, reads


def test_random_points_differ_and_more_begin_with_the_same(folder: Path) -> None:
    grid = {"scale": (1.0, 2.0), "experts": Range("integers", 2, 64), "train.optimizer.lr": Range("log", 1e-4, 1e-1)}
    five, nine = (
        [each.values for each in plan(folder, grid=grid, random=Random(count=count, seed=3)).points] for count in (5, 9)
    )
    assert five == nine[:5] and len({repr(each) for each in nine}) == 9, "a search is extended, not begun anew"
    assert all(2 <= each["experts"] <= 64 and 1e-4 <= each["train.optimizer.lr"] <= 0.1 for each in nine), nine


def test_every_point_of_a_finite_space_can_be_sampled(folder: Path) -> None:
    found = plan(folder, grid={"experts": tuple(range(1, 31))}, random=Random(count=30, seed=0)).points
    assert {each.values["experts"] for each in found} == {*range(1, 31)}, "each once"


def test_a_search_proposes_points_for_each_seed(folder: Path) -> None:
    optuna = Optuna(trials=4, metric="train.total_loss", prune=False, seed=0)
    found = plan(folder, grid={"width": Range("integers", 2, 64)}, seeds=TWO, optuna=optuna)
    assert found.points == () and [*found.searches[0].space] == ["width"], "no point is known beforehand"
    proposed = found.searches[0].propose({"width": 20})
    assert [each.run for each in proposed] == ["width=20,seed=0", "width=20,seed=1"]
    again = found.searches[0].propose({"width": 20})
    assert [each.run for each in again] == [each.run for each in proposed], "a trial proposed again trains once"


def test_a_search_is_checked_with_every_alternative_and_both_ends(folder: Path) -> None:
    optuna = Optuna(trials=4, metric="train.total_loss", prune=False, seed=0)
    with pytest.raises(ModgraphError) as error:
        plan(folder, grid={"width": Range("integers", 8, 31), "experts": (2, 99999999)}, optuna=optuna)
    assert {each.code for each in error.value.diagnostics} == {"MG250", "MG216"}, error.value


def test_a_mapping_replaces_a_mapping_of_the_recipe(folder: Path) -> None:
    (point,) = plan(folder, settings={"train.optimizer": {"name": "adam", "lr": 0.5}, "train.clip": None}).points
    with start_run(point.spec, point.recipe, point.overrides, folder / "run") as engine:
        assert engine.train.optimizer.plain()["lr"] == 0.5 and engine.train.optimizer.name == "adam"


def test_a_section_is_set_before_its_keys(folder: Path) -> None:
    grid = {"train.optimizer.lr": (0.5,), "train.optimizer": ("adam", "sgd")}
    for point in plan(folder, grid=grid).points:
        recipe = read_recipe(folder / "net.yaml", point.overrides)
        assert recipe.train.optimizer.plain()["lr"] == 0.5, "which the section would replace"


def test_several_keys_may_get_the_seed(folder: Path) -> None:
    found = plan_file(folder, "spec: NET\nseeds: {count: 2, keys: [train.seed, data.seed]}").points
    assert [each.run for each in found] == ["seed=0", "seed=1"], "they are one seed"
    assert found[1].overrides == {"train.seed": 1, "data.seed": 1}, "which all of the keys get"


def test_planning_needs_no_torch(folder: Path) -> None:
    code = "import sys; from pathlib import Path; from modgraph.study.plan import make_plan; from modgraph.study.sweep"
    code += " import Sweep; make_plan([Sweep(spec=Path(sys.argv[1]), grid={'experts': (2, 4)})], Path('out')); "
    code += "assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, str(folder / "net.mod")], check=True)
