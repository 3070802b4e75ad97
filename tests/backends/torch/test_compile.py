"""`torch.compile` takes every spec as one graph, in training too, and computes the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._inductor.config
from torch import Tensor, nn
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.testing import CompileCounterWithBackend

import modgraph
from modgraph.backends.torch import Model
from modgraph.training.compiled import OPTIONS

# Every spec, as small as it goes: a trace takes as long as the graph has nodes, whatever their widths.
SPECS: dict[str, dict[str, Any]] = {
    "gmoe": {"classes": 3, "dim": 8, "depth": 1, "heads": 2, "experts": 2, "sparse": [0], "size": 8, "patch": 4},
    "gmoe_digits": {"dim": 8, "depth": 1, "heads": 2, "experts": 2, "sparse": [0]},
    "modular_networks": {},
    "modular_networks_images": {"size": 8, "modules": 2, "channels": 2, "hidden": 3},
    "modular_networks_lm": {"vocabulary": 9, "width": 3, "hidden": 3, "modules": 2},
    "mt_rmn": {"tasks": ["a"], "classes": [3], "features": 2, "state": 2, "cells": 1, "layers": [2, 1], "widths": [5]},
    "sema": {"dim": 8, "depth": 1, "heads": 2, "adapters": [2], "expands": [0], "keeps": 3, "size": 8, "patch": 4},
    "sema_backbone": {"depth": 1},
    "smn": {"iterations": 2},
    "smn_parity": {"iterations": 2},
    "zoo/expert_choice": {"depth": 1, "dim": 8},
    "zoo/mixtral": {"vocab_size": 9, "num_hidden_layers": 1, "num_local_experts": 3},
    "zoo/soft_moe": {"depth": 1, "dim": 8},
    "zoo/switch": {"vocabulary": 9, "experts": 3},
}


class Losses(nn.Module):
    """What a model makes of a batch, as one module."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        computed = self.model.compute(batch)
        return computed.outputs | computed.losses


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    """Nothing compiled before or behind; a second compilation is a mistake."""
    torch._dynamo.reset()
    with torch._dynamo.config.patch(error_on_recompile=True):
        yield
    torch._dynamo.reset()


def small(name: str, lowering: str | None = None) -> Model:
    return modgraph.load(f"specs/{name}.mod", **SPECS[name]).build(lowering=lowering).train()


def batch_of(model: Model, seed: int, size: int = 3, steps: int = 2) -> dict[str, Tensor]:
    """Inputs and targets, so many steps along axes of any length."""
    generator, found = torch.Generator().manual_seed(seed), {}
    for name, type_ in {**model.graph.input_types, **model.graph.target_types}.items():
        shape = (size, *(axis.size or steps for axis in type_.shape))
        if type_.size is not None:
            found[name] = torch.randint(type_.size, shape, generator=generator)
        elif type_.dtype != "length":
            found[name] = torch.randn(shape, generator=generator)
    return found


def step(module: Callable[[Any], Any], model: Model, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """What a step computes, and its gradients, noise drawn as at any other time."""
    model.zero_grad()
    torch.manual_seed(0)
    found = module(batch)
    torch.stack([found[name].mean() for name in model.graph.losses]).sum().backward()
    gradients = {f"{name}.grad": each.grad for name, each in model.named_parameters() if each.grad is not None}
    return {name: each.detach().clone() for name, each in (found | gradients).items()}


def compare(model: Model, backend: str, seeds: int, atol: float, **sizes: int) -> int:
    """Hold compiled steps of a model against plain ones; how many graphs there were."""
    counter, plain = CompileCounterWithBackend(backend), Losses(model)
    compiled = torch.compile(plain, backend=counter, fullgraph=True)
    for seed in range(seeds):
        batch = batch_of(model, seed, **sizes)
        expected, found = step(plain, model, batch), step(compiled, model, batch)
        assert expected.keys() == found.keys()
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, atol=atol, rtol=1e-4 if atol else 0, msg=name)
    return int(counter.frame_count)


SOME = ("gmoe_digits", "modular_networks", "modular_networks_lm", "smn")  # one for each kind of router, and a scan


@pytest.mark.some(2)
@pytest.mark.parametrize("name", [pytest.param(each, marks=[] if each in SOME else pytest.mark.slow) for each in SPECS])
def test_every_spec_is_one_graph_in_training(name: str) -> None:
    assert compare(small(name, "masked"), "eager", seeds=2, atol=1e-6 if name == "mt_rmn" else 0) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("name", "lowering"), [("modular_networks", "grouped"), ("modular_networks_lm", "gathered")])
def test_sparse_lowerings_are_one_graph_for_every_choice(name: str, lowering: str) -> None:
    assert compare(small(name, lowering), "aot_eager", seeds=3, atol=0) == 1


@pytest.mark.slow
def test_another_batch_size_compiles_once_more_and_no_size_after_it() -> None:
    model = small("modular_networks")
    counter = CompileCounterWithBackend("eager")
    plain = Losses(model)
    compiled = torch.compile(plain, backend=counter, fullgraph=True)
    with torch._dynamo.config.patch(error_on_recompile=False):
        for size in (3, 4, 6):
            batch = batch_of(model, seed=size, size=size)
            expected, found = step(plain, model, batch), step(compiled, model, batch)
            for name, value in expected.items():
                torch.testing.assert_close(found[name], value, atol=0, rtol=0, msg=name)
    assert counter.frame_count == 2


def plain_compile(model: Model, train: bool, backend: str = "eager", seeds: int = 3) -> CompileCounterWithBackend:
    """Hold `torch.compile(model)`, with no other setting, against the model; torch may compile nothing twice."""
    counter = CompileCounterWithBackend(backend)
    compiled: Any = torch.compile(model.train(train), backend=counter)
    for seed in range(seeds):
        batch = batch_of(model, seed)
        given = {name: each for name, each in batch.items() if name in model.graph.input_types}
        torch.manual_seed(seed)
        expected = model(**given)
        torch.manual_seed(seed)
        torch.testing.assert_close(compiled(**given), expected, atol=1e-6, rtol=1e-5)
    return counter


def test_compiling_is_one_graph_without_any_setting_for_every_choice() -> None:
    for train in (False, True):
        torch._dynamo.reset()
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # nor does torch say anything
            counter = plain_compile(small("modular_networks"), train)
        assert counter.frame_count == 1, "the graph breaks, or a batch compiles anew"


@pytest.mark.slow
def test_what_calls_a_model_breaks_at_most_around_it() -> None:
    """A function of the user's is a graph before the model, one of the model, and one behind it."""
    model = small("modular_networks")
    counter = CompileCounterWithBackend("aot_eager")

    @torch.compile(backend=counter)
    def loss_of(batch: dict[str, Tensor]) -> Tensor:
        batch = {name: each * 1 for name, each in batch.items()}
        return model.compute(batch).loss * 2

    for seed in range(3):
        loss = loss_of(batch_of(model, seed))
        torch.manual_seed(seed)
        loss.backward()
    assert counter.frame_count <= 3


def test_settings_of_torch_are_as_they_were() -> None:
    config = torch._dynamo.config
    plain_compile(small("modular_networks"), train=False, seeds=1)
    assert not config.capture_scalar_outputs and not config.capture_dynamic_output_shape_ops


@pytest.mark.slow
@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("name", SPECS)
def test_every_spec_compiles_to_one_graph_without_any_setting(name: str, train: bool) -> None:
    with torch._dynamo.config.patch(error_on_recompile=False):  # of states that move: without and with what is left
        counter = plain_compile(small(name), train)
    assert counter.frame_count <= (2 if train and small(name).moved_states.results else 1)


@pytest.mark.slow
def test_padding_is_traced_too() -> None:
    model = small("mt_rmn").eval()
    plain, batch = Losses(model), batch_of(model, 0)
    batch["time_length"] = torch.tensor([2, 1, 0])
    with torch.no_grad():
        found = torch.compile(plain, backend="eager", fullgraph=True)(batch)
        for name, value in plain(batch).items():
            torch.testing.assert_close(found[name], value, atol=1e-6, rtol=1e-5, msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("lowering", [None, "masked"])
@pytest.mark.parametrize("name", SPECS)
def test_every_spec_learns_the_same_where_gradients_are_traced(name: str, lowering: str | None) -> None:
    assert compare(small(name, lowering), "aot_eager", seeds=2, atol=1e-6 if name == "mt_rmn" else 0) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["smn", "sema_backbone", "gmoe_digits", "modular_networks_images", "zoo/switch"])
def test_kernels_compute_the_same(name: str) -> None:
    with torch._inductor.config.patch(OPTIONS["inductor"]):
        assert compare(small(name), "inductor", seeds=2, atol=1e-5) == 1


NUMBERS = "h: float[6] { h = (v -> sigmoid) * h + v yield h }"
DELTA = """s: float[head=2, 3, 3] {
  q, k, u = v -> linear(18) -> unmerge([2, 9], into=["head", ""]) -> split(3)
  s = (k -> sigmoid -> new_axis(at=-2)) * s
  s = s + ((u - ((s, k) -> contract)) -> new_axis(at=-1)) * (k / 9 -> new_axis(at=-2))
  yield (s, q) -> contract }"""


@pytest.mark.some(1)
@pytest.mark.parametrize("body", [NUMBERS, pytest.param(DELTA, marks=pytest.mark.slow)], ids=["numbers", "delta rule"])
def test_linear_recurrences_are_ops_of_the_graph_however_many_steps(body: str) -> None:
    text = f"model m() {{ input x: float[time, 6] scan x -> linear(6) as v with {body} as y output y }}"
    model = modgraph.loads(text).build()
    nodes = []
    for steps in (48, 96):

        def keep(graph: torch.fx.GraphModule, inputs: Any) -> Any:
            nodes.append(len(graph.graph.nodes))
            return graph

        torch._dynamo.reset()
        compiled = torch.compile(model, backend=aot_autograd(fw_compiler=keep, bw_compiler=keep), fullgraph=True)
        x = torch.randn(2, steps, 6)
        found = []
        for function in (model, compiled):
            y = function(x)
            found.append([y, *torch.autograd.grad(y.square().sum(), [*model.parameters()])])
        for ours, theirs in zip(*found, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    assert nodes[:2] == nodes[2:], "steps are unrolled"
