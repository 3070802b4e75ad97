"""Recipes: what is read, and what is said of mistakes."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from modgraph.cli import main
from modgraph.diagnostics import ModgraphError, Report, Source
from modgraph.ir import NotReadBack
from modgraph.recipes.optimizers import AdamW, Constant, Cosine, Linear, Stairs
from modgraph.recipes.yaml_tree import read_tree
from modgraph.training.fit import refuse_unfit
from modgraph.training.recipe import read_recipe, read_with_spec
from tests.ordinary_run import some_examples
from tests.work import count_calls

GOOD = """
model: {iterations: 2}
data: {name: min_max_digits, train: 100}
train:
  epochs: 3
  optimizer: {name: adamw, lr: 1e-3}
  early_stop: {at: 0.9}
  labels: {label: {weights: [1, 2.5], ignore: -1}}
  states: {"*.temperature": {name: stairs, every: 1, factor: 0.5, floor: 0.001}, other: cosine}
"""


def recipe_of(folder: Path, text: str | bytes) -> Path:
    path = folder / "recipe.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_recipe_is_read_with_its_defaults(tmp_path: Path) -> None:
    recipe = read_recipe(recipe_of(tmp_path, GOOD), {"train.seed": 7, "model.modules": 4, "data.seed": 2})
    assert recipe.model == {"iterations": 2, "modules": 4}
    assert recipe.train.optimizer == AdamW(lr=0.001)
    assert (recipe.train.epochs, recipe.train.batch, recipe.train.seed) == (3, 64, 7)
    assert recipe.train.early_stop is not None
    assert recipe.train.early_stop.at == 0.9


def test_a_word_names_one_of_several_kinds(tmp_path: Path) -> None:
    path = recipe_of(tmp_path, "data: min_max_digits\ntrain: {optimizer: adamw, schedule: cosine}")
    train = read_recipe(path, {"train.schedule.warmup": 5, "train.optimizer.lr": 0.1}).train
    assert (train.optimizer, train.schedule) == (AdamW(lr=0.1), Cosine(warmup=5))
    assert read_recipe(recipe_of(tmp_path, "data: min_max_digits")).train.schedule == Constant()


def test_schedules_follow_their_formulas() -> None:
    cosine = Cosine(warmup=4, floor=0.2)
    assert [cosine.share(step, 24, 6) for step in range(4)] == [0.25, 0.5, 0.75, 1]
    assert cosine.share(4, 24, 6) == 1
    assert cosine.share(14, 24, 6) == pytest.approx(0.2 + 0.8 * 0.5)
    assert cosine.share(24, 24, 6) == pytest.approx(0.2)
    assert Linear(floor=0.5).share(6, 24, 6) == pytest.approx(0.875)
    assert [Stairs(every=2, factor=0.1).share(step, 24, 6) for step in (0, 11, 12, 23)] == pytest.approx(
        [1, 1, 0.1, 0.1]
    )
    assert [Stairs(every=1, factor=0.5, floor=0.2).share(step, 24, 6) for step in (0, 6, 12, 18)] == [1, 0.5, 0.25, 0.2]


def test_the_resolved_recipe_reads_back_as_the_same(tmp_path: Path) -> None:
    recipe = read_recipe(recipe_of(tmp_path, GOOD))
    assert read_recipe(recipe_of(tmp_path, recipe.to_yaml())) == recipe


RECIPES = [path for path in sorted(Path("specs").glob("*.yaml")) if "train:" in path.read_text()]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_the_recipes_next_to_the_specs_are_sound(path: Path) -> None:
    read_recipe(path)


MISTAKES = {
    "trian: {}": ("MG503", 'did you mean "train"'),
    "train: {epochs: none}": ("MG504", "must be a whole number"),
    "train: {epochs: 0}": ("MG504", "at least 1"),
    "start: {run: runs/m}\ntrain: {epochs: -1}": ("MG504", "at least 0"),
    "start: {run: runs/m}\ntrain: {epochs: 0, algorithm: continual}": (
        "MG504",
        "cannot combine epochs: 0 with continual",
    ),
    "train: {epoch: 3}": ("MG503", 'did you mean "epochs"'),
    "train: {optimizer: {name: adm}}": ("MG506", 'did you mean "adam"'),
    "train: {optimizer: {lr: 0.1}}": ("MG505", "name"),
    "train: {optimizer: 3}": ("MG504", "must be a mapping"),
    "train: {optimizer: {name: sgd, nesterov: true}}": ("MG504", "nesterov, which needs momentum"),
    "train: {early_stop: {}}": ("MG504", "needs at or patience"),
    "train: {schedule: cosin}": ("MG506", 'did you mean "cosine"'),
    "train: {schedule: stairs}": ("MG505", "every"),
    "train: {schedule: {name: cosine, floor: 2}}": ("MG504", "at most 1"),
    "train: {states: {t: 3}}": ("MG504", "must be a mapping"),
    "train: {states: {t: {every: 3}}}": ("MG505", "name"),
    "train: {labels: 3}": ("MG504", "must be a mapping"),
    "train: {labels: {label: {weight: balanced}}}": ("MG503", 'did you mean "weights"'),
    "train: {labels: {label: {weights: balance}}}": ("MG504", 'must be one of "balanced"'),
    "train: {labels: {label: {weights: [1, -2]}}}": ("MG504", "at least 0"),
    "train: {precision: float16}": ("MG504", "must be one of"),
    "start: runs/smn": ("MG504", "must be a mapping"),
    "start: {runs: runs/smn}": ("MG503", 'did you mean "run"'),
    "start: {map: specs/gmoe_timm.yaml}": ("MG504", "needs run or weights"),
    "start: {weights: a.pth}": ("MG504", "weights and map together"),
    "start: {run: a, weights: b, map: c}": ("MG504", "run or weights, not both"),
    "model: {a: {b: 1}}": ("MG504", "must be a plain value"),
    "model: {a: {}}": ("MG504", "must be a plain value"),
    "model: {a: [[{b: 1}]]}": ("MG502", "plain values"),
    "model: [1]": ("MG504", "must be a mapping"),
    "train: {clip: 1e999}": ("MG504", "must be a finite number"),
    "data: {name: max_digits}": ("MG506", 'did you mean "min_max_digits"'),
    "data: 3": ("MG504", "must be a mapping"),
    "data: min_max_digit": ("MG506", "min_max_digits"),
    "train: {epochs: 3, epochs: 4}": ("MG507", "twice"),
    "- 1": ("MG502", "not a mapping"),
    "train: [": ("MG502", ""),
    "\ttrain: 3": ("MG502", ""),
    "train: {epochs: [1, [2]]}": ("MG504", "must be a whole number"),
    "train: {seed: !!python/object:os.system x}": ("MG502", "no meaning"),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_has_its_code_its_place_and_a_way_out(tmp_path: Path, text: str) -> None:
    code, words = MISTAKES[text]
    base = "" if text.startswith("data") else "data: {name: min_max_digits}\n"
    with pytest.raises(ModgraphError) as caught:
        read_recipe(recipe_of(tmp_path, base + text if text[0] not in "-\t" else text))
    reported = {diagnostic.code: diagnostic for diagnostic in caught.value.diagnostics}
    assert code in reported
    assert words in reported[code].text() + reported[code].advice()
    assert reported[code].span is not None


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    text = "data: {nam: x}\ntrain: {epochs: -1, batch: 0.5, sede: 3}\nextra: 1"
    with pytest.raises(ModgraphError) as caught:
        read_recipe(recipe_of(tmp_path, text))
    assert len(caught.value.diagnostics) == 5


MANY = """
data:
  name: min_max_digits
  train: [1
  sede: 3
train:
  epochs: 0
  batch: 4: 4
  optimizer:
    name: adm
    lr: [1, {a: 2}]
  schedule: !!python/object:os.system x
  epochs: 3
  losses: {cross_entropy: 1, importance
  seed: &seed 7
  keep: *seed
  clip: "1
extra: 1
"""
PLACES = {
    (4, 10): "this has no end",
    (5, 3): 'unknown key "sede" in data',
    (7, 11): "train.epochs must be at least 1",
    (8, 11): "mapping values are not allowed here",
    (10, 11): 'unknown optimizer "adm"',
    (11, 9): "a list must contain plain values",
    (12, 13): "has no meaning here",
    (13, 3): '"epochs" occurs twice',
    (14, 11): "this has no end",
    (17, 9): "this has no end",
    (18, 1): 'unknown key "extra" in a recipe',
}


def test_mistakes_of_yaml_and_of_what_it_says_are_reported_together_each_once(tmp_path: Path) -> None:
    with pytest.raises(ModgraphError) as caught:
        read_recipe(recipe_of(tmp_path, MANY))
    found = {each.span.source.position(each.span.start): each.text() for each in caught.value.diagnostics if each.span}
    assert len(found) == len(caught.value.diagnostics), "every mistake has its place"
    assert sorted(found) == sorted(PLACES), "each mistake is reported, once, and nothing that only follows from it"
    for place, words in PLACES.items():
        assert words in found[place]


def test_whatever_lines_are_cut_a_text_that_yaml_refuses_is_refused(tmp_path: Path) -> None:
    """Reading entry by entry finds some mistake wherever there is one, and none in what is sound."""
    lines = MANY.splitlines(keepends=True)
    for first in range(len(lines)):
        for last in range(first + 1, len(lines) + 1):
            text, report = "".join(lines[first:last]), Report()
            read_tree(Source("recipe.yaml", text), report)
            try:
                yaml.compose(text)
            except yaml.YAMLError:
                assert report.errors, text
            else:
                assert all("does not end" not in each.text() for each in report.errors), text


def test_mistakes_of_the_command_line_have_their_places_there(tmp_path: Path) -> None:
    overrides = {"train.epochs": 0, "train.sede": 3, "train.optimizer.lr": "fast", "data.name": "min_max"}
    with pytest.raises(ModgraphError) as caught:
        read_recipe(recipe_of(tmp_path, GOOD), overrides)
    found = {str(each.span): each.text() for each in caught.value.diagnostics}
    assert sorted(found) == ["-s:1:1", "-s:1:11", "-s:1:14", "-s:1:20"]
    assert "train.epochs=0" in str(caught.value)


def test_a_misspelt_key_is_not_reported_as_missing_too(tmp_path: Path) -> None:
    with pytest.raises(ModgraphError) as caught:
        read_recipe(recipe_of(tmp_path, "data: {name: npz, trian: x.npz}"))
    (found,) = caught.value.diagnostics
    assert found.text() == 'unknown key "trian" in data', "it reports another mistake"
    assert found.advice() == 'did you mean "train"?'


def test_mistakes_of_a_recipe_and_of_its_spec_are_reported_together(tmp_path: Path) -> None:
    (tmp_path / "m.mod").write_text("model m(k=1) { input x: float[4] y = x -> liner(k) -> soft_max output y }")
    recipe = recipe_of(tmp_path, "data: {name: npz}\ntrain: {epoch: 3}\nmodel: {k: 2, j: 3}")
    with pytest.raises(ModgraphError) as caught:
        read_with_spec(recipe, tmp_path / "m.mod", {})
    assert sorted(each.code for each in caught.value.diagnostics) == ["MG202", "MG202", "MG210", "MG503", "MG505"]


def test_what_a_model_does_not_have_is_reported_at_once_with_its_place(tmp_path: Path) -> None:
    text = """
data: {name: npz, train: none.npz}
train:
  losses: {nope: 1, cross_entropy: 2, "imp*": 1}
  labels: {lable: {missing: true}}
  metrics: {label: [f1, mea, aus], other: f1}
  augment: {imag: {flip: true}, x: {flip: true}}
  states: {t: cosine}
"""
    recipe, program = read_with_spec(recipe_of(tmp_path, text), "specs/smn.mod", {})
    with pytest.raises(ModgraphError) as caught:
        refuse_unfit(program.ir, recipe)
    found = [(each.code, str(each.span).rpartition("yaml:")[2]) for each in caught.value.diagnostics]
    assert sorted(found) == [
        *[("MG515", "5:12"), ("MG518", "7:13"), ("MG518", "7:33"), ("MG550", "8:12"), ("MG553", "4:12")],
        *[("MG724", "6:13"), ("MG724", "6:13"), ("MG724", "6:36")],
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nope.mod"], "MG101", 'cannot read "nope.mod"'),
        (["nope.mod", "--recipe", "none.yaml"], "MG101", 'cannot read "nope.mod"'),
        (["specs"], "MG101", "it is a folder"),
        (["specs/gmoe.mod", "--recipe", "none.yaml"], "MG501", 'cannot find the recipe "none.yaml"'),
        (["--resume", "nope"], "MG602", '"nope" is not a run'),
    ],
)
def test_training_blames_the_file_that_is_missing(
    arguments: list[str], code: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *arguments]) == 1
    reported = capsys.readouterr().err
    assert f"error[{code}]" in reported and words in reported and "1 error\n" in reported, reported


@pytest.mark.parametrize("key", ["model.x.y", "model.iterations.x", "train.epochs.x", "data.x.y", "x.y"])
def test_an_override_deeper_than_its_key_is_reported(tmp_path: Path, key: str) -> None:
    with pytest.raises(ModgraphError, match=r"must be a plain value|unknown key"):
        read_recipe(recipe_of(tmp_path, GOOD), {key: 1})


def test_a_missing_recipe_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ModgraphError, match="cannot find the recipe"):
        read_recipe(tmp_path / "none.yaml")


def test_aliases_that_multiply_and_deep_nesting_cost_nothing(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 60)]
    for text in ("\n".join(lines), "[" * 50_000, "a: " * 5_000, "{a: " * 5_000):
        with pytest.raises(ModgraphError):
            read_recipe(recipe_of(tmp_path, text))


def doubled(width: int, depth: int) -> str:
    """Mappings of aliases of mappings of aliases, width ** depth keys in all."""
    values = ["1", *(f"*m{level}" for level in range(depth - 1))]
    keys = (", ".join(f"k{i}: {value}" for i in range(width)) for value in values)
    return "\n".join(f"m{level}: &m{level} {{{each}}}" for level, each in enumerate(keys))


NUMBER = "1" * 100_000
MOST_CALLS = 8_000_000
MONSTERS = {
    "aliases of mappings": (doubled(10, 9), "more than 100,000 keys and values", ""),
    "aliases of lists": ("a: &a [" + "x, " * 2000 + "]\nb: {" + ", ".join(f"k{i}: *a" for i in range(100)) + "}",
        "more than 100,000", "&a [x"),
    "a mapping in itself": ("data: &a {b: {c: *a}}", "it contains itself", "&a {b"),
    "a list in itself": ("data: &a [*a]", "a list must contain plain values or lists", "&a [*a"),
    "a merge of a number": ("base: &b 1\ntrain: {<<: *b}", "<< needs the alias", "<<"),
    "merges of merges": ("m0: &m0 {" + ", ".join(f"k{i}: 1" for i in range(50)) + "}\n" + "\n".join(
        f"m{i}: &m{i} {{<<: *m{i - 1}, a: *m{i - 1}, b: *m{i - 1}}}" for i in range(1, 10)
    ), "more than 100,000 keys and values", ""),
    "a merge with itself": ("train: &t {<<: *t}", "it contains itself", "&t {"),
    "letters": ("data: digits\n" + "# nothing\n" * 30_000, "more than 262,144 letters", ""),
    "many mistakes": (
        "train: {labels: {" + ", ".join(f"k{i}: {{weight: 3}}" for i in range(2_000)) + "}}", "unknown key", ""
    ),
    "nesting": ("a: " + "{a: " * 12 + "1" + "}" * 12, "nested too deep", "{"),
}  # fmt: skip


@pytest.mark.some(3)
@pytest.mark.parametrize("kind", MONSTERS)
def test_aliases_are_bounded_and_reported_at_their_place(tmp_path: Path, kind: str) -> None:
    text, words, sign = MONSTERS[kind]
    with count_calls() as work, pytest.raises(ModgraphError) as caught:
        read_recipe(recipe_of(tmp_path, text))
    assert work.calls < MOST_CALLS
    code = "MG503" if kind == "many mistakes" else "MG502"
    reported = next(each for each in caught.value.diagnostics if each.code == code)
    assert words in reported.text()
    assert reported.span is not None
    assert text[reported.span.start :].startswith(sign)


def test_a_long_number_with_many_aliases_costs_nothing(tmp_path: Path) -> None:
    text = f"data: {{name: npz, train: x, seed: &n {NUMBER}.5}}\nmodel: {{list: [{'*n, ' * 8_000}]}}"
    with count_calls() as work, pytest.raises(ModgraphError, match="must be a whole number"):
        read_recipe(recipe_of(tmp_path, text))
    assert work.calls < MOST_CALLS


def test_aliases_stand_for_values_and_mappings(tmp_path: Path) -> None:
    text = """
model: {first: &n 3, second: *n}
data: min_max_digits
train:
  seed: *n
  labels: {a: &l {ignore: 1}, b: *l}
"""
    recipe = read_recipe(recipe_of(tmp_path, text))
    assert (recipe.model, recipe.train.seed) == ({"first": 3, "second": 3}, 3)
    assert recipe.train.labels is not None
    assert recipe.train.labels["a"] == recipe.train.labels["b"]


def test_a_merge_gives_the_keys_that_a_mapping_lacks(tmp_path: Path) -> None:
    text = """
data: min_max_digits
train:
  labels: {a: &l {ignore: 1, missing: true}, b: {<<: *l, ignore: 2}, c: {ignore: 3, <<: *l}}
"""
    labels = read_recipe(recipe_of(tmp_path, text)).train.labels
    assert labels is not None
    assert [(each.ignore, each.missing) for each in labels.values()] == [(1, True), (2, True), (3, True)]


@some_examples(80)
@given(content=st.one_of(st.binary(max_size=60), st.text(max_size=60).map(str.encode)))
def test_any_file_gives_a_recipe_or_messages(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = recipe_of(tmp_path_factory.mktemp("recipe"), content)
    with pytest.raises(ModgraphError):
        read_recipe(path)


CONSTANTS = st.recursive(
    st.booleans()
    | st.integers(-(10**38), 10**38)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(["1e5", "-1.5E+3", "0x10", "on", "null", "<<", "=", "2020-01-01", "1:30", "~", "9" * 40, "\x85"]),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
)


@some_examples(60)
@given(CONSTANTS | st.builds(range, st.integers(-9, 9), st.integers(-9, 9)))
def test_every_constant_that_a_parameter_can_be_reads_back(value: object) -> None:
    wanted = tuple(value) if isinstance(value, range) else value
    with tempfile.TemporaryDirectory() as folder:
        text = replace(read_recipe(recipe_of(Path(folder), GOOD)), model={"p": value}).to_yaml()
        assert repr(read_recipe(recipe_of(Path(folder), text)).model["p"]) == repr(wanted)


def test_what_would_not_read_back_is_a_fault_and_no_recipe(tmp_path: Path) -> None:
    recipe = replace(read_recipe(recipe_of(tmp_path, GOOD)), model={"p": float("inf")})
    with pytest.raises(NotReadBack):
        recipe.to_yaml()
