"""What a trace tells of steps: against counts made one by one of what the routers recorded, padding left out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.inspect.trace_sections import build_sections
from modgraph.passes import INFERENCE, apply_passes
from modgraph.trace import pictures
from modgraph.trace.steps import find_outputs_behind, steps_by_task, use_by_steps
from modgraph.trace.summary import as_json, as_table
from modgraph.trace.trace import Trace
from modgraph.trace.trace_run import trace_run
from modgraph.training.stored_run import load_run
from tests.small_runs import begin

SPEC = """
router connect() for encoder {
  input u: float[senders, dim]
  scores = u -> linear(encoder)
  open = (scores -> sigmoid, scores -> above) -> straight_through
  record gates = open
  v = u by (open / maximum(open -> sum(axis=senders), 1)) over senders
  y = v -> encoder
  output y
}
router first(k=1) for expert {
  input u: float[tokens, dim]
  chosen = u -> linear(expert) -> top_k(k)
  record gates = chosen, choice = chosen
  y = u -> expert by chosen
  output y
}
router soft() for expert {
  input u: float[tokens, dim]
  g = u -> linear(expert) -> softmax
  record gates = g
  y = u -> expert by g
  output y
}

model steps(width=4, tasks=["upos", "gender"]) {
  input x: float[time, width]
  input fixed: float[6, width]
  pool cell[3] = linear(width) -> tanh
  pool encoder[2] = linear(width) -> tanh
  pool expert[3] = linear(width) -> tanh
  router enter = connect
  router top = first
  router mix = soft
  u = x -> cell -> encoder by enter
  t = x -> expert by top
  f = fixed -> expert by mix -> mean
  scan x as xt with h: float[width] {
    router inner = connect
    h = (xt -> cell -> encoder by inner -> mean(axis=encoder)) + h -> tanh
    yield h
  } as walked
  for k in tasks {
    target y[k]: class[time, 3]
    pool decoder[1] = linear(width)
    router pick = connect
    read[k] = u -> decoder by pick -> mean(axis=decoder)
    router again = connect
    more[k] = u -> decoder by again -> mean(axis=decoder)
    logits[k] = (read[k] + more[k] + t + f + walked) -> linear(3)
    output logits[k]
    output sure[k] = logits[k] -> softmax -> max(axis=-1)
    loss cross_entropy(logits[k], y[k])
  }
}
"""
RECIPE = """
data: {{name: npz, train: {folder}/d.npz, test: {folder}/d.npz}}
train: {{epochs: 1, batch: 10, threads: 1}}
"""
LENGTHS = [7, 2, 5, 5, 1, 7, 3, 4, 6, 2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, random = tmp_path_factory.mktemp("steps"), np.random.default_rng(3)
    x, fixed = (random.normal(size=(10, steps, 4)).astype("float32") for steps in (7, 6))
    labels = {f"y.{task}": random.integers(3, size=(10, 7)) for task in ("upos", "gender")}
    np.savez(folder / "d.npz", x=x, fixed=fixed, time_length=np.array(LENGTHS), **labels)  # type: ignore[arg-type]
    (folder / "s.mod").write_text(SPEC)
    (folder / "s.yaml").write_text(RECIPE.format(folder=folder))
    begin(folder / "s.mod", folder / "run")
    return folder


@pytest.fixture(scope="module")
def trace(folder: Path) -> Trace:
    return replace(trace_run(load_run(folder / "run")), steps=5)


@pytest.fixture(scope="module")
def records(trace: Trace, folder: Path) -> dict[str, np.ndarray]:
    """The gates of every route, [B, …, M]."""
    model = load_run(folder / "run").model()
    batch = {name: torch.from_numpy(array) for name, array in trace.arrays.values.items()}
    with torch.no_grad():
        routing = model.compute(batch, False, True).routing
    return {name.removesuffix(".gates"): each.numpy() for name, each in routing.items() if name.endswith(".gates")}


def counted(gates: np.ndarray, step: int, of: Any) -> float:
    """The share of the examples that have a step in which something holds of its gates."""
    present = [example for example, length in enumerate(LENGTHS) if step < length]
    return sum(bool(of(gates[example, step])) for example in present) / len(present)


def check_tokens(gates: np.ndarray, summary: Any) -> None:
    """Gates [B, T, S, M] of zeros and ones, against what is told of five steps."""
    assert (summary["axis"], summary["of"]) == ("time", "active")
    assert summary["examples"] == [sum(step < length for length in LENGTHS) for step in range(5)]
    for step in range(5):
        for token in range(gates.shape[-2]):
            assert summary["senders"]["steps"][token][step] == pytest.approx(
                counted(gates, step, lambda each, at=token: any(each[at]))
            )
            for module in range(gates.shape[-1]):
                shared = counted(gates, step, lambda each, at=(token, module): each[at])
                assert summary["connections"][token][module][step] == pytest.approx(shared)
        for module in range(gates.shape[-1]):
            assert summary["modules"]["steps"][module][step] == pytest.approx(
                counted(gates, step, lambda each, at=module: any(each[:, at]))
            )
    every = [gates[example, step] for example, length in enumerate(LENGTHS) for step in range(length)]
    assert summary["senders"]["mean"] == pytest.approx(np.mean([each.any(-1) for each in every], 0))


def test_tokens_modules_and_connections_are_counted_without_padding(trace: Trace, records: Any) -> None:
    routes = as_json(trace)["routes"]
    names = [name for name in routes if routes[name].get("steps", {}).get("senders")]
    assert len(names) == 6  # the encoder's, that of the scan, and two of each task
    for name in names:
        check_tokens(records[name], routes[name]["steps"])
        assert (routes[name]["positions"]["of"], len(routes[name]["positions"]["use"])) == ("step", 7)
    assert {routes[name]["steps"]["senders"]["pool"] for name in names} == {"cell", "encoder"}


def test_tokens_of_a_time_axis_report_their_modules_and_soft_gates_their_averages(trace: Trace, records: Any) -> None:
    found = use_by_steps(trace)
    (top,) = (name for name, each in found.items() if each["modules"]["pool"] == "expert" and each["of"] == "active")
    (soft,) = (name for name, each in found.items() if each["of"] == "gate")
    for step in range(5):
        shares = [counted(records[top], step, lambda each, at=module: each[at]) for module in range(3)]
        assert [row[step] for row in found[top]["modules"]["steps"]] == pytest.approx(shares)
        assert [row[step] for row in found[soft]["modules"]["steps"]] == pytest.approx(records[soft][:, step].mean(0))
    assert (found[soft]["axis"], found[soft]["examples"], found[soft]["senders"]) == ("step", [10] * 5, None)


def test_a_route_belongs_to_the_task_whose_outputs_depend_on_it(trace: Trace, records: Any) -> None:
    tasks = find_outputs_behind(trace)
    assert {each for each in tasks.values() if len(each) == 1} == {("upos",), ("gender",)}
    summary, _ = steps_by_task(trace, use_by_steps(trace))
    assert summary is not None
    assert [(row["pool"], row["round"], row["module"]) for row in summary["sub_networks"]] == [
        ("encoder", times, module) for times in (0, 1) for module in (0, 1)
    ]
    for task in ("upos", "gender"):
        own = [name for name, each in tasks.items() if each == (task,)]
        assert len(own) == 2
        for row, (name, module) in enumerate((name, module) for name in own for module in (0, 1)):
            gates = records[name]
            shares = [counted(gates, step, lambda each, at=module: any(each[at])) for step in range(5)]
            assert summary["use"][task][row] == pytest.approx(shares)
    for row, shares in enumerate(summary["shares"]):
        taken = [summary["mean"][task][row] for task in ("upos", "gender")]
        assert shares == pytest.approx([each / max(sum(taken), 1e-9) for each in taken])
    for_inference = replace(trace, graph=apply_passes(trace.graph, INFERENCE))
    assert steps_by_task(for_inference, use_by_steps(for_inference))[0] == summary


def test_one_task_has_no_routes_of_its_own(trace: Trace) -> None:
    one = replace(trace, routes=tuple(route for route in trace.routes if "gender" not in route.name))
    assert steps_by_task(one, use_by_steps(one)) == (None, use_by_steps(one))
    assert as_table(one, as_json(one)).count(" by step of ") == len(use_by_steps(one))


@pytest.mark.slow
def test_the_picture_has_what_is_reported(trace: Trace) -> None:
    summary, _ = steps_by_task(trace, use_by_steps(trace))
    assert summary is not None
    maps = [each for _, found in pictures.maps_by_step(trace) for each in found]
    for expected in (*summary["use"].values(), summary["shares"]):
        shapes = [each.values for each in maps if np.shape(each.values) == np.shape(expected)]
        assert any(np.allclose(each, expected) for each in shapes), expected
    svg = ElementTree.fromstring(pictures.steps_picture(trace, ".svg"))
    words = {"".join(text.itertext()) for text in svg.iter("{http://www.w3.org/2000/svg}text")}
    assert {"upos", "gender", "encoder.0", "encoder.0 (use 2)", "cell.2 → encoder.1"} <= words
    (percent,) = {f"{100 * summary['shares'][0][0]:.0f}"}
    assert percent in words, "cells have their numbers"
    assert pictures.steps_picture(trace, ".png")[:4] == b"\x89PNG"


def test_the_command_keeps_and_prints_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(folder / "run"), "--steps", "3"]) == 0
    summary = capsys.readouterr().out
    assert "upos: % of examples with sub-networks active by step of time" in summary
    kept = json.loads((folder / "run/trace.json").read_text())
    assert len(kept["by_step"]["use"]["upos"][0]) == 3
    assert "steps" in kept["pictures"]
    titles = {section.title for section in build_sections(kept)}
    assert "Tasks by step" in titles


def test_what_has_no_steps_is_reported(trace: Trace) -> None:
    with pytest.raises(ModgraphError, match="MG843"):
        pictures.steps_picture(replace(trace, routes=()), ".png")
