"""The command `cost`: what it says of specs, of runs, of lengths and of trainings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from modgraph.cli import main
from tests.small_runs import begin

GMOE = "specs/gmoe.mod"
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
    text = said(capsys, GMOE, "--memory")
    assert "a batch of 32 (of each domain: give all of them by --batch), adam, float32, as specs/gmoe.yaml says" in text
    memory = counted(capsys, GMOE, "--memory")["memory"]
    assert memory["weights"] == memory["gradients"] == 4 * 33_814_363
    assert memory["optimizer"] == 2 * memory["weights"]
    assert counted(capsys, GMOE, "--optimizer", "sgd")["memory"]["optimizer"] == 0
    assert counted(capsys, GMOE, "--batch", "7")["memory"]["batch"] == 7


def test_a_run_is_counted_as_it_was_trained(spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin(spec, tmp_path / "run", train__epochs=1, hidden=8, train__optimizer__name="sgd", train__precision="float64")
    text = said(capsys, str(tmp_path / "run"), "--memory")
    assert text.startswith(f"digits, from the run {tmp_path / 'run'} with hidden=8\n")
    assert "a batch of 50, sgd, float64" in text
    assert counted(capsys, str(tmp_path / "run"), "--memory")["memory"]["weights"] == 8 * (65 * 8 + 9 * 10)


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
