"""What sweeps with mistakes say: a code, the place in the sweep file, the points, and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from modgraph.diagnostics import ModgraphError, render_all
from modgraph.study.options import read_iso, read_settings
from tests.study.sweeps import find_mistakes, lay_out_spec, plan_file

BAD: dict[
    str, tuple[str, str, str]
] = {  # a file, the line and column of the mistake, words of the message and the help
    "a list for a parameter that is a list": (
        "spec: NET\ngrid: {sparse: [0, 1]}",
        "2:8",
        "MG643 sparse is a list | sparse=[[0, 1]]",
    ),
    "a range in a grid": (
        "spec: NET\ngrid:\n  train.optimizer.lr: {log: [1e-4, 1e-2]}",
        "3:3",
        "MG640 cannot try every value of train.optimizer.lr=log(0.0001, 0.01) | [0.0001, 0.01] | --random 20",
    ),
    "a range that ends before it begins": (
        "spec: NET\nrandom: 2\ngrid: {width: {integers: [8, 2]}}",
        "3:8",
        "MG641 width: the range integers(8, 2) must begin below its end | width=integers(8, 64)",
    ),
    "a logarithm from 0": (
        "spec: NET\nrandom: 2\ngrid: {scale: {log: [0, 1]}}",
        "3:8",
        "MG641 scale: the range log(0, 1) must begin above 0 | scale=log(1e-4, 1e-2)",
    ),
    "one value in a grid": ("spec: NET\ngrid: {experts: 4}", "2:8", "MG504 grid.experts must be a list or a range"),
    "a misspelt key of the file": ("spec: NET\ngird: {experts: [2]}", "2:1", 'MG503 "gird" in this file | "grid"'),
    "a misspelt key of a sweep": (
        "sweeps:\n  one: {spec: NET, sed: 2}",
        "2:24",
        'MG503 "sed" in sweeps.one | did you mean "seeds"',
    ),
    "a key of the recipe by itself": (
        "spec: NET\ntrain.epochs: 3",
        "2:1",
        'MG503 unknown key "train.epochs" in this file | write it under set, set: {train.epochs: …}',
    ),
    "a section of the recipe": (
        "spec: NET\nset: {train: {epochs: 3}}",
        "2:7",
        'MG645 "train" is a section of recipes | such as train.epochs',
    ),
    "no key of anything": ("spec: NET\nset: {'not a key': 3}", "2:7", 'MG656 cannot set "not a key"'),
    "seeds set twice": (
        "spec: NET\ngrid: {train.seed: [1, 2]}\nseeds: 3",
        "3:1",
        "MG644 train.seed is set twice: by grid and by seeds | keep one of them",
    ),
    "a value for all that the grid replaces": (
        "spec: NET\nset: {model.experts: 3}\ngrid: {experts: [1, 2]}",
        "3:8",
        "MG644 experts is set twice: by set and by grid",
    ),
    "a value of a named point that the grid replaces": (
        "spec: NET\npoints: {few: {experts: 3}}\ngrid: {experts: [1, 2]}",
        "3:8",
        'MG644 experts is set twice: by the point "few" and by grid',
    ),
    "no seeds": ("spec: NET\nseeds: 0", "2:8", "MG504 seeds must be at least 1, not 0"),
    "an empty list": ("spec: NET\ngrid: {experts: []}", "2:8", "MG642 experts has no alternatives | experts=[[]]"),
    "too many combinations": (
        "spec: NET\ngrid:\n"
        + "".join(f"  {key}: {[*range(1, 101)]}\n" for key in ("experts", "train.batch", "train.epochs")),
        "2:1",
        "MG646 this grid has 1,000,000 trainings: at most 100,000 | random: 20",
    ),
    "more random points than there are": (
        "spec: NET\nrandom: 5\ngrid: {experts: [1, 2]}",
        "2:1",
        "MG647 random asks for 5 points, and this sweep has only 2 | leave out random",
    ),
    "random points of nothing": ("spec: NET\nrandom: 5", "2:1", "MG647 only 1 | name what it varies"),
    "no sweep": ("sweeps: {}", "1:1", "MG504 this file has no sweep under sweeps"),
    "sweeps without names": ("sweeps: [net.mod]", "1:9", "MG504 sweeps must be a mapping"),
    "a start in a single sweep": ("spec: NET\nstart: ''", "2:1", 'MG648 unknown sweep "" in start | under sweeps'),
    "no key that gets the seed": ("spec: NET\nseeds: {count: 2, keys: []}", "2:8", "MG504 seeds needs different keys"),
    "no key at all that gets the seed": ("spec: NET\nseeds: {count: 2, keys: [train]}", "2:1", 'MG645 "train"'),
    "a parameter by two names": (
        "spec: NET\ngrid: {experts: [2], model.experts: [3]}",
        "2:22",
        "MG644 experts is set twice: by experts and by model.experts",
    ),
    "a search of nothing": ("spec: NET\noptuna: {trials: 3, metric: loss}", "2:1", "MG647 optuna asks for 3 points"),
    "a folder for a spec": ("spec: ''", "", 'MG101 cannot read "."'),
    "random points and a search": (
        "spec: NET\nrandom: 2\ngrid: {experts: [1, 2]}\noptuna: {trials: 3, metric: loss}",
        "4:1",
        "MG657 random points or those of optuna",
    ),
    "a point that breaks the spec": (
        "spec: NET\ngrid: {width: [8, 9, 11], experts: [2, 3]}",
        "6:27",
        "MG250 dim % heads == 0, not dim=9, heads=2 | this is so at width=9,experts=2, width=9,experts=3",
    ),
    "a value that the recipe refuses": (
        "spec: NET\ngrid: {train.batch: [8, 0]}\nseeds: 2",
        "2:8",
        "MG504 train.batch must be at least 1, not 0 | this is so at batch=0\n",
    ),
    "a parameter that the spec lacks": ("spec: NET\ngrid: {expert: [1, 2]}", "2:8", 'MG210 "expert" | "experts"'),
    "a word for a number": (
        "spec: NET\npoints:\n  plain:\n  odd: {experts: two}",
        "4:9",
        "MG211 experts | this is so at odd",
    ),
    "facts about no point": (
        "spec: NET\npoints: {plain: {}}\nabout: {plan: {paper: 3}}",
        "3:9",
        'MG654 unknown point "plan" in about | did you mean "plain"',
    ),
    "an equal cost of nothing": ("spec: NET\niso: {vary: width}", "2:6", "MG504 iso needs macs or parameters"),
    "an equal cost by no parameter": (
        "spec: NET\niso: {macs: 1000}",
        "2:1",
        "MG651 iso needs vary | add vary: width (--vary width); these change the active MACs: experts, width",
    ),
    "an equal cost by a misspelt parameter": (
        "spec: NET\niso: {macs: 1000, vary: widht}",
        "2:19",
        'MG651 unknown parameter "widht" in iso | did you mean "width"',
    ),
    "an equal cost by a parameter that is no number": (
        "spec: NET\niso: {macs: 1000, vary: sparse}",
        "2:19",
        "MG651 iso cannot vary sparse, which is no whole number from 1",
    ),
    "an equal cost by a parameter without effect": (
        "spec: NET\nset: {width: 24}\niso: {parameters: 1000, vary: heads}",
        "3:25",
        "MG651 heads does not change the parameters | width",
    ),
    "a cost that no width has": (
        "spec: NET\ngrid: {experts: [2, 3]}\niso: {macs: 1100, vary: width}",
        "3:1",
        "MG652 no width gives 1,100 active MACs to within 2 %: width=4 has 648 and width=6 has 1,236 | macs: 1236",
    ),
    "a sweep that there is not": (
        "sweeps:\n  one: {spec: NET}\n  two: {spec: NET, start: oen}",
        "3:24",
        'MG648 unknown sweep "oen" in start | did you mean "one"',
    ),
    "a circle": (
        "sweeps:\n  one: {spec: NET, start: two}\n  two: {spec: NET, start: one}",
        "2:24",
        "MG649 in a circle: one → two → one | 1 error",
    ),
    "itself": ("sweeps:\n  one: {spec: NET, start: one}", "2:24", "MG649 one → one | remove one start"),
    "no point to start from": (
        "sweeps:\n  one: {spec: NET, seeds: 2}\n  two: {spec: NET, start: one, seeds: 3}",
        "3:24",
        'MG650 the sweep "one" has no run to give "seed=2" | same values of train.seed',
    ),
    "several points to start from": (
        "sweeps:\n  one: {spec: NET, grid: {experts: [2, 4]}}\n  two: {spec: NET, start: one}",
        "3:24",
        'MG650 has several runs (one/experts=2, one/experts=4) to give "net" | vary experts in this sweep too',
    ),
    "a name that is no folder": (
        "sweeps:\n  'a/b': {spec: NET}",
        "2:3",
        'MG655 a sweep cannot be called "a/b" | for example: a_b',
    ),
    "a table of an unknown sweep": (
        "sweeps:\n  one: {spec: NET}\ntables:\n  first: {of: oen}",
        "4:11",
        'MG648 unknown sweep "oen" in tables.first.of | did you mean "one"',
    ),
    "a misspelt key of a table": (
        "spec: NET\ntables:\n  first: {row: [experts]}",
        "3:11",
        'MG503 unknown key "row" in tables.first | did you mean "rows"',
    ),
    "no spec": ("grid: {experts: [2, 4]}", "1:1", "MG505 this file needs spec: the spec"),
    "a spec that is not there": ("spec: nothing.mod", "", "MG101 nothing.mod"),
    "data that is not there": (
        "spec: NET\nset: {data.train: nothing.npz}\ngrid: {experts: [2, 4]}",
        "2:7",
        "MG653 nothing.npz | -s data.train=PATH",
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return lay_out_spec(tmp_path).parent


@pytest.mark.parametrize("name", BAD)
def test_a_mistake_has_a_code_a_place_and_a_way_out(folder: Path, name: str) -> None:
    text, place, expected = BAD[name]
    found = find_mistakes(folder, text)
    code, _, words = expected.partition(" ")
    assert f"[{code}]" in found, found
    assert f":{place}\n" in found or not place, found
    for each in words.split(" | "):
        assert each in found, found


def test_every_mistake_is_reported_at_once(folder: Path) -> None:
    text = """
        sweeps:
          one: {spec: NET, grid: {experts: [2, 99999999], train.batch: [0]}, seeds: 2}
          two: {spec: NET, grid: {experts: []}}
          three: {spec: NET, start: four}
    """
    found = find_mistakes(folder, text)
    assert [code for code in ("MG216", "MG504", "MG642", "MG648") if f"[{code}]" in found] and "4 errors" in found, (
        found
    )


def test_a_mistake_of_all_points_names_none(folder: Path) -> None:
    (folder / "net.mod").write_text((folder / "net.mod").read_text().replace("relu", "rleu"))
    found = find_mistakes(folder, "spec: NET\ngrid: {experts: [2, 4]}\nseeds: 3")
    assert found.count("rleu") >= 1 and "this is so at" not in found, found
    assert found.endswith("1 error"), "it is reported once"


def test_cautions_are_given_once(folder: Path) -> None:
    (folder / "net.mod").write_text(
        (folder / "net.mod").read_text().replace("  h = tok", "  pool spare[2] = linear(4)\n  h = tok")
    )
    found = plan_file(folder, "spec: NET\ngrid: {experts: [2, 4]}\nseeds: 3")
    assert len(found.warnings) == 1 and not found.warnings[0].notes, render_all(found.warnings)


def test_a_value_given_twice_on_the_command_line_says_how_to_try_both() -> None:
    with pytest.raises(ModgraphError) as error:
        read_settings([("experts", "2"), ("experts", "[4, 8]")])
    assert "-s experts=[2, 4, 8]" in str(error.value), error.value


@pytest.mark.parametrize(("text", "words"), [("mac=3", 'did you mean "macs"?'), ("macs=0", "at least 1"), ("macs", "")])
def test_a_bad_cost_on_the_command_line_is_explained(text: str, words: str) -> None:
    with pytest.raises(ModgraphError) as error:
        read_iso(text)
    assert words in str(error.value), error.value
