"""A sequence gives in a batch of unequal lengths what it gives alone, whatever stands behind its end.

In torch outputs, losses, penalties, records, metrics and gradients; in ONNX Runtime outputs and gates, at lengths that
were never traced.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from modgraph_runtime import Bundle

import modgraph
from modgraph.backends.onnx import deterministic
from modgraph.backends.torch import Model
from modgraph.data import Arrays
from modgraph.data.batches import batch_of
from modgraph.data.declaration import check
from modgraph.ir import Graph, Result
from modgraph.metrics.accumulators import Accumulators
from modgraph.metrics.metrics import evaluate
from tests.examples import GRU
from tests.ordinary_run import some_examples
from tests.traces import Trace

RMN: dict[str, Any] = {"tasks": ["a", "b"], "features": 4, "state": 3, "cells": 2, "hidden": 3, "layers": [3, 2]}
RMN |= {"widths": [4], "policies": [3], "decoders": [3], "shares": [0.2, 0.3]}
TAGGER = """
model tagger() {
  input  words: token[time, 7]
  input  seen: float[time, 2]
  target tag: class[time, 3]
  target far: float[time, 2]
  target whole: float[2]
  pool   expert[3] = linear(8) -> relu -> linear(6)
  router gate = linear(2)
  x = (words -> embedding(4), seen) -> concat -> attention(2) -> layer_norm
  h = x -> expert by gate
  scores = h -> linear(3)
  output scores
  output late = h -> last(axis="time")
  loss cross_entropy(scores, tag)
  loss gaussian(h -> linear(2), far, variance=0.5)
  loss mse(h -> mean(axis="time") -> linear(2), whole)
  loss penalty = (gate.gates -> max(axis=expert)) - 0.5 -> relu -> batch_mean("time")
}
"""
SMALL = {**RMN, "tasks": ["a"], "classes": [3], "layers": [2], "every_step": True}
SPECS = {
    "mt_rmn at every step": lambda: modgraph.load("specs/mt_rmn.mod", **RMN, classes=[3, 0], every_step=True),
    "mt_rmn with representations": lambda: modgraph.load("specs/mt_rmn.mod", **RMN, classes=[3, 0], represented=2),
    "mt_rmn of one layer": lambda: modgraph.load("specs/mt_rmn.mod", **SMALL),
    "a scan with a router": lambda: modgraph.loads(GRU, k=2),
    "attention and experts": lambda: modgraph.loads(TAGGER),
}
PENALTIES = ("loss.penalty", ".loss.encoder", ".loss.decoders")  # means over steps, of which the batch has one


@cache
def model_of(name: str) -> Model:
    """With random weights, large enough for choices of all kinds."""
    model = SPECS[name]().build(seed=0).double().eval()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape, dtype=weight.dtype, generator=generator) * 0.7)
    return model


def arrays_of(graph: Graph, lengths: list[int], filling: float) -> Arrays:
    """Examples of these lengths, their padding two steps longer than it need be."""
    rng, steps, found = np.random.default_rng(len(lengths)), max(lengths) + 2, {}
    mask = np.arange(steps) < np.array(lengths)[:, None]
    for name, type_ in {**graph.input_types, **graph.target_types}.items():
        shape = (len(lengths), *(steps if isinstance(each, str) else each for each in type_.dimensions))
        if type_.dtype == "length":
            found[name] = np.array(lengths)
        elif type_.size is not None:
            found[name] = rng.integers(0, type_.size, shape)
        else:
            values = rng.standard_normal(shape)
            within = mask[(..., *[None] * (values.ndim - 2))] if type_.padded else np.ones(shape, bool)
            found[name] = np.where(within, values, 0.0)
    checked = check(Arrays(found), graph, "these")
    filled = {name: _filled(each, mask, filling) for name, each in checked.values.items() if name in checked.padded}
    return replace(checked, values={**checked.values, **filled})


def _filled(array: np.ndarray[Any, Any], mask: np.ndarray[Any, Any], filling: float) -> np.ndarray[Any, Any]:
    return np.where(mask[(..., *[None] * (array.ndim - 2))], array, filling) if array.dtype.kind == "f" else array


def unpadded_part(graph: Graph, result: Result, value: torch.Tensor, length: int) -> torch.Tensor:
    """What one example's value [...] holds before its end."""
    at = graph.type_of(result).position("time")
    return value if at is None else value.narrow(at, 0, length)


def doubled(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: each.double() if each.is_floating_point() else each for name, each in batch.items()}


lengths_of_batches = st.lists(st.integers(0, 6), min_size=1, max_size=5)
fillings = st.sampled_from([torch.nan, torch.inf, -torch.inf, 7.0])


@pytest.mark.some(2)
@pytest.mark.parametrize("name", [name for name in SPECS if name != "mt_rmn of one layer"])
@given(lengths_of_batches, fillings)
@some_examples(12)
def test_a_sequence_gives_in_a_batch_what_it_gives_by_itself(name: str, lengths: list[int], filling: float) -> None:
    model = model_of(name)
    graph, arrays = model.graph, arrays_of(model.graph, lengths, filling)
    wanted = {**graph.outputs, **graph.losses, **model.routing_results()}
    together = dict(
        zip(wanted, model.results(doubled(batch_of(arrays, slice(None))), (*wanted.values(),)), strict=True)
    )
    apart = []
    for at in range(len(lengths)):
        batch = doubled(batch_of(arrays, np.array([at])))
        apart.append(dict(zip(wanted, model.results(batch, (*wanted.values(),)), strict=True)))
    for key, result in wanted.items():
        if graph.type_of(result).per == "batch":
            if key.endswith(PENALTIES) or key == "penalty":
                mean = sum(each[key].item() * n for each, n in zip(apart, lengths, strict=True)) / max(sum(lengths), 1)
                assert together[key].item() == pytest.approx(mean, abs=1e-12), key
            continue
        for at, length in enumerate(lengths):
            found, expected = (
                unpadded_part(graph, result, each[key][i], length) for each, i in ((together, at), (apart[at], 0))
            )
            torch.testing.assert_close(
                found, expected, rtol=1e-10, atol=1e-12, msg=lambda text, key=key: f"{key}: {text}"
            )
            assert found.isfinite().all(), key


@pytest.mark.parametrize("name", SPECS)
def test_metrics_and_statistics_of_a_split_are_those_of_its_sequences(name: str) -> None:
    model, lengths = model_of(name), [5, 0, 2, 6, 1, 2]
    arrays = arrays_of(model.graph, lengths, torch.nan)
    together = evaluate(model, arrays)
    apart = Accumulators.merge(evaluate(model, arrays.take(np.array([at]))) for at in range(len(lengths)))
    over_batch = {key for key, result in model.graph.losses.items() if model.graph.type_of(result).per == "batch"}
    for key in together.sums.keys() - over_batch - {"total_loss"}:
        assert together.sums[key] == pytest.approx(apart.sums[key], rel=1e-9, abs=1e-9), key
        assert together.weights[key] == apart.weights[key], key


@given(lengths_of_batches, fillings)
@some_examples(15)
def test_gradients_of_a_batch_are_the_mean_of_those_of_its_sequences(lengths: list[int], filling: float) -> None:
    model = model_of("attention and experts")
    arrays, losses = arrays_of(model.graph, lengths, filling), model.graph.losses
    per_example = tuple(each for each in losses.values() if model.graph.type_of(each).per == "example")

    def gradients(rows: Any) -> list[torch.Tensor]:
        found = model.train().results(doubled(batch_of(arrays, rows)), per_example)
        total = torch.stack([each.mean() for each in found]).sum()
        return list(torch.autograd.grad(total, [*model.parameters()], materialize_grads=True))

    together = gradients(slice(None))
    apart = [gradients(np.array([at])) for at in range(len(lengths))]
    model.eval()
    for found, *each in zip(together, *apart, strict=True):
        torch.testing.assert_close(found, torch.stack(each).mean(0), rtol=1e-9, atol=1e-11)


@pytest.mark.slow
@pytest.mark.usefixtures("trace_once")
def test_a_bundle_gives_a_sequence_in_a_batch_what_it_gives_by_itself(tmp_path: Path, trace_once: Trace) -> None:
    model = model_of("mt_rmn of one layer").float()
    report = modgraph.export(model, tmp_path / "rmn.onnx", routing=True)
    bundle, inference = Bundle(tmp_path / "rmn.onnx"), deterministic(model)
    graph = inference.graph
    results = {**graph.outputs, **inference.routing_results()}
    for lengths in ([1], [13, 2, 1], [3, 0, 17, 9, 3, 6, 2]):
        assert {"time": max(lengths)} not in report.verified.lengths
        arrays = arrays_of(model.graph, lengths, 7.0)
        inputs = [arrays.read(rows) for rows in (slice(None), *(np.array([at]) for at in range(len(lengths))))]
        feeds = [{name: each for name, each in rows.items() if name in bundle.inputs} for rows in inputs]
        together, *apart = [bundle.run(rows, routing=True) for rows in feeds]
        theirs = inference.compute({k: torch.from_numpy(v) for k, v in feeds[0].items()}, losses=False, routing=True)
        for key, value in {**theirs.outputs, **theirs.routing}.items():
            for at, length in enumerate(lengths):
                found, single, expected = (
                    unpadded_part(graph, results[key], torch.as_tensor(each), length)
                    for each in (together[key][at], apart[at][key][0], value[at])
                )
                torch.testing.assert_close(found, single, rtol=1e-5, atol=1e-6)
                torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    model.double()
