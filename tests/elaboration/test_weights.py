"""Learned arrays: `weight w: float[…] = normal(…)`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import modgraph
from modgraph.diagnostics import ModgraphError
from modgraph.ir import from_json, grow, to_json
from modgraph.ir.text.parse import parse_text

SPEC = """
model m(width=6) {
  pool   p[3] = linear(4) -> tanh
  input  words: token[time, 20]
  input  x: float[time, width]
  weight weight: float[p, width] = normal(0.5)
  weight over: float[width] = zeros
  scores = (x + over, weight) -> contract
  y = x -> p by (scores -> softmax) over p
  repeat blocks[i] in 0..2 {
    weight scale: float[4] = ones
    y = y * scale
  }
  scan x as v with h: float[width] {
    weight moved: float[width] = normal(1)
    h = v * moved + h * weight -> sum(axis=p)
    yield h
  } as states
  output y
  output states
}
"""
SHAPES = {
    "weight": (3, 6),
    "over": (6,),
    "blocks.0.scale": (4,),
    "blocks.1.scale": (4,),
    "states.moved": (6,),
}


def test_it_is_one_array_for_every_example_and_step() -> None:
    model = modgraph.loads(SPEC).build(seed=1).double()
    weights = {name: each.detach() for name, each in model.named_parameters()}
    assert {name: tuple(each.shape) for name, each in weights.items() if not name.startswith("p.")} == SHAPES
    assert (weights["over"] == 0).all() and (weights["blocks.0.scale"] == 1).all()
    x = torch.randn(2, 5, 6, dtype=torch.float64)
    found = model.compute({"x": x, "words": torch.zeros(2, 5, dtype=torch.long)}).outputs
    gates = ((x + weights["over"]) @ weights["weight"].T).softmax(-1)
    messages = model.get_submodule("p").all(x)
    torch.testing.assert_close(found["y"], (messages * gates.unsqueeze(-1)).sum(-2))
    h = torch.zeros(2, 6, dtype=torch.float64)
    for step in range(5):
        h = 3 * x[:, step] * weights["states.moved"] + h * weights["weight"].sum(0)
    torch.testing.assert_close(found["states"][:, -1], h)


@pytest.mark.slow
def test_it_learns_is_stored_and_is_exported(tmp_path: Path) -> None:
    program = modgraph.loads(SPEC)
    assert from_json(to_json(program.ir)) == program.ir == parse_text(str(program.ir))
    model = program.build()
    model.compute({"x": torch.randn(2, 5, 6), "words": torch.zeros(2, 5, dtype=torch.long)}).outputs[
        "y"
    ].sum().backward()
    assert model.get_parameter("weight").grad is not None
    modgraph.export(model, tmp_path / "m.onnx")


def test_it_grows_with_the_pool_whose_axis_it_has() -> None:
    grown = grow(modgraph.loads(SPEC).ir, "p", 2)
    shapes = {name: tuple(each.shape) for name, each in modgraph.backends.torch.build(grown).named_parameters()}
    assert shapes["weight"] == (5, 6)


def test_in_a_frozen_body_it_stays() -> None:
    text = "model m() { input x: float[4] frozen { weight w: float[4] = normal(1) } y = x * w -> linear(2) output y }"
    model = modgraph.loads(text).build()
    assert [name for name, each in model.named_parameters() if not each.requires_grad] == ["w"]


def test_a_module_of_a_pool_has_its_own() -> None:
    block = "block scaled() { input x: float[4] weight w: float[4] = normal(1) y = x * w output y }"
    model = modgraph.loads(
        f"{block} model m() {{ input x: float[4] pool p[2] = scaled() y = x -> p output y }}"
    ).build()
    x = torch.randn(3, 4)
    expected = torch.stack([x * model.get_parameter(f"p.{j}.scaled.w") for j in range(2)], 1)
    torch.testing.assert_close(model(x), expected)


MISTAKES = {
    "weight w: float[time] = zeros": "fixed length",
    "weight w: class[3] = zeros": "fixed length",
    "weight w: float[4] = 3": "error[MG",
    "weight w: float[4]": 'expected "="',
    "weight w: float[4] = zeros weight w: float[4] = zeros": "declared twice",
    "weight: float[4] = zeros": "found",
}


@pytest.mark.parametrize("statement", MISTAKES)
def test_mistakes_are_reported(statement: str) -> None:
    with pytest.raises(ModgraphError) as caught:
        modgraph.loads(f"model m() {{ input x: float[4] {statement} y = x -> relu output y }}")
    assert MISTAKES[statement] in str(caught.value)


def test_before_all_inputs_there_is_none() -> None:
    with pytest.raises(ModgraphError, match="declare it after the inputs"):
        modgraph.loads("model m() { weight w: float[4] = zeros input x: float[4] y = x * w output y }")


def test_words_of_the_language_that_came_later_are_names_still() -> None:
    text = """model m() {
      input weight: float[4]
      moved = weight -> relu
      over, where = (weight, moved) -> concat -> split(2)
      weight = over * where
      over = weight - moved
      output over
    }"""
    assert modgraph.loads(text).ir.outputs.keys() == {"over"}
