"""Shapes that no machine holds: counted where numbers are enough, else refused with what is needed and what is free."""

from __future__ import annotations

from pathlib import Path

import pytest

from modgraph.cli import main

SPECS = {
    "wide": "input x: float[4] y = x -> linear(10 ** 15) output y",
    "a wide layer after another": "input x: float[4] y = x -> linear(10 ** 7) -> linear(10 ** 7) output y",
    "a large input": "input x: float[10 ** 9, 10 ** 6] y = x -> relu output y",
    "a large input into a layer": "input x: float[10 ** 9, 1000] y = x -> flatten -> linear(3) output y",
    "a large pool": "input x: float[8] pool p[600] = linear(10 ** 9) y = x -> p -> mean(axis=p) output y",
    "many words": "input x: token[time, 2 ** 31 - 1] y = x -> embedding(10 ** 12) -> mean output y",
    "copies": "input x: float[4] y = x -> new_axis(10 ** 7) -> new_axis(10 ** 7) -> mean -> mean output y",
    "a large kernel": "input x: float[3, 8, 8] y = x -> conv(10 ** 12) output y",
}
BEYOND = {
    "an axis": "input x: float[10 ** 12] y = x -> relu output y",
    "an input": "input x: float[10 ** 9, 10 ** 9] y = x -> relu output y",
    "copies": "input x: float[4] y = x -> new_axis(10 ** 9) -> new_axis(10 ** 9) output y",
    "a state": "input x: float[4] state s: float[10 ** 9, 10 ** 9] = zeros y = x -> linear(3) output y",
    "a layer": "input x: float[4] y = x -> linear(10 ** 16) output y",
}
COUNTED = ("check", "cost", "show", "visualize")


def called(folder: Path, text: str, command: str) -> int:
    (folder / "m.mod").write_text(f"model m() {{ {text} }}")
    output = ["-o", str(folder / "m.svg")] if command == "visualize" else []
    return main([command, str(folder / "m.mod"), *output])


@pytest.mark.parametrize("kind", SPECS)
def test_enormous_models_are_counted_and_rendered(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in COUNTED:
        assert called(tmp_path, SPECS[kind], command) == 0, capsys.readouterr().err


@pytest.mark.parametrize("kind", SPECS)
def test_what_memory_does_not_hold_is_refused_with_what_is_needed_and_what_is_free(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(tmp_path, SPECS[kind], "compile") == 1
    errors = capsys.readouterr().err
    assert "free" in errors
    assert any(code in errors for code in ("MG715", "MG130")), errors
    assert "m.mod:1:" in errors or "MG130" in errors, "weights have a place in the spec"


@pytest.mark.parametrize("kind", BEYOND)
def test_what_cannot_be_counted_is_refused_at_its_place(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (*COUNTED, "compile"):
        assert called(tmp_path, BEYOND[kind], command) == 1
        assert "m.mod:1:" in capsys.readouterr().err, f"{command} names no place"


def test_a_training_of_an_enormous_model_is_refused_before_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.mod").write_text(
        "model m() { input image: float[1, 8, 8] target label: class[10] "
        "y = image -> flatten -> linear(10 ** 12) -> linear(10) output y loss cross_entropy(y, label) }"
    )
    (tmp_path / "m.yaml").write_text("data: {name: digits}\ntrain: {epochs: 1}\n")
    assert main(["train", str(tmp_path / "m.mod"), "--out", str(tmp_path / "run")]) == 1
    assert "MG715" in capsys.readouterr().err
    assert not (tmp_path / "run/run.json").exists()
