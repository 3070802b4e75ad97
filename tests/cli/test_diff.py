"""`modgraph diff`: specs, runs and bundles in any mix."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import modgraph
from modgraph.cli import main
from tests.small_runs import begin, lay_out_run

SPEC = "specs/gmoe_digits.mod"


def diff(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    code = main(["diff", *map(str, words)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def as_json(capsys: pytest.CaptureFixture[str], *words: str | Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(diff(capsys, *words, "--json")[1])
    return record


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spec, two runs of it from different seeds, a copy of the first, and a bundle of it."""
    folder = tmp_path_factory.mktemp("diff")
    spec = lay_out_run(folder)
    for seed in (0, 1):
        begin(spec, folder / f"run{seed}", train__epochs=1, model__hidden=4, train__seed=seed)
    shutil.copytree(folder / "run0", folder / "copy")
    modgraph.export(modgraph.load_run(folder / "run0").model(), folder / "m.onnx")
    return folder


def test_equal_specs_give_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = diff(capsys, SPEC, SPEC)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "the architectures are the same"


def test_parameters_are_set_for_both_or_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(capsys, SPEC, SPEC, "-s", "k=2")[0] == 0
    code, out, _ = diff(capsys, SPEC, SPEC, "-s", "k=2", "--set-after", "k=3")
    assert code == 2 and "    k: 2 → 3" in out
    assert diff(capsys, SPEC, SPEC, "--set-before", "k=2", "--set-after", "k=2")[0] == 0


def test_a_mistake_is_reported_by_its_code(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "wrong.mod").write_text("model m() { input x: float[4] y = x -> liner(3) output y }")
    code, out, err = diff(capsys, SPEC, tmp_path / "wrong.mod")
    assert (code, out) == (1, "") and 'did you mean "linear"?' in err


def test_lengths_are_those_of_either_side(capsys: pytest.CaptureFixture[str]) -> None:
    words = "specs/modular_networks_lm.mod"
    costs = [as_json(capsys, SPEC, words, "--length", f"time={time}")["costs"] for time in (1, 10)]
    assert costs[0]["before"] == costs[1]["before"]
    assert costs[0]["after"]["macs"] * 10 == costs[1]["after"]["macs"]
    code, _, err = diff(capsys, SPEC, words, "--length", "tme=3")
    assert code == 1 and "MG128" in err


def test_costs_are_those_of_each_side(capsys: pytest.CaptureFixture[str]) -> None:
    found = as_json(capsys, SPEC, SPEC, "--set-after", "k=2")
    for side, k in (("before", 1), ("after", 2)):
        cost = modgraph.load(SPEC, k=k).cost()
        assert found["costs"][side] == {key: value for key, value in cost.as_json().items() if key != "nodes"}
    gate = found["changed"][0]
    assert gate["costs"]["before"] == gate["costs"]["after"] and gate["costs"]["after"]["parameters"] > 0


def test_a_run_is_its_spec_with_the_parameters_of_its_recipe(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(capsys, folder / "digits.mod", folder / "run0", "-s", "hidden=4")[0] == 0
    assert diff(capsys, folder / "digits.mod", folder / "run0")[0] == 2


def test_runs_are_compared_weight_by_weight(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert as_json(capsys, folder / "run0", folder / "copy")["values"]["trained"] == "equal"
    code, out, _ = diff(capsys, folder / "run0", folder / "run1")
    assert code == 2
    assert "the architectures are the same" in out
    assert "values of weights: different (0 equal, 4 different)" in out


def test_a_bundle_is_the_run_that_it_was_exported_from(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = as_json(capsys, folder / "run0", folder / "m.onnx")
    assert not found["different"] and found["values"]["trained"] == "equal"
    assert found["notes"] == ["the run is compared as it is exported, without what only training needs"]
    assert as_json(capsys, folder / "run1", folder / "m.onnx")["values"]["trained"] == "different"
    assert diff(capsys, folder / "m.onnx", folder / "m.onnx")[0] == 0


def test_a_bundle_with_rounded_weights_has_equal_ones_before_the_rounding(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rounded = tmp_path / "rounded.onnx"
    modgraph.export(modgraph.load_run(folder / "run0").model(), rounded, int8=True)
    code, out, _ = diff(capsys, folder / "run0", rounded)
    assert code == 0
    assert out.splitlines()[-1] == "values of weights: equal, before int8 rounded those of one"
    assert "int8" not in diff(capsys, rounded, rounded)[1], "both are rounded"
    assert "rounded" not in diff(capsys, folder / "run0", folder / "m.onnx")[1]


def test_a_spec_has_no_weights_to_compare(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = as_json(capsys, folder / "digits.mod", folder / "m.onnx", "-s", "hidden=4")
    assert not found["different"] and found["values"]["trained"] == "unknown"


def test_only_specs_take_parameters(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = diff(capsys, folder / "run0", folder / "run1", "-s", "hidden=4")
    assert code == 1 and "keeps its parameters" in err


def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = (SPEC, SPEC, "--set-after", "k=2")
    assert "\x1b[" not in diff(capsys, *words)[1]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[33m~ router" in diff(capsys, *words)[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in diff(capsys, *words)[1]


def test_a_declared_move_settles_a_doubt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "model m() {{ input x: float[4] pool {0}[{1}] = linear(4) router r = cosine(width=2) "
        "y = x -> {0} by r output y {2} }}"
    )
    for name, filled in {
        "old": ("expert", 3, ""),
        "new": ("adapter", 4, ""),
        "declared": ("adapter", 4, "moved expert -> adapter"),
    }.items():
        (tmp_path / f"{name}.mod").write_text(text.format(*filled))
    doubtful = as_json(capsys, tmp_path / "old.mod", tmp_path / "new.mod")
    (doubt,) = doubtful["doubts"]
    assert doubt["declaration"] == "moved expert -> adapter"
    printed = as_json(capsys, tmp_path / "old.mod", tmp_path / "declared.mod")
    assert printed["doubts"] == [] and {"before": "expert", "after": "adapter", "kind": "pool"} in printed["moved"]
    assert printed["weights"]["moved"]["weights"] == 6 and printed["weights"]["dropped"]["weights"] == 0
    assert diff(capsys, tmp_path / "new.mod", tmp_path / "declared.mod")[0] == 0


def test_a_page_is_written_with_both_specs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert diff(capsys, SPEC, SPEC, "--set-after", "k=2", "--html", page)[0] == 2
    assert page.read_text().count("tokenizer patches = patch_embed") >= 2
    assert diff(capsys, SPEC, SPEC, "--html", page)[0] == 0
    page.write_text("a letter")
    code, _, err = diff(capsys, SPEC, SPEC, "--html", page)
    assert code == 1 and "MG121" in err and page.read_text() == "a letter"
    assert diff(capsys, SPEC, SPEC, "--html", page, "--force")[0] == 0
