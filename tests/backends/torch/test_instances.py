"""A model has the structure of its spec: an instance for each call, under the path of its weights."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import modgraph
from modgraph.backends.report import random_batch
from modgraph.backends.torch import Model
from modgraph.backends.torch.instance import Instance, units
from modgraph.ir import Result
from modgraph.passes import build_training_passes, optimise
from tests.examples import TRANSFORMER

LINES = {"smn": 30, "gmoe": 80, "sema": 120, "mt_rmn": 200}


def small_gmoe(lowering: str | None = None) -> Model:
    return modgraph.load("specs/gmoe.mod", dim=12, depth=9, heads=2, classes=3, size=32).build(lowering=lowering)


@pytest.mark.some(2)
@pytest.mark.parametrize("name", LINES)
def test_a_printed_model_reads_like_its_spec(name: str) -> None:
    graph = modgraph.load(f"specs/{name}.mod").ir
    with torch.device("meta"):
        lines = str(Model(graph, optimise(graph, build_training_passes()))).splitlines()
    assert len(lines) <= LINES[name], "\n".join(lines)


def test_rounds_and_modules_are_found_by_their_keys() -> None:
    model = small_gmoe()
    assert model.blocks[8].expert[3] is model.get_submodule("blocks.8.expert.3")
    assert model["blocks"][0]["mlp"] is model.get_submodule("blocks.0.mlp")
    assert [type(each).__name__ for each in model.blocks] == ["Blocks"] * 9
    named = {name for name, _ in model.named_modules()}
    assert {"patches", "blocks.8", "blocks.8.gate", "blocks.8.expert.5", "blocks.7.mlp"} <= named
    text = """model m() { input x: float[4]
      repeat side[i] in ["left", "right"] { x = x -> linear(4) -> relu } output x }"""
    model = modgraph.loads(text).build()
    assert isinstance(model.side["left"], Instance)
    assert repr(model).count("2 x Side(") == 1, "equal rounds are shown once"


@pytest.mark.some(3)
@pytest.mark.parametrize("lowering", [None, "grouped", "per_module", "masked"])
@pytest.mark.parametrize("train", [True, False])
def test_a_hook_on_a_round_sees_its_value(lowering: str | None, train: bool) -> None:
    model = small_gmoe(lowering).train(train)
    batch, seen = random_batch(model), list[Any]()
    handle = model.blocks[8].register_forward_hook(lambda module, operands, value: seen.append(value))
    graph = model.computed
    value = next(each for each in reversed([*graph]) if each.name.startswith("blocks.8.") and graph.users(each.name))
    torch.manual_seed(0)
    model.compute(batch)
    torch.manual_seed(0)
    (expected,) = model.results(batch, (Result(value.name),))
    handle.remove()
    found = [each[0] if isinstance(each, tuple) else each for each in seen]
    assert len(found) == 2, "the round is called once by each call of the model"
    assert torch.equal(found[0], expected)
    outputs = [model.eval().compute(batch, losses=False).outputs["logits"]]
    model.blocks[8].register_forward_hook(lambda module, operands, value: torch.zeros_like(value))
    outputs.append(model.compute(batch, losses=False).outputs["logits"])
    assert not torch.equal(*outputs), "what a hook returns takes the place of the value"


def test_an_instance_is_called_by_itself_with_what_the_author_gives_it() -> None:
    text = """block twice(d) { input x: float[tokens, 4] y = x -> linear(d) -> mean(axis=-2) output y }
      model m() { input words: float[time, 4]  z = words -> twice(3)  output z }"""
    model = modgraph.loads(text).build().eval()
    words, lengths = torch.randn(2, 5, 4), torch.tensor([5, 2])
    assert torch.equal(model.z.twice(words), model(words))
    assert torch.equal(model.z.twice(words, lengths), model(words, lengths))


def test_calls_with_the_same_weights_are_one_instance() -> None:
    text = """block enc(d) { input x: float[4] y = x -> linear(d) -> relu output y }
      model m() { input a: float[4] input b: float[4] module e = enc(3) y = (a -> e) * (b -> e) output y }"""
    model, calls = modgraph.loads(text).build(), list[tuple[Tensor, ...]]()
    model.e.enc.register_forward_hook(lambda module, operands, value: calls.append(operands))
    a, b = torch.randn(2, 4), torch.randn(2, 4)
    assert torch.equal(model(a, b), torch.relu(model.e.enc.y.linear(a)) * torch.relu(model.e.enc.y.linear(b)))
    assert [each[0] is given for each, given in zip(calls, (a, b), strict=True)] == [True, True]


def test_rounds_in_a_scan_are_called_at_each_step() -> None:
    text = """model m() { input x: float[time, 4]
      scan x as e with s: float[4] {
        h = e + s
        repeat layer[i] in 0..2 { h = h -> linear(4) -> tanh }
        s = h
        yield h } as y
      output y }"""
    model, seen = modgraph.loads(text).build(), list[str]()
    for name, each in model.y.layer.named_children():
        each.register_forward_hook(lambda module, operands, value, name=name: seen.append(name))
    model(torch.randn(2, 3, 4))
    assert seen == ["0", "1"] * 3


def test_what_has_no_weights_follows_into_training_and_evaluation() -> None:
    text = """model m() { input x: float[100] repeat part[i] in 0..2 { x = x -> dropout(0.5) } output x }"""
    model = modgraph.loads(text).build()
    x = torch.ones(1, 100)
    assert not torch.equal(model(x), x)
    assert torch.equal(model.eval()(x), x)
    assert not torch.equal(copy.deepcopy(model).train()(x), x)


def test_units_are_rounds_and_blocks_and_no_modules_of_pools() -> None:
    model = small_gmoe()
    assert [*units(model)] == [*model.blocks]
    assert len({type(each).forward.__code__ for each in units(model)}) == 2, "each definition has code of its own"
    inside = modgraph.loads(TRANSFORMER).build()
    assert all(isinstance(each, Instance) and not isinstance(each, nn.ModuleList) for each in units(inside))
