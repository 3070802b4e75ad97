"""The core alone trains, exports and evaluates; what needs more says which extra to install."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import numpy as np
import pytest

from modgraph.data import DataSet
from modgraph.extras import EXTRAS
from tests.examples import AGREEING as SPEC

CHECKOUT = Path(__file__).parents[1]
SPECS = CHECKOUT / "specs"
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
IMAGES = """
model m() {
  input image: float[3, 8, 8] target label: class[2]
  logits = image -> flatten -> linear(2)
  output logits
  loss cross_entropy(logits, label)
}
"""
RECIPE = "data: {name: npz, train: data.npz, test: data.npz}\ntrain: {epochs: 1, batch: 4}\n"

# Runs command lines in an environment that has only the packages that it is given.
CHILD = """
import contextlib, io, json, os, sys
from importlib.machinery import PathFinder

hidden, find = set(json.loads(sys.argv[1])), PathFinder.find_spec
PathFinder.find_spec = lambda name, *given: None if name.partition(".")[0] in hidden else find(name, *given)
from modgraph.cli import main

for command in json.loads(sys.argv[2]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(command)
    print(json.dumps([code, err.getvalue()]), flush=True)
os._exit(0)
"""

CORE = [
    ["train", "m.mod", "--out", "run"],
    ["train", "--resume", "run"],
    ["export", "run", "-o", "m.onnx", "--routing"],
    ["eval", "run", "--bundle", "m.onnx"],
    ["trace", "run"],
    ["visualize", "m.mod", "-o", "m.mmd"],
]
CHECKED = ["check", str(SPECS / "smn.mod")]
BEYOND = {  # a command line, and the extra that it needs
    "digits": [
        ["train", str(SPECS / "smn.mod"), "--out", "none"],
        ["train", str(SPECS / "gmoe_digits.mod"), "--out", "none"],
    ],
    "texts": [["train", str(SPECS / "modular_networks_lm.mod"), "--out", "none"]],
    "tokenizers": [
        ["train", str(SPECS / "zoo/mixtral.mod"), "-s", "data.train=m.mod", "-s", "data.units=bpe", "--out", "none"]
    ],
    "weather": [
        ["train", str(SPECS / "mt_rmn.mod"), "--recipe", str(SPECS / "mt_rmn_weather.yaml"), "--out", "none"],
    ],
    "images": [["train", "images.mod", "--out", "none"]],
    "metrics": [["train", "m.mod", "-s", "train.metrics.label=f1", "--out", "none"]],
    "pictures": [["trace", "run", "-o", "m.png"], ["trace", "run", "--html", "trace.html"]],
    "tables": [["runs", "run", "--against", "4"]],
    "search": [["sweep", "m.mod", "--optuna", "2", "--metric", "test.accuracy", "--out", "none"]],
    "visualize": [
        ["visualize", "m.mod", "-o", "m.svg"],
        ["visualize", "m.mod", "-o", "m.html"],
        ["diff", "m.mod", "images.mod", "--html", "diff.html"],
    ],
    "lsp": [["lsp"]],
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """Exit code and stderr of each command line, where only the packages that the core requires are installed."""
    folder = tmp_path_factory.mktemp("core")
    (folder / "m.mod").write_text(SPEC)
    (folder / "m.yaml").write_text(RECIPE)
    (folder / "images.mod").write_text(IMAGES)
    (folder / "images.yaml").write_text("data: {name: class_folders, train: root}\ntrain: {epochs: 1}\n")
    for name in ("a", "b"):
        (folder / "root" / name).mkdir(parents=True)
        (folder / "root" / name / "1.png").write_bytes(b"")
    rng = np.random.default_rng(0)
    np.savez(folder / "data.npz", x=rng.normal(size=(8, 3, 4)).astype(np.float32), label=np.arange(8) % 2)
    commands = [*CORE, CHECKED, *(each for several in BEYOND.values() for each in several)]
    command = [sys.executable, "-c", CHILD, json.dumps(beyond_the_core()), json.dumps(commands)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = map(json.loads, done.stdout.splitlines())
    return {" ".join(each): (code, err) for each, (code, err) in zip(commands, found, strict=True)}


def beyond_the_core() -> list[str]:
    """The modules of installed packages that no requirement of the core leads to."""
    pending, core = [name_of(each) for each in PROJECT["dependencies"]], set[str]()
    while pending:
        name = pending.pop()
        if name in core:
            continue
        core.add(name)
        try:
            pending += [name_of(each) for each in requires(name) or () if "extra ==" not in each]
        except PackageNotFoundError:
            continue  # for another platform, or version of Python
    return [
        module
        for module, packages in packages_distributions().items()
        if not core & {name_of(each) for each in packages} and not module.startswith(("modgraph", "_"))
    ]


def name_of(requirement: str) -> str:
    """The canonical name of the package that a requirement asks for."""
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found[0]).lower()


@pytest.mark.parametrize("command", CORE, ids=" ".join)
def test_the_core_is_enough(command: list[str], answers: dict[str, tuple[int, str]]) -> None:
    code, err = answers[" ".join(command)]
    assert code == 0, err


def test_a_run_without_tensorboard_and_pictures_says_what_would_add_them(answers: dict[str, tuple[int, str]]) -> None:
    assert (
        "to TensorBoard too after: pip install 'modgraph-compiler[tensorboard]'" in answers["train m.mod --out run"][1]
    )
    assert "pip install 'modgraph-compiler[pictures]'" in answers["trace run"][1]


def test_check_warns_that_a_recipe_will_need_an_extra(answers: dict[str, tuple[int, str]]) -> None:
    code, err = answers[" ".join(CHECKED)]
    assert code == 0, "it can be trained elsewhere"
    assert re.search(r"warning\[MG123\].*\n --> .*smn.yaml:4:3", err), err
    assert "help: pip install 'modgraph-compiler[digits]'" in err


@pytest.mark.parametrize("extra", BEYOND)
def test_what_needs_an_extra_names_it(extra: str, answers: dict[str, tuple[int, str]]) -> None:
    for command in BEYOND[extra]:
        code, err = answers[" ".join(command)]
        assert code == 1, f"{command}: {err}"
        assert "error[MG119]" in err and "Traceback" not in err, f"{command}: {err}"
        assert f"help: pip install 'modgraph-compiler[{extra}]'" in err, f"{command}: {err}"


def test_the_extras_are_those_of_the_package() -> None:
    listed = PROJECT["optional-dependencies"]
    for extra, packages in EXTRAS.items():
        assert {name_of(each) for each in listed[extra]} == {name_of(each) for each in packages}, extra
        assert extra in listed["all"][0].partition("[")[2].rstrip("]").split(","), f"all lacks {extra}"
    assert {*EXTRAS} == {*BEYOND, "tensorboard"}, "each extra is tried"


def test_data_sets_say_which_extras_they_need() -> None:
    kinds = {name: DataSet.registry[name] for name in ("digits", "rotated_digits", "min_max_digits", "text")}
    assert {name: kind().extras() for name, kind in kinds.items()} == {
        "digits": ("digits",),
        "rotated_digits": ("digits",),
        "min_max_digits": ("digits",),
        "text": ("texts",),
    }
    assert kinds["min_max_digits"](source="idx").extras() == ()
    assert kinds["text"](train="words.txt").extras() == ()
    assert kinds["text"](units="bpe").extras() == ("texts", "tokenizers")
    assert kinds["text"](train="words.txt", tokenizer="tokenizer.json").extras() == ("tokenizers",)
