"""Every name that the language takes works in all that is made of a spec, whatever it means to Python or torch."""

from __future__ import annotations

import builtins
import copy
import keyword
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from modgraph_runtime import Bundle
from torch import nn

import modgraph
from modgraph.backends.report import random_batch
from modgraph.backends.torch.regions import CompiledPool
from modgraph.backends.torch.source.text import reserve_names
from modgraph.syntax import keywords
from modgraph.training.stages import cut_weights, find_trained_weights, take_weights, whole_weights
from tests.backends.torch.test_source import check

PLAIN = "model m() { input x: float[4] pool p[2] = linear(4) router r = noisy_top_k(1) y = x -> p by r output y }"
EVERY, SLOW = 8, ("routers", "scans")
HARD = "type training forward train apply parameters self lambda None Named losses each states type_ _modules".split()
OF_CAPTURES = "placeholder get_attr call_function call_module call_method root graph nodes batch axis0 lifted_tensor_0"
OF_ONNX = "Identity If Scan Constant Gather val_0 main_graph"
OF_FILES = "x y slices step row_0 real sums messages common of_nothing gathered_modules renamed M _1 __ __x x_2 type__"


@cache
def names() -> list[str]:
    """What has a meaning to torch, Python, ONNX, or to the classes that modgraph makes models of."""
    model = modgraph.loads(PLAIN).build()
    pool = model.lookup("p")
    assert isinstance(pool, CompiledPool)
    ours = {*dir(model), *dir(pool), *dir(pool.expert(0)), *reserve_names()}
    others = [*OF_CAPTURES.split(), *OF_ONNX.split(), *OF_FILES.split()]
    found = {*dir(nn.Module()), *keyword.kwlist, *dir(builtins), *ours, *others}
    return sorted(name for name in found - {*keywords()} if name.isidentifier() and name.isascii())


def lines(template: str, names: list[str]) -> str:
    return "\n".join(template.format(name) for name in names)


MODEL = """
model m() {{
  input inp: float[3, 2]
  target goal: float[3, 2]
  pool of_all[2] = scale
  router any_of = every_module
  h = inp
  {}
  out = h -> linear(2)
  output out
  loss mse(out, goal)
}}
"""
BLOCK = "block {0}() {{ input h: float[n, d] o = h -> scale output o }}"
MIXED = "block mixed() {{ input v: float[d] h = v {} o = h -> relu output o }}"
SCAN = "scan h as e with s: float[2] {{ s = s + e -> scale yield s }} as {0} h = {0}"


def in_model(template: str) -> Callable[[list[str]], str]:
    """A model with these lines for each name."""
    return lambda names: MODEL.format(lines(template, names))


def blocks(names: list[str]) -> str:
    """A block of each name, but of those of the ops that the model uses."""
    names = [name for name in names if name not in ("scale", "linear")]
    return lines(BLOCK, names) + MODEL.format(lines("h = h -> {0}", names))


ROLES: dict[str, Callable[[list[str]], str]] = {
    "modules": in_model("module {0} = scale h = h -> {0}"),
    "bindings": in_model("{0} = h -> scale h = {0} + h"),
    "arrays": in_model("weight {0}: float[2] = ones h = h * {0}"),
    "states": in_model("state {0}: float[2] = ones next {0} = {0} * 1 h = h * {0}"),
    "repeats": in_model("repeat {0}[i] in 0..1 {{ h = h -> scale }}"),
    "named ops": in_model('h = h -> scale(name="{0}")'),
    "pools": in_model("pool {0}[1] = scale h = h -> {0} by any_of -> mean(axis=-2)"),
    "routers": in_model("router {0} = noisy_top_k(1) h = h -> of_all by {0} loss importance({0})"),
    "scans": in_model(SCAN),
    "blocks": blocks,
    "in the modules of a pool": lambda names: (
        MIXED.format(lines("{0} = h -> scale h = {0} -> relu", names))
        + MODEL.format("pool p[2] = mixed router r = noisy_top_k(1) h = h -> p by r")
    ),
    "in a scan": lambda names: MODEL.format(
        f"scan h as e with s: float[2] {{ v = e {lines('{0} = v -> scale v = {0} + s', names)} s = v yield v }} as h"
    ),
    "inputs": lambda names: (
        f"model m() {{ {lines('input {0}: float[2]', names)} o_ = {names[0]} -> scale"
        f" {lines('o_ = o_ + {0}', names)} output o_ }}"
    ),
    "outputs": lambda names: f"model m() {{ input inp: float[2] {lines('{0} = inp -> scale output {0}', names)} }}",
    "targets": lambda names: (
        f"model m() {{ input inp: float[2] {lines('target {0}: float[2]', names)} o = inp -> scale output o"
        f" {lines('loss {0}_ = mse(o, {0})', names)} }}"
    ),
}


def some_names(role: str) -> list[str]:
    """Names for one role: those that mean most, and each of the others in some role."""
    first = [*ROLES].index(role) % EVERY
    return HARD[:4] if role in SLOW else list(dict.fromkeys([*HARD, *names()[first::EVERY]]))


def check_names(role: str, names: list[str]) -> None:
    model = modgraph.loads(ROLES[role](names)).build(seed=1)
    check(model)
    inputs = tuple(value for name, value in random_batch(model).items() if name in model.graph.input_types)
    torch.export.export(model.eval(), inputs, strict=False)


@pytest.mark.some(1)
@pytest.mark.parametrize("role", ROLES)
def test_names_compute_are_captured_and_written_as_source(role: str) -> None:
    check_names(role, some_names(role))


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_every_name_computes_is_captured_and_is_written_as_source(role: str) -> None:
    check_names(role, names()[:: 4 if role in SLOW else 1])


TOGETHER = """
block forward() {
  input apply: float[d]
  modules = apply -> scale
  parameters = modules -> linear(2)
  output parameters
}
model double(train=2) {
  input type: float[time, 2]
  input self: float[time, 2]
  target lambda: float[time, 2]
  target class: class[2]
  weight half: float[2] = normal(0.5)
  state training: float[2] = ones
  module T_destination = linear(2)
  pool state_dict[2] = forward
  pool _modules[state_dict] = linear(2)
  router eval = noisy_top_k(1)
  next training = training * 0.5
  h = type * half + self -> T_destination -> state_dict by eval
  repeat to[i] in 0..train { module cpu = linear(2) h = h -> cpu -> relu }
  scan h as float with get_parameter: float[2] {
    __class__ = float + get_parameter -> linear(2)
    get_parameter = __class__ -> tanh
    yield get_parameter * training
  } as forward
  None = forward -> linear(2)
  Named = None -> mean(axis=-2)
  output None
  output Named
  loss mse(None, lambda)
  loss cross_entropy(Named, class)
}
"""


def test_such_names_are_exported_and_trained(tmp_path: Path) -> None:
    model = modgraph.loads(TOGETHER).build(seed=1)
    check(model)
    model.train().compute(random_batch(model)).loss.backward()
    torch.optim.SGD(model.parameters(), 0.1).step()
    other = modgraph.loads(TOGETHER).build(seed=2)
    other.load_state_dict(model.state_dict())
    assert {"half", "training.value", "T_destination.linear.weight"} <= other.state_dict().keys()
    modgraph.export(other, tmp_path / "model.onnx")
    batch = random_batch(other)
    found = Bundle(tmp_path / "model.onnx").run({name: batch[name].numpy() for name in ("type", "self")})
    with torch.no_grad():
        expected = other.eval()(batch["type"], batch["self"])
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value.numpy(), rtol=0, atol=1e-5, err_msg=name)


@pytest.mark.slow
def test_a_router_of_a_paper_whose_value_is_called_type_is_exported(tmp_path: Path) -> None:
    modgraph.export(modgraph.load("tests/papers/neural_interpreter.mod", steps=1).build(), tmp_path / "model.onnx")


GROWN = """
model m(hidden=4) {
  input x: float[4]
  target goal: float[2]
  weight type: float[4] = normal(0.5)
  pool half[3] = linear(hidden)
  grow half[1]
  frozen { weight eval: float[half, 4] = normal(0.5) }
  h = x + type
  y = h -> half by ((h, eval) -> contract) -> linear(2)
  output y
  loss mse(y, goal)
}
"""


def test_weights_of_such_names_are_trained_and_kept_in_parts() -> None:
    program = modgraph.loads(GROWN)
    model = program.build(seed=1)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    cut = cut_weights(model, program.ir)
    assert {"type", "eval[3:4]", "half.3.linear.weight"} <= find_trained_weights(model, cut).keys()
    take_weights(model, cut, {name: value + 1 for name, value in before.items()})
    kept = whole_weights(model, cut)
    assert kept.keys() == before.keys()
    assert all(torch.equal(kept[name], value + 1) for name, value in before.items())
    assert copy.deepcopy(program.build()).state_dict().keys() == before.keys()
