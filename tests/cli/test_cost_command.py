"""The command `cost`: what it says of specs, of runs, of lengths and of trainings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import modgraph
from modgraph.cli import main
from modgraph.inspect.cost import TrainingStep
from modgraph.inspect.division import divide_cost
from tests.small_runs import begin

GMOE = "specs/gmoe.mod"
SMALL = "-s", "depth=2", "-s", "sparse=[1]"
LM = "specs/modular_networks_lm.mod"


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["cost", *arguments]) == 0
    return capsys.readouterr().out


def counted(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said(capsys, *arguments, "--json"))
    return found


def test_a_table_has_a_heading_and_folds_equal_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, GMOE, "-s", "k=2")
    assert text.startswith(f"gmoe, from {GMOE} with k=2\n33,814,363 parameters, all trained\n")
    assert "0-7, 9, 11 × 10" in text
    assert "blocks.3" not in text
    unfolded = said(capsys, GMOE, "--all")
    assert "×" not in unfolded
    assert len(unfolded.splitlines()) > 2 * len(text.splitlines())


def test_lengths_are_reported_whether_they_were_given_or_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert "time = 1 (for another length: --length time=N)" in said(capsys, LM)
    assert "time = 35\n" in said(capsys, LM, "--length", "time=35")
    assert counted(capsys, LM)["lengths"] == {"time": 1}
    assert counted(capsys, LM, "--length", "time=35")["lengths"] == {"time": 35}


def test_a_training_is_that_of_the_recipe_unless_it_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert "memory" not in counted(capsys, GMOE), "no torch is imported for what nobody asks for"
    text = said(capsys, GMOE, *SMALL, "--memory")
    assert "a batch of 32 (of each domain: give all of them by --batch), adam, float32, as specs/gmoe.yaml says" in text
    found = counted(capsys, GMOE, *SMALL, "--memory")
    memory = found["memory"]
    assert memory["weights"] == memory["gradients"] == 4 * found["parameters"]
    assert memory["optimizer"] == 2 * memory["weights"]
    assert counted(capsys, GMOE, *SMALL, "--optimizer", "sgd")["memory"]["optimizer"] == 0
    assert counted(capsys, GMOE, *SMALL, "--batch", "7")["memory"]["batch"] == 7


def test_a_run_is_counted_as_it_was_trained(spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin(spec, tmp_path / "run", train__epochs=1, hidden=8, train__optimizer__name="sgd", train__precision="float64")
    text = said(capsys, str(tmp_path / "run"), "--memory")
    assert text.startswith(f"digits, from the run {tmp_path / 'run'} with hidden=8\n")
    assert "a batch of 50, sgd, float64" in text
    assert counted(capsys, str(tmp_path / "run"), "--memory")["memory"]["weights"] == 8 * (65 * 8 + 9 * 10)


@pytest.mark.slow
def test_the_document_prints_what_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    documented = Path("docs/cost.md").read_text().partition("$ modgraph cost specs/gmoe.mod --fits 24GB\n")[2]
    text = said(capsys, GMOE, "--fits", "24GB")
    assert [line.removeprefix("    ") for line in documented.split("\n\n- ")[0].splitlines()] == text.splitlines()


def test_the_largest_batch_that_fits_is_reported(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = counted(capsys, str(spec), "--fits", "2.5 GiB")["memory"]["fits"]
    assert found["bytes"] == 5 * 2**29
    fits, next_one = (
        counted(capsys, str(spec), "--batch", str(found["batch"] + more))["memory"]["peak"] for more in (0, 1)
    )
    assert fits <= found["bytes"] < next_one
    assert "do not hold a step of a single example" in said(capsys, str(spec), "--fits", "10k")


@pytest.mark.slow
def test_em_is_recognised_by_what_it_tries(capsys: pytest.CaptureFixture[str]) -> None:
    assert "em that tries 1,100 at once" in said(capsys, LM, "--memory")
    memory = counted(capsys, LM, "--memory", "--length", "time=35")["memory"]
    assert memory["peak"] > 20 * memory["activations"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--batch", "0"], "from 1"),
        (["--batch", "many"], "from 1"),
        (["--optimizer", "adma"], 'did you mean "adam"'),
        (["--fits", "large"], "24GB"),
        (["--fits=-3GB"], "24GB"),
        (["--fits", "1e9999"], "24GB"),
    ],
)
def test_what_no_training_can_be_is_reported(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cost", GMOE, *arguments]) == 1
    assert words in capsys.readouterr().err


def test_several_processes_hold_parts_of_pools_and_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    spec = "specs/gmoe_digits.mod"
    found = counted(capsys, spec, "--processes", "4", "--experts", "2")["division"]
    assert [*found["pools"]] == ["blocks.1.expert", "blocks.3.expert"]
    pool, rest, whole = found["pools"]["blocks.1.expert"], found["rest"], 4 * 137_100
    assert 2 * 2 * pool["weights"] + rest["weights"] == whole, "two processes hold all modules of two pools"
    assert pool["optimizer"] == 2 * pool["gradients"] == 2 * pool["weights"] == 2 * pool["synchronised"]
    assert rest["step"] == rest["synchronised"] == 2 * rest["gradients"] * 3 // 4
    assert pool["step"] == pool["exchanged"] * 16 // 4 + pool["synchronised"]
    plain = counted(capsys, spec, "--processes", "4")["division"]
    assert (plain["pools"], plain["rest"]["weights"]) == ({}, whole)
    graph, step = modgraph.load(spec).ir, TrainingStep(batch=16)
    rest = divide_cost(graph, {}, 4, 1, step, "fsdp")[""]
    assert (rest.weights, rest.optimizer, rest.synchronised) == (whole // 4, whole // 2, 3 * whole * 3 // 4)
    assert "at most, each of 4 processes, 2 of which divide each pool" in said(
        capsys, spec, "--processes", "4", "--experts", "2"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--processes", "none"), '--processes must be a whole number from 1, not "none"'),
        (("--processes", "8", "--experts", "0"), '--experts must be a whole number from 1, not "0"'),
        (("--processes", "8", "--experts", "3"), "3 experts do not divide 8 processes"),
        (("--experts", "2"), "--experts needs --processes"),
        (("--processes", "8", "--experts", "8"), 'the largest, "blocks.8.expert", has 6'),
    ],
)
def test_processes_that_cannot_be_counted(
    options: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cost", GMOE, *options]) == 1
    assert words in capsys.readouterr().err
