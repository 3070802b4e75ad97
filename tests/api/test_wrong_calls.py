"""Wrong calls: each is a `ModgraphError` or a `TypeError` of one clear sentence, with a way out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import modgraph
from tests.api.digits import RECIPE, SPEC, own_data, tensors


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a spec, a run of it, and a file that modgraph did not write."""
    path = tmp_path_factory.mktemp("wrong")
    (path / "digits.mod").write_text(SPEC)
    (path / "mine.html").write_text("<p>mine</p>")
    modgraph.train(modgraph.loads(SPEC), RECIPE, data=own_data(), out=path / "run", overrides={"train.epochs": 1})
    return path


def train(**given: Any) -> Callable[[Path], Any]:
    """A training of the digits with these arguments."""

    def call(folder: Path) -> Any:
        recipe = given.pop("recipe", RECIPE) if "recipe" in given else RECIPE
        return modgraph.train(folder / "digits.mod", recipe, **{"data": own_data(), "out": folder / "new", **given})

    return call


CALLS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a spec that is not there": (
        lambda folder: modgraph.load(folder / "digit.mod"),
        'cannot read ".*digit.mod": no such file.*did you mean ".*digits.mod"',
    ),
    "an unknown parameter": (
        lambda folder: modgraph.load(folder / "digits.mod", hiden=8),
        'unknown parameter "hiden" of model digits.*did you mean "hidden"',
    ),
    "a parameter of another kind": (
        lambda folder: modgraph.load(folder / "digits.mod", hidden="wide"),
        "hidden",
    ),
    "a run that is not there": (
        lambda folder: modgraph.load_run(folder / "runs"),
        "is not a run|no such|cannot read",
    ),
    "a recipe that is not there": (train(recipe="digits.yaml"), "digits.yaml"),
    "a misspelt key of a recipe": (
        train(recipe={"train": {"epoch": 1}}),
        'unknown key "epoch" in train.*did you mean "epochs"',
    ),
    "a misspelt section": (train(recipe={"trian": {}}), 'unknown key "trian".*did you mean "train"'),
    "a misspelt override": (train(overrides={"train.epoch": 1}), 'unknown key "epoch".*did you mean "epochs"'),
    "a setting of training as a parameter": (
        train(overrides={"epochs": 1}),
        'unknown parameter "epochs" of model digits.*did you mean "train.epochs"',
    ),
    "a setting of training as a parameter of a program": (
        lambda folder: modgraph.train(
            modgraph.loads(SPEC), RECIPE, data=own_data(), out=folder / "new", overrides={"epochs": 1}
        ),
        'unknown key "epochs" in model\n --> overrides:1:1.*did you mean "train.epochs"',
    ),
    "an override of a program": (
        lambda folder: modgraph.train(
            modgraph.loads(SPEC), RECIPE, data=own_data(), out=folder / "new", overrides={"hidden": 8}
        ),
        r"overrides set hidden=8, but the program has hidden=16\n --> overrides:1:1.*modgraph.load\(PATH, hidden=8\)",
    ),
    "an unknown optimizer": (train(overrides={"train.optimizer.name": "adm"}), '"adm".*did you mean "adam"'),
    "a recipe of another model": (
        lambda folder: modgraph.train(
            modgraph.loads(SPEC), {"model": {"hidden": 8}}, data=own_data(), out=folder / "new"
        ),
        r"the recipe sets hidden=8, but the program has hidden=16.*modgraph.load\(PATH, hidden=8\)",
    ),
    "a text without data": (
        lambda folder: modgraph.train(modgraph.loads(SPEC)),
        'no data to train "digits".*data=dict',
    ),
    "an unknown optimizer of a step": (
        lambda folder: modgraph.loads(SPEC).memory(optimizer="adm"),
        'unknown optimizer "adm".*did you mean "adam"',
    ),
    "a label in brackets": (
        train(data={"train": [(tensors()[0][0], [1])]}),
        r"has the shape \[1\]; class\[10\] needs \[\].*label.item\(\)",
    ),
    "a folder that holds a run": (train(out="run"), r"run.resume\(\) in Python"),
    "a data set of another name": (
        train(data={"train": [{"img": tensors()[0][0], "label": 1}]}),
        '"img".*did you mean "image"',
    ),
    "a data set of another shape": (
        train(data={"train": [(tensors()[0][0, 0], 1)]}),
        r"has the shape \[8, 8\]; float\[1, 8, 8\] needs \[1, 8, 8\].*image\[None\]",
    ),
    "labels that are no numbers": (train(data={"train": [(tensors()[0][0], 0.5)]}), "not whole numbers"),
    "a split that is not there": (
        lambda folder: modgraph.load_run(folder / "run").trace("tset", data={"test": own_data()["test"]}),
        "nothing|route|tset",
    ),
    "a file of someone else": (
        lambda folder: modgraph.visualize(folder / "digits.mod", folder / "mine.html"),
        "mine.html",
    ),
    "an unknown kind of picture": (
        lambda folder: modgraph.visualize(folder / "digits.mod", folder / "x.png"),
        "x.png.*html, .svg, .dot or .mmd",
    ),
    "an unknown axis": (
        lambda folder: modgraph.load(folder / "digits.mod").cost(time=3),
        'unknown axis of any length "time"',
    ),
    "a bundle of another suffix": (
        lambda folder: modgraph.export(modgraph.loads(SPEC).build(), folder / "m.pt"),
        "m.pt",
    ),
    "a model that is no run": (lambda folder: modgraph.predict(folder / "nowhere", {}), "nowhere"),
    "a path for a text": (
        lambda folder: modgraph.loads("specs/smn.mod"),
        r"expected the text of a spec, found a path.*modgraph.load\(PATH\)",
    ),
    "a spec to migrate": (
        lambda folder: modgraph.migrate(folder / "digits.mod", folder / "digits.mod", out=folder / "new"),
        "expected a run, found a spec",
    ),
}


@pytest.mark.parametrize("what", CALLS)
def test_a_mistake_is_explained_with_a_way_out(what: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    call, expected = CALLS[what]
    with pytest.raises(modgraph.ModgraphError, match=f"(?s){expected}") as caught:
        call(folder)
    assert all(each.advice for each in caught.value.diagnostics), f"a way out: {caught.value}"
    assert not (folder / "new").exists(), "nothing is begun"


KINDS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no spec": (lambda folder: modgraph.load(3), "load takes a path"),
    "a text for a path": (lambda folder: modgraph.loads(3), "loads takes the text of a spec"),
    "a spec for a path": (lambda folder: modgraph.load(SPEC), r"modgraph.loads\(TEXT\)"),
    "an image to predict": (
        lambda folder: modgraph.load_run("run").predict(tensors()[0][:2]),
        'paths, or a dictionary of arrays by input, {"image": …}, not Tensor',
    ),
    "a number to predict": (lambda folder: modgraph.predict("run", 3), "paths, or a dictionary.*not int"),
    "an image to compute": (
        lambda folder: modgraph.loads(SPEC).build().compute(tensors()[0][:2]),
        'digits takes a batch by name, {"image": …, "label": …}, not Tensor',
    ),
    "a model to train": (lambda folder: modgraph.train(modgraph.loads(SPEC).build()), r"modgraph.load"),
    "a list as a recipe": (lambda folder: modgraph.train("digits.mod", [1]), "recipe must be a path or a dictionary"),
    "a list of overrides": (train(overrides=["train.epochs=2"]), "overrides must be a dictionary by dotted key"),
    "words for a batch": (lambda folder: modgraph.loads(SPEC).memory(batch="64"), "a number of examples"),
    "a run with examples": (
        lambda folder: modgraph.export(modgraph.load_run("run"), "m.onnx", examples={"image": tensors()[0].numpy()}),
        "leave examples, tests, calibration and description out",
    ),
    "a program to export": (lambda folder: modgraph.export(modgraph.loads(SPEC), "m.onnx"), r"program.build\(\)"),
    "a tensor in a recipe": (
        train(recipe={"train": {"seed": torch.zeros(1)}}),
        "a recipe must contain plain values, not Tensor",
    ),
    "a model to compare": (lambda folder: modgraph.diff("digits.mod", 3), r"a Program or a Run"),
    "a path to export": (lambda folder: modgraph.export("run", "m.onnx"), r"modgraph.load_run\(PATH\)"),
    "no path of a run": (lambda folder: modgraph.load_run(3), "load_run takes the path"),
    "a block of a program": (lambda folder: modgraph.block(modgraph.loads(SPEC), "x"), "block takes a path and a name"),
    "a module for a parameter": (
        lambda folder: modgraph.block("digits.mod", "x", act=torch.nn.ReLU()),
        "act must be a constant",
    ),
    "a name that is not there": (lambda folder: modgraph.trian, 'no attribute .trian.*did you mean "train"'),
}


@pytest.mark.parametrize("what", KINDS)
def test_a_value_of_another_kind_is_a_type_error(what: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    call, expected = KINDS[what]
    with pytest.raises((TypeError, AttributeError), match=expected) as caught:
        call(folder)
    assert "\n" not in str(caught.value), "one sentence"
