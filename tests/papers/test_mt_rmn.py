"""MT-RMN's spec: what it costs, what it computes, and what its gates learn."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import modgraph
from modgraph.backends.torch import Model
from modgraph.ir import OpNode, Result
from modgraph.ops.situation import GumbelNoise
from tests.ordinary_run import some_examples
from tests.papers.mt_rmn_in_numpy import MTRMN, Array

SPEC, STANDALONE = "specs/mt_rmn.mod", "tests/papers/mt_rmn_standalone.mod"
TASKS = ["a", "b"]
RMN = "rmn.mt_rmn"
SHARE = 0.13  # of the connections; no whole number of them, where the hinge would have no slope
PENALTIES = ["v.rmn.mt_rmn.loss.encoder", "v.rmn.mt_rmn.loss.decoders"]


def test_the_architecture_for_fmri_costs_what_the_paper_says() -> None:
    nodes = modgraph.load(SPEC).cost().nodes
    layers = f"{RMN}.encoder.routed_layers"
    tasks = [f"{RMN}.decoder.{task}.task_decoder" for task in ("first", "second", "third", "fourth")]

    def parameters(*names: str) -> int:
        return sum(nodes[name].parameters for name in names)

    assert parameters("rmn") == 2920
    assert parameters(f"{layers}.cell") == 1360
    assert parameters(*(f"{layers}.layer.{at}.encoder" for at in (0, 1))) == 360
    assert parameters(*(f"{layers}.layer.{at}.policy" for at in (0, 1))) == 432
    assert parameters(*(f"{task}.layer" for task in tasks)) == 480
    assert parameters(*(f"{task}.policy" for task in tasks)) == 288


@pytest.mark.parametrize("name", ["mt_rmn", "mt_rmn_tagging", "mt_rmn_clinical"])
def test_the_papers_three_architectures_have_the_weights_that_are_counted_by_hand(name: str) -> None:
    loaded = modgraph.load(SPEC, **(yaml.safe_load(Path(f"specs/{name}.yaml").read_text()).get("model") or {}))
    of = dict(loaded.ir.parameters)
    read = of["embedded"] if of["vocabulary"] else of["features"]

    def mlp(*widths: int) -> int:
        return sum(a * b + b for a, b in pairwise(widths))

    cells = of["cells"] * 4 * of["hidden"] * (read + of["hidden"] + 2)
    below = of["hidden"], of["widths"][-1]
    encoders = sum(n * mlp(w, *of["widths"]) for n, w in zip(of["layers"], below, strict=True))
    policies = sum(n * mlp(w, *of["policies"], 2) for n, w in zip(of["layers"], below, strict=True))
    task = mlp(below[1], *of["policies"], 2) + len(of["layers"]) * mlp(below[1], *of["decoders"])
    assert loaded.cost().nodes["rmn"].parameters == cells + encoders + policies + len(of["tasks"]) * task


@cache
def program(**parameters: Any) -> modgraph.Program:
    return modgraph.load(
        STANDALONE, **{key: [*each] if isinstance(each, tuple) else each for key, each in parameters.items()}
    )


def model_of(seed: int = 0, **parameters: Any) -> Model:
    """With random weights, large enough for gates of both kinds."""
    model = program(**parameters).build(seed=seed).double()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            generator = torch.Generator().manual_seed(sum(name.encode()) + seed)
            weight.copy_(torch.randn(weight.shape, dtype=weight.dtype, generator=generator) * 0.8)
    return model


def weights_of(model: Model) -> dict[str, Array]:
    return {name: weight.numpy().copy() for name, weight in model.state_dict().items()}


def batch_of(represented: int = 0, count: int = 2, steps: int = 3) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(7)
    extra_inputs = {
        f"r.{task}": torch.randn(count, steps, 6, dtype=torch.float64, generator=generator) for task in TASKS
    }
    x = torch.randn(count, steps, 4, dtype=torch.float64, generator=generator)
    return {"x": x, **(extra_inputs if represented else {})}


def in_numpy(model: Model, **facts: Any) -> MTRMN:
    parameters = dict(model.graph.parameters)
    return MTRMN(
        weights_of(model), parameters["cells"], list(parameters["layers"]), TASKS, parameters["recursive"], **facts
    )


def extra_inputs_of(batch: dict[str, Tensor], at: int) -> dict[str, Array] | None:
    extra_inputs = {task: batch[f"r.{task}"][at].numpy() for task in TASKS if f"r.{task}" in batch}
    return extra_inputs or None


def opened(model: Model, score: float) -> None:
    """Every policy's last bias so large that all gates are open, or closed where it is negative."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("scores.bias"):
                weight.copy_(torch.tensor([0.0, score]))


VARIANTS: list[dict[str, Any]] = [{}, {"represented": 2}, {"recursive": True, "layers": (4, 4), "cells": 4}]


@pytest.mark.some(4)
@pytest.mark.parametrize("gates", [None, 1000.0, -1000.0], ids=["some", "all", "none"])
@pytest.mark.parametrize("variant", VARIANTS, ids=["layers", "represented", "recursive"])
def test_three_steps_are_what_numpy_makes_of_them(variant: dict[str, Any], gates: float | None) -> None:
    model = model_of(**variant, shares=(0.25, 0.3)).eval()
    if gates is not None:
        opened(model, gates)
    batch, reference = batch_of(variant.get("represented", 0)), in_numpy(model)
    found = model.compute(batch)
    within, read = [], []
    for at in range(2):
        vectors, *sums = reference(batch["x"][at].numpy(), extra_inputs_of(batch, at))
        within.append(sums[0])
        read.append(sums[1])
        for task in TASKS:
            np.testing.assert_allclose(found.outputs[f"v.{task}"][at].detach(), vectors[task], rtol=0, atol=1e-12)
    layers, cells = model.graph.parameters["layers"], model.graph.parameters["cells"]
    connections = sum(a * b for a, b in zip([cells, *layers[:-1]], layers, strict=True)), 2 * sum(layers)
    for name, sums, share, most in zip(PENALTIES, (within, read), (0.25, 0.3), connections, strict=True):
        penalty = np.maximum(np.array(sums) - share * most, 0).mean()
        np.testing.assert_allclose(float(found.losses[name]), penalty, atol=1e-12)
        if gates is not None:
            assert float(found.losses[name]) == pytest.approx((1 - share) * most if gates > 0 else 0)


def test_penalties_with_all_gates_open_are_the_papers() -> None:
    model = modgraph.load(SPEC).build(seed=0)
    opened(model, 1000.0)
    length = {"time_length": torch.tensor([28, 3])}
    labels = {f"label.{task}": torch.tensor([0, 6]) for task in ("first", "second", "third", "fourth")}
    losses = model.eval().compute({"series": torch.randn(2, 28, 10), **length, **labels}).losses
    assert [float(losses[name]) for name in PENALTIES] == [5.25, 6.0]


def test_where_no_gate_is_open_nothing_is_not_a_number_and_the_gates_still_learn() -> None:
    model = model_of(shares=(0.0, 0.0)).train()
    opened(model, -1000.0)
    found = model.compute(batch_of())
    loss = sum(value.sum() for value in found.outputs.values())
    loss.backward()
    gradients = {name: weight.grad for name, weight in model.named_parameters()}
    assert all(each is None or bool(torch.isfinite(each).all()) for each in gradients.values())


def noise_of(
    model: Model, batch: dict[str, Tensor], wanted: tuple[Result, ...]
) -> tuple[list[Tensor], dict[Any, Array]]:
    """Results of a training step on one example, and the noise of each of its gates, by the keys of the reference."""
    nodes = [node for node in model.graph.nodes_of(OpNode) if isinstance(node.op, GumbelNoise)]
    results = model.results(batch, (*wanted, *(Result(node.name) for node in nodes)))
    found: dict[Any, Array] = {}
    for node, value in zip(nodes, results[len(wanted) :], strict=True):
        layer = int(node.name.split(".layer.")[1].split(".")[0])
        task = next((each for each in TASKS if f"_read.{each}." in node.name), None)
        for t, i, j in np.ndindex(*value.shape[1:4]):
            found[(layer, t, i, j) if task is None else (task, layer, t, i)] = value[0, t, i, j].detach().numpy()
    return results[: len(wanted)], found


@some_examples(12)
@given(seed=st.integers(0, 1000), variant=st.sampled_from(VARIANTS), temperature=st.sampled_from([0.5, 1.0, 20.0]))
def test_gates_learn_as_their_softmax_at_a_temperature_does(
    seed: int, variant: dict[str, Any], temperature: float
) -> None:
    model = model_of(seed, **variant, shares=(SHARE, SHARE)).train()
    model.get_buffer(f"{RMN}.temperature.value").fill_(temperature)
    batch = batch_of(variant.get("represented", 0), count=1)
    losses = [model.graph.losses[name] for name in PENALTIES]
    torch.manual_seed(seed)
    results, noise = noise_of(model, batch, (*model.graph.outputs.values(), *losses))
    weigh = [np.linspace(-1, 2, each.numel()).reshape(each.shape) for each in results]
    torch.stack([(each * torch.tensor(by)).sum() for each, by in zip(results, weigh, strict=True)]).sum().backward()

    x, extra_inputs = batch["x"][0].numpy(), extra_inputs_of(batch, 0)
    base = in_numpy(model, noise=noise, temperature=temperature)
    vectors, *_ = base(x, extra_inputs)
    np.testing.assert_allclose(results[0][0].detach(), vectors[TASKS[0]], atol=1e-10)

    layers = model.graph.parameters["layers"]
    most = sum(a * b for a, b in zip([model.graph.parameters["cells"], *layers[:-1]], layers, strict=True))

    def objective(name: str, place: tuple[int, ...], step: float) -> float:
        moved = in_numpy(model, noise=noise, temperature=temperature, at=base)
        moved.weights[name][place] += step  # type: ignore[index]
        vectors, within, read = moved(x, extra_inputs)
        hinges = [np.maximum(within - SHARE * most, 0).mean(), np.maximum(read - SHARE * 2 * sum(layers), 0).mean()]
        made = [*(vectors[task] for task in TASKS), *hinges]
        return float(sum((each * by).sum() for each, by in zip(made, weigh, strict=True)))

    named = dict(model.named_parameters())
    for name in sorted(named)[:: max(1, len(named) // 12)]:
        gradient = named[name].grad
        assert gradient is not None
        place = np.unravel_index(int(gradient.abs().argmax()), gradient.shape)
        slope = (objective(name, place, 1e-6) - objective(name, place, -1e-6)) / 2e-6
        np.testing.assert_allclose(float(gradient[place]), slope, rtol=1e-5, atol=1e-7, err_msg=name)
