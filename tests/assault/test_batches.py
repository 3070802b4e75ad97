"""An example gives the same alone and among others, in torch and ONNX Runtime: outputs within 1e-5, equal choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from modgraph_runtime import Bundle
from torch import Tensor

import modgraph
from modgraph.backends.onnx import deterministic
from modgraph.backends.torch import Model
from modgraph.declare import Role
from modgraph.ir import Graph, RouteNode
from tests.assault.examples_at_random import Batch, batch_for, mask_padding, single_example, with_rubbish
from tests.assault.written_specs import ALL, spec_of

BATCHES = (2, 7, 64)
CLOSE = 1e-5
SMALL = ("specs/modular_networks", "tests/papers/multi_gate")
Computed = Callable[[Batch], Mapping[str, Tensor]]


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in SMALL else pytest.mark.slow) for name in ALL])
def test_an_example_is_the_same_by_itself_and_among_others(name: str, tmp_path: Path) -> None:
    graph = spec_of(name).ir
    results = graph.outputs | graph.records()
    model = spec_of(name).build(seed=3).eval()
    modgraph.export(model, tmp_path / "m.onnx", routing=True)
    ways = {"torch": by_torch(deterministic(model)), "ONNX Runtime": by_bundle(Bundle(tmp_path / "m.onnx"))}
    for size in BATCHES:
        batch = with_rubbish(graph, batch_for(graph, size, name), name)
        for way, compute in ways.items():
            together = compute(batch)
            for at in range(min(size, 7)):
                single = single_example(graph, batch, at)
                for each, value in compute(single).items():
                    place, type_ = f"{way}, {each} of example {at} of {size}", graph.type_of(results[each])
                    unpadded = mask_padding(graph, type_, single, value)[0]
                    among = mask_padding(graph, type_, batch, together[each])[at]
                    hold(unpadded, among, place, exactly=each in choices(graph))


def by_torch(model: Model) -> Computed:
    def compute(batch: Batch) -> Mapping[str, Tensor]:
        inputs = {name: value for name, value in _single(batch).items() if name in model.graph.input_types}
        with torch.no_grad():
            found = model.compute(inputs, losses=False, routing=True)
        return found.outputs | found.routing

    return compute


def by_bundle(bundle: Bundle) -> Computed:
    def compute(batch: Batch) -> Mapping[str, Tensor]:
        arrays = {name: value.numpy() for name, value in _single(batch).items() if name in bundle.inputs}
        return {name: torch.from_numpy(np.asarray(value)) for name, value in bundle.run(arrays, routing=True).items()}

    return compute


def _single(batch: Batch) -> Batch:
    return {name: value.float() if value.is_floating_point() else value for name, value in batch.items()}


def hold(single_example: Tensor, among: Tensor, place: str, exactly: bool) -> None:
    """One example's value alone and its part of that in a batch, padding left out."""
    among = among[tuple(map(slice, single_example.shape))]
    if exactly:
        assert torch.equal(single_example, among), f"{place}: another choice"
    elif single_example.numel():
        assert (single_example - among).abs().max() <= CLOSE * max(1.0, float(single_example.abs().max())), place


def choices(graph: Graph) -> set[str]:
    """The records that are choices."""
    found = set()
    for part in graph.parts():
        for route in part.graph.nodes_of(RouteNode):
            for record in part.graph.router_of(route).router.records:
                if record.role in (Role.CHOICE, Role.SLOTS):
                    found.add(f"{route.name}.{record.name}")
    return found
