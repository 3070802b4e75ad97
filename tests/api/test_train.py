"""Training from Python: the same as the command, from paths, programs, dictionaries and data sets of one's own."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from modgraph_runtime import Bundle

import modgraph
from modgraph.cli import main
from tests.api.digits import RECIPE, SPEC, own_data, tensors
from tests.small_runs import final_weights, lay_out_run

ROUTED = """
model routed(width=4) {
  input  x: float[tokens, width]
  target label: class[2]
  pool   expert[3] = linear(width) -> relu
  router gate = cosine(2)
  logits = x -> expert by gate -> mean -> linear(2)
  output logits
  loss cross_entropy(logits, label)
  loss balance = 0.01 * importance(gate)
}
"""


def sequences(count: int, seed: int) -> list[dict[str, Any]]:
    """Examples of unequal lengths whose label says whether their numbers are large."""
    rng = np.random.default_rng(seed)
    found = []
    for at in range(count):
        label = at % 2
        found.append({"x": rng.normal(label, 1, (int(rng.integers(1, 7)), 4)).astype(np.float32), "label": label})
    return found


@pytest.fixture(scope="module")
def routed(tmp_path_factory: pytest.TempPathFactory) -> modgraph.Run:
    """A run with a router, on sequences that were given in Python."""
    data = {"train": sequences(64, 0), "test": sequences(32, 1)}
    out = tmp_path_factory.mktemp("api") / "routed"
    recipe = {"train": {"epochs": 3, "batch": 16, "optimizer": {"name": "adam", "lr": 0.02}}}
    return modgraph.train(modgraph.loads(ROUTED), recipe, data=data, out=out)


def test_python_trains_bit_for_bit_what_the_command_trains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, overrides = lay_out_run(tmp_path), ["-s", "train.epochs=2", "-s", "hidden=8"]
    assert main(["train", str(spec), "--out", str(tmp_path / "command"), *overrides]) == 0
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    run = modgraph.train(spec, out=tmp_path / "python", overrides={"train.epochs": 2, "hidden": 8})
    assert final_weights(run.path) == final_weights(tmp_path / "command"), "the same weights, to the bit"
    assert run.metrics == printed, "the metrics that the command prints"
    assert capsys.readouterr().out == "", "stdout is the program's own"


def test_epochs_are_printed_as_the_command_prints_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = lay_out_run(tmp_path)
    assert main(["train", str(spec), "--out", str(tmp_path / "command"), "-s", "train.epochs=2"]) == 0
    expected = capsys.readouterr().err.replace("command", "run")
    modgraph.train(spec, out=tmp_path / "run", overrides={"train.epochs": 2})
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", expected), "lines on stderr"
    assert [line.split()[1] for line in printed.err.splitlines() if line.startswith("epoch")] == ["1", "2"]
    modgraph.load_run(tmp_path / "run").resume(quiet=True)
    modgraph.train(spec, out=tmp_path / "quiet", overrides={"train.epochs": 1}, quiet=True)
    assert capsys.readouterr() == ("", ""), "quiet prints nothing"


def test_configured_logging_gets_the_lines_of_a_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    spec = lay_out_run(tmp_path)
    with caplog.at_level(logging.INFO):  # of the root, as logging.basicConfig sets it
        modgraph.train(spec, out=tmp_path / "taken", overrides={"train.epochs": 1})
    assert sum(each.startswith("epoch   1  train") for each in caplog.messages) == 1
    caplog.clear()
    with caplog.at_level(logging.WARNING, "modgraph"):
        modgraph.train(spec, out=tmp_path / "dropped", overrides={"train.epochs": 1})
    assert capsys.readouterr().err == "", "printed by no one else"
    modgraph.train(spec, out=tmp_path / "printed", overrides={"train.epochs": 1})
    assert "epoch   1  train" in capsys.readouterr().err
    assert caplog.messages == [], "handlers of another level get no more than they ask for"


def test_a_program_trains_as_its_spec_does(tmp_path: Path) -> None:
    spec = lay_out_run(tmp_path)
    runs = [
        modgraph.train(each, out=tmp_path / str(at), overrides={"train.epochs": 1})
        for at, each in enumerate((spec, modgraph.load(spec)))
    ]
    assert final_weights(runs[0].path) == final_weights(runs[1].path), "the recipe beside the spec is read for both"


def test_a_recipe_is_a_path_or_a_dictionary_of_the_same_keys(tmp_path: Path) -> None:
    spec = lay_out_run(tmp_path)
    (tmp_path / "other.yaml").write_text(f"data: {{name: npz, train: {tmp_path}/digits.npz}}\ntrain: {{epochs: 1}}\n")
    given = {"data": {"name": "npz", "train": tmp_path / "digits.npz"}, "train": {"epochs": 1}}
    runs = [
        modgraph.train(spec, each, out=tmp_path / str(at)) for at, each in enumerate((tmp_path / "other.yaml", given))
    ]
    assert final_weights(runs[0].path) == final_weights(runs[1].path), "one recipe in two forms"


def test_a_run_says_what_it_measured(tmp_path: Path) -> None:
    run = modgraph.train(modgraph.loads(SPEC), RECIPE, data=own_data(), out=tmp_path / "run")
    assert run.metrics["test.accuracy"] == run.evaluate()["test.accuracy"], "the end of the training and a new measure"
    assert [(each["epoch"], each["split"]) for each in run.history] == [(1, "train"), (2, "train")], "a record an epoch"
    images, labels = tensors()
    by_hand = (run.model()(images[500:]).argmax(1) == labels[500:]).float().mean().item()
    assert run.metrics["test.accuracy"] == pytest.approx(by_hand), "counted in torch"


def test_a_run_traces_its_routers_on_its_own_data_and_on_others(routed: modgraph.Run) -> None:
    traced = routed.trace(examples=8)
    assert len(traced) == 8
    assert [route.name for route in traced.routes] == ["expert"], "the route of the spec"
    assert routed.trace(data={"test": sequences(5, 7)}).split == "test"
    records = traced.as_records()
    assert [(each["route"], each["module"]) for each in records] == [("expert", 0), ("expert", 1), ("expert", 2)]
    assert sum(each["share"] for each in records) == pytest.approx(1), "shares of all choices"
    lengths = traced.arrays.values["tokens_length"]
    assert sum(each["load"] for each in records) == 2 * lengths.sum(), "two modules for each token that is no padding"
    assert len(traced._repr_html_()) < 300_000


@pytest.mark.slow
def test_a_run_exports_a_bundle_that_agrees(routed: modgraph.Run, tmp_path: Path) -> None:
    report = modgraph.export(routed, tmp_path / "m.onnx")
    assert "agrees with torch" in str(report)
    x = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0))
    found = Bundle(tmp_path / "m.onnx").run({"x": x.numpy()})["logits"]
    assert np.abs(found - routed.model()(x).detach().numpy()).max() < 1e-5, "ONNX Runtime and torch"
    measured = routed.evaluate(bundle=tmp_path / "m.onnx")
    assert measured["test.accuracy"] == routed.evaluate()["test.accuracy"], "measured through the bundle"


def test_what_is_measured_on_other_data_needs_no_data_of_the_run(tmp_path: Path) -> None:
    run = modgraph.train(modgraph.loads(SPEC), RECIPE, data=own_data(), out=tmp_path / "run")
    found = modgraph.load_run(run.path).evaluate({"test": own_data()["test"]})
    assert found["test.accuracy"] == run.metrics["test.accuracy"]
    with pytest.raises(modgraph.ModgraphError, match="its data, which came from Python"):
        modgraph.load_run(run.path).evaluate()


def test_a_training_that_was_stopped_goes_on_to_the_same_end(tmp_path: Path) -> None:
    program = modgraph.loads(SPEC)
    whole = modgraph.train(program, RECIPE, data=own_data(), out=tmp_path / "whole")

    class StopAt(modgraph.Callback):
        def on_step(self, step: modgraph.Step) -> bool:
            return step.step == 7

    cut = modgraph.train(program, RECIPE, data=own_data(), out=tmp_path / "cut", callbacks=[StopAt()])
    assert cut.metrics["steps"] == 7, "it stops in the middle of an epoch, and is tested"
    resumed = modgraph.load_run(cut.path).resume(own_data())
    assert resumed.metrics == whole.metrics
    assert final_weights(cut.path) == final_weights(whole.path), "to the bit"


def test_data_that_have_changed_are_not_gone_on_with(tmp_path: Path) -> None:
    run = modgraph.train(modgraph.loads(SPEC), RECIPE, data=own_data(), out=tmp_path / "run")
    others = {"train": own_data()["test"], "test": own_data()["test"]}
    with pytest.raises(modgraph.ModgraphError, match="had 500 examples and has 100"):
        run.resume(others)


def test_two_runs_differ_in_the_values_of_weights(tmp_path: Path) -> None:
    program = modgraph.loads(SPEC)
    first = modgraph.train(program, RECIPE, data=own_data(), out=tmp_path / "first")
    second = modgraph.train(program, RECIPE, data=own_data(), out=tmp_path / "second", overrides={"train.seed": 1})
    assert modgraph.diff(first, first.path).is_different is False
    assert modgraph.diff(first, second).values.trained == "different"
    assert first.diff(program).diff.changed == (), "a run and its spec are one architecture"
