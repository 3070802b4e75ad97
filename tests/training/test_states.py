"""States that a rule moves: once a step, as the rule says, the same after an interruption, and along with growth."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from modgraph.diagnostics import ModgraphError
from modgraph.ir import grow
from modgraph.training.run import start_run
from modgraph.training.stored_run import load_run
from tests import continual_runs
from tests.small_runs import begin, change_graph, dotted, final_weights, go_on, interrupt_at, lay_out_run, take_step

SPEC = """
model net() {
  input  image: float[1, 8, 8]
  target label: class[10]
  pool   expert[3] = linear(16) -> relu
  state  centre: float[64] = zeros
  state  load: float[expert] = zeros
  x = image -> flatten
  m = x -> batch_mean
  next centre = 0.9 * centre + 0.1 * m
  noisy = (x - centre -> dropout(0.2)) + (x -> dropout(0.1))
  scores = noisy -> linear(expert)
  chosen = scores - load -> top_k
  next load = (load + (chosen -> batch_mean)) / 2
  logits = noisy -> expert by ((scores -> softmax) * chosen) -> linear(10)
  output logits
  loss cross_entropy(logits, label)
}
"""
SETTINGS = {"train__epochs": 2, "train__precision": "float64", "train__checkpoint_every": 3}


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    found = lay_out_run(tmp_path)
    found.write_text(SPEC)
    return found


def test_a_state_moves_once_a_step_and_goes_on_after_an_interruption(spec: Path, tmp_path: Path) -> None:
    """Two values drop out independently: after an interruption each has the noise that it would have had."""
    begin(spec, tmp_path / "whole", **SETTINGS)
    with start_run(str(spec), None, dotted(SETTINGS), str(tmp_path / "cut")) as engine:
        images, expected = torch.from_numpy(engine.phase.data.values["image"]).flatten(1).double(), torch.zeros(64)
        for epoch in (0, 1):
            for indices in engine.order.draw(engine.train.seed, epoch, since=0):
                expected = 0.9 * expected + 0.1 * images[indices].mean(0)
        interrupt_at(engine, 7)
        with suppress(KeyboardInterrupt):
            engine.run()
    go_on(tmp_path / "cut")
    assert final_weights(tmp_path / "cut") == final_weights(tmp_path / "whole")
    weights = load_run(tmp_path / "whole").checkpoint().weights
    torch.testing.assert_close(weights["centre.value"], expected)
    assert 0.9 < weights["load.value"].sum() <= 1


def test_a_state_grows_with_its_pool(spec: Path, tmp_path: Path) -> None:
    with start_run(str(spec), None, dotted({**SETTINGS, "train__epochs": 1}), str(tmp_path / "run")) as engine:
        engine.run()
        before = {name: value.clone() for name, value in engine.state.weights.items()}
        change_graph(engine, grow(engine.state.graph, "expert", 2))
        assert engine.state.weights["load.value"].tolist() == [*before["load.value"].tolist(), 0, 0]
        assert torch.equal(engine.state.weights["centre.value"], before["centre.value"])
        engine.save()
        take_step(engine, torch.arange(20))
        assert len(engine.state.weights["load.value"]) == 5
        assert not torch.equal(engine.state.weights["load.value"][:3], before["load.value"])


def test_a_frozen_state_moves_only_in_its_new_places(spec: Path, tmp_path: Path) -> None:
    spec.write_text(SPEC.replace("state  load: float[expert] = zeros", "frozen { state load: float[expert] = zeros }"))
    with start_run(str(spec), None, dotted(SETTINGS), str(tmp_path / "run")) as engine:
        take_step(engine, torch.arange(20))
        assert engine.state.weights["load.value"].tolist() == [0, 0, 0]
        change_graph(engine, grow(engine.graph, "expert", 2))
        for at in range(3):
            take_step(engine, torch.arange(20 * at, 20 * at + 20))
        moved = engine.state.weights["load.value"]
        assert moved[:3].tolist() == [0, 0, 0] and moved[3:].any()


TEMPERED = """
router tempered() for expert {
  input x: float[tokens, dim]
  input temperature: float
  gates = (x -> linear(expert)) / temperature -> softmax
  record gates
  y = x -> expert by gates
  output y
}
block scaled() {
  input x: float[tokens, dim]
  state gain: float = constant(2)
  y = x * gain
  output y
}
model net() {
  input  image: float[1, 8, 8]
  target label: class[10]
  pool   expert[2] = scaled -> linear(8)
  router r = tempered
  state  temperature: float = constant(100)
  state  centre: float[64] = zeros
  state  moved: float = zeros
  x = image -> flatten
  next moved = moved + 1
  h = (x - centre + moved * 0 -> dropout(0.2)) -> scaled -> expert by r(temperature)
  logits = h * temperature / 100 -> linear(10)
  output logits
  loss cross_entropy(logits, label)
  loss 0.01 * importance(r)
}
"""
STAIRS = {"name": "stairs", "every": 1, "factor": 0.5, "floor": 0.2}
MOVED = {"temperature": STAIRS, "*.gain": {"name": "linear", "floor": 0.25}, "expert.0.*": "constant"}


@pytest.fixture
def tempered(tmp_path: Path) -> Path:
    spec = lay_out_run(tmp_path)
    spec.write_text(TEMPERED)
    return spec


def moving(spec: Path, states: dict[str, Any]) -> Path:
    """A spec whose recipe moves states."""
    recipe = spec.with_suffix(".yaml")
    train = {"epochs": 4, "batch": 50, "optimizer": "adam", "precision": "float64", "states": states}
    recipe.write_text(json.dumps({"data": {"name": "npz", "train": str(spec.with_name("digits.npz"))}, "train": train}))
    return spec


def test_a_log_has_each_number_that_a_rule_moves(spec: Path, tmp_path: Path) -> None:
    spec.write_text(
        SPEC.replace("  state  load", "  state  level: float = constant(2)\n  next level = 0.9 * level\n  state  load")
    )
    begin(spec, tmp_path / "run", **SETTINGS)
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    found = [
        {name: line[name] for name in line if name.startswith("state.")} for line in lines if line["split"] == "train"
    ]
    steps = [line["step"] for line in lines if line["split"] == "train"]
    assert found == [{"state.level": pytest.approx(2 * 0.9**step)} for step in steps], steps


def test_a_schedule_moves_a_state_and_an_interruption_changes_nothing(tempered: Path, tmp_path: Path) -> None:
    """480 examples are 10 steps an epoch; what is logged is what the last step of an epoch was made with."""
    spec = moving(tempered, MOVED)
    begin(spec, tmp_path / "whole")
    with start_run(str(spec), None, {}, str(tmp_path / "cut")) as engine, suppress(KeyboardInterrupt):
        interrupt_at(engine, 29)
        engine.run()
    go_on(tmp_path / "cut")
    assert final_weights(tmp_path / "cut") == final_weights(tmp_path / "whole")
    assert (tmp_path / "cut/metrics.jsonl").read_bytes() == (tmp_path / "whole/metrics.jsonl").read_bytes()
    lines = [json.loads(line) for line in (tmp_path / "whole/metrics.jsonl").read_text().splitlines()]
    assert [line["state.temperature"] for line in lines] == [100, 50, 25, 20]
    gains = [2 * (1 - 0.75 * step / 40) for step in (9, 19, 29, 39)]
    assert [line["state.h.scaled.gain"] for line in lines] == pytest.approx(gains)
    assert [line["state.expert.1.scaled.gain"] for line in lines] == pytest.approx(gains)
    assert {line["state.expert.0.scaled.gain"] for line in lines} == {2}
    weights = load_run(tmp_path / "whole").checkpoint().weights
    assert weights["temperature.value"] == 20
    assert weights["moved.value"] == 40


def test_a_step_is_made_with_its_own_value_and_one_written_into_the_spec_makes_the_same(
    tempered: Path, tmp_path: Path
) -> None:
    """The first step of the second epoch, at a temperature of 50."""
    written = tmp_path / "written.mod"
    written.write_text(TEMPERED.replace("temperature: float = constant(100)", "temperature: float = constant(50)"))
    found = []
    for spec, states in ((tempered, {"temperature": STAIRS}), (written, {})):
        with start_run(str(moving(spec, states)), None, {}, str(tmp_path / spec.stem)) as engine:
            engine.progress = replace(engine.progress, step=10, epoch=1)
            take_step(engine, torch.arange(20))
            found.append(engine.state.weights)
    for name, weight in found[0].items():
        assert torch.equal(weight, found[1][name]), name


@pytest.mark.slow
def test_in_a_later_phase_a_schedule_begins_anew(tmp_path: Path) -> None:
    """Also of a state that is frozen by then: it is a setting of the training."""
    spec = continual_runs.lay_out_run(tmp_path)
    text = spec.read_text().replace("  h = x\n", "  state warmth: float = constant(8)\n  h = x * warmth / 8\n")
    spec.write_text(text)
    recipe = json.loads(spec.with_suffix(".yaml").read_text())
    recipe["train"]["algorithm"] |= {"expand": "never", "phases": {"all": {"losses": ["*"], "epochs": 2, "lr": 0.1}}}
    recipe["train"]["states"] = {"warmth": {"name": "stairs", "every": 1, "factor": 0.5}}
    recipe["data"]["tasks"].pop("c")
    spec.with_suffix(".yaml").write_text(json.dumps(recipe))
    begin(spec, tmp_path / "whole")
    with start_run(str(spec), None, {}, str(tmp_path / "cut")) as engine, suppress(KeyboardInterrupt):
        interrupt_at(engine, 7)
        engine.run()
    go_on(tmp_path / "cut")
    assert final_weights(tmp_path / "cut") == final_weights(tmp_path / "whole")
    lines = [json.loads(line) for line in (tmp_path / "whole/metrics.jsonl").read_text().splitlines()]
    phases: dict[tuple[str, str], list[float]] = {}
    for line in lines:
        if line["split"] == "train":
            phases.setdefault((line["task"], line["phase"]), []).append(line["state.warmth"])
    assert len(phases) == 2
    assert all(values == [8, 4] * (len(values) // 2) for values in phases.values())


@pytest.mark.parametrize(
    ("pattern", "code", "expected"),
    [
        ("temperatur", "MG550", 'did you mean "temperature"?'),
        ("centre", "MG552", "float[64]"),
        ("mov*", "MG551", "next moved"),
    ],
)
def test_what_no_schedule_can_move_is_reported_before_a_folder_is_made(
    tempered: Path, tmp_path: Path, pattern: str, code: str, expected: str
) -> None:
    with pytest.raises(ModgraphError) as caught:
        begin(moving(tempered, {pattern: "cosine"}), tmp_path / "run")
    (message,) = caught.value.diagnostics
    assert message.code == code
    assert expected in message.text() + message.advice()
    assert not (tmp_path / "run").exists()
