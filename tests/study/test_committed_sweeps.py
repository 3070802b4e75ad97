"""The sweeps of docs/sweeps, which make the tables of docs/results.md: each can be planned, and trains what it says."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import modgraph
from modgraph.frozen import replace_fields
from modgraph.study.execute import run_sweep
from modgraph.study.file import read_sweep_file
from modgraph.study.plan import Plan, make_plan
from modgraph.study.states import plan_sweeps
from modgraph.study.sweep import SEED, Seeds
from modgraph.tables.collect import collect
from modgraph.tables.group import make_table
from modgraph.tables.render import render_markdown
from tests.small_runs import begin, final_weights

FOLDER = Path("docs/sweeps")
NAMES = sorted(
    path.stem for path in FOLDER.glob("*.yaml") if re.search("^(spec|sweeps):", path.read_text(), re.MULTILINE)
)
POINTS = {"smn": 235, "modular_networks": 54, "rotated_digits": 36, "sema": 15, "sema_fashion": 15, "weather": 63}
POINTS |= {"tagging": 18, "language_sweep": 30, "graphs": 72}


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Plan]:
    """Plan the sweeps of a file, once. Data that a machine may lack lie elsewhere, where something exists: planning
    does not read them."""
    folder = tmp_path_factory.mktemp("sweeps")
    (folder / "treebank.conllu").touch()
    elsewhere = {
        "tagging": {"data.train": str(folder / "treebank.conllu")},
        "sema_fashion": {"data.of.folder": str(folder)},
    }

    @cache
    def plan(name: str) -> Plan:
        found = read_sweep_file(FOLDER / f"{name}.yaml")
        sweeps = [replace(each, settings={**each.settings, **elsewhere.get(name, {})}) for each in found.sweeps]
        return make_plan(sweeps, folder / "out", found.tables)

    return plan


@pytest.mark.some(1)
@pytest.mark.parametrize("name", NAMES)
def test_a_committed_sweep_can_be_planned(name: str, plan_file: Callable[[str], Plan]) -> None:
    plan = plan_file(name)
    assert len(plan.trained) == POINTS.get(name, len(plan.trained)), "it trains another number of runs"
    assert plan.tables, "it describes no table"


def test_the_commands_of_the_results_are_those_of_committed_sweeps() -> None:
    text = Path("docs/results.md").read_text()
    found = {Path(each).stem for each in re.findall(r"^    modgraph sweep (docs/sweeps/\S+) --out", text, re.MULTILINE)}
    assert POINTS.keys() <= found, "a table has lost its command"
    assert found <= {*NAMES}, "a command names a sweep that is not there"


@pytest.mark.slow
def test_networks_of_a_sweep_have_equal_parameters(plan_file: Callable[[str], Plan]) -> None:
    counts = {each.label: each.cost["parameters"] for each in plan_file("tagging").points}
    separate = sum(counts.pop(name) for name in ("part of speech", "gender", "number"))
    assert counts == {"MT-RMN": 332_302, "rrn-RMN": 332_374, "multi-task LSTM": 332_932}
    assert separate == 332_121, "an LSTM for each task, together"


@pytest.mark.parametrize(
    ("own", "spec", "router", "parameters"),
    [
        ("smn_routers", "smn", "agreement(iterations, bias=bias, update=update, residual=residual)", {}),
        ("modular_networks_lm_routers", "modular_networks_lm", "categorical(slots)", {"modules": 15}),
    ],
)
def test_a_spec_with_other_routers_is_the_spec_otherwise(
    own: str, spec: str, router: str, parameters: dict[str, Any]
) -> None:
    routing, other = {"smn": ("kernel", "truncated_kernel()")}.get(spec, ("fixed", "fixed(slots)"))
    text = Path(f"specs/{spec}.mod").read_text()
    assert router in text
    expected = modgraph.loads(text.replace(router, other), **parameters).ir
    assert modgraph.load(FOLDER / f"{own}.mod", routing=routing, **parameters).ir.hash() == expected.hash()


@pytest.mark.slow
def test_a_committed_sweep_trains_and_prints_the_tables_of_the_results(tmp_path: Path) -> None:
    file, first, out = read_sweep_file(FOLDER / "smn.yaml"), "agreement T=0", tmp_path / "out"
    few = {"data.train": 64, "train.epochs": 1}
    small = {"data.in_distribution": 20, "data.per_test_pair": 2, "train.epochs": 1}
    sweeps = [
        replace(
            each,
            settings={**each.settings, **(few if each.start is None else small)},
            points={label: values for label, values in each.points.items() if label == first},
            about={label: facts for label, facts in each.about.items() if label == first},
            grid={key: values[:1] for key, values in each.grid.items() if isinstance(values, tuple)},
            seeds=Seeds(count=2, keys=(SEED,)),
        )
        for each in file.sweeps
        if each.name in ("networks", "parity")
    ]
    outcome = run_sweep(plan_sweeps(sweeps, out, {name: each.plain() for name, each in file.tables.items()}), "")
    assert (len(outcome.metrics), outcome.failures) == (4, {}), "two seeds of a network, and of what starts from it"
    runs = collect([out])
    for name, heads in (("generalisation", ["point"]), ("parity", ["data.labelled", "point"])):
        table = make_table(runs, replace_fields(file.tables[name], of=("networks", "parity")[len(heads) - 1]))
        header = [*heads, "runs", "in distribution % ↑", "out of distribution % ↑"]
        assert render_markdown([table]).splitlines()[2].startswith(f"| {' | '.join(header)} |"), name
    [parity] = [run for run in runs if run.sweep == "parity" and run.find("train.seed") == 1]
    [network] = [run for run in runs if run.sweep == "networks" and run.find("train.seed") == 1]
    assert parity.find("start.run") == str(network.path), "it starts from the network of its seed"
    settings = {"iterations": 0, "added": 0, "data.labelled": 15, "data.labelled_seed": 0, "train.seed": 1, **small}
    begin(Path("specs/smn_parity.mod"), tmp_path / "single", **{**settings, "start.run": str(network.path)})
    assert final_weights(tmp_path / "single") == final_weights(parity.path), "as a single training, bit for bit"
