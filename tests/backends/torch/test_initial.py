"""Starts of weights that depend on the shape of a matrix: against torch's own, as source, and kept by programs."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

import modgraph
from modgraph import ModgraphError
from modgraph.backends.torch.initial import make_generator
from modgraph.ir import from_json, to_json, weights_of
from tests.backends.torch.test_source import check

SPEC = """model m() {
  input x: float[6]  input image: float[2, 5, 5]
  pool p[3] = linear(4, init=orthogonal(2))
  weight w: float[p, 4, 6] = orthogonal
  weight v: float[2, 3, 4, 6] = orthogonal(0.5)
  weight u: float[3, 5, 6] = xavier_uniform
  a = (x, w) -> contract  b = (x, v) -> contract  c = (x, u) -> contract  d = x -> p -> mean
  e = image -> conv(4, groups=2, init=xavier_normal(0.5))  f = x -> linear(9, init=xavier_uniform)
  output a output b output c output d output e output f
}"""


def test_weights_start_as_those_of_torch_from_the_seed_and_their_name() -> None:
    weights = modgraph.loads(SPEC).build(seed=3).state_dict()
    expected = {
        "p.1.linear.weight": lambda tensor, random: nn.init.orthogonal_(tensor, 2, generator=random),
        "e.conv.weight": lambda tensor, random: nn.init.xavier_normal_(tensor, 0.5, generator=random),
        "f.linear.weight": lambda tensor, random: nn.init.xavier_uniform_(tensor, generator=random),
    }
    for name, start in expected.items():
        fresh = start(torch.empty_like(weights[name]), make_generator(3, name))
        torch.testing.assert_close(weights[name], fresh, msg=name)


def test_outer_axes_of_a_learned_array_stack_matrices() -> None:
    weights = modgraph.loads(SPEC).build(seed=3).state_dict()
    for name, gain in (("w", 1.0), ("v", 0.5)):
        rows = weights[name] @ weights[name].mT / gain**2
        torch.testing.assert_close(rows, torch.eye(4).expand_as(rows), atol=1e-6, rtol=0, msg=name)
        assert not torch.equal(weights[name][0], weights[name][1]), "each matrix has its own"
    bound = (6 / (5 + 6)) ** 0.5
    assert 0.9 * bound < weights["u"].abs().max() <= bound, "fans are the last two axes"


def test_a_start_is_kept_in_text_and_json_and_printed_as_source() -> None:
    program = modgraph.loads(SPEC)
    initial = {each.name: (str(each.initial), each.scale) for each in weights_of(program.ir)}
    again = from_json(json.loads(json.dumps(to_json(program.ir))))
    assert {each.name: (str(each.initial), each.scale) for each in weights_of(again)} == initial
    assert "init orthogonal(2.0)" in str(program.ir) and "init xavier_normal(0.5)" in str(program.ir)
    check(program.build(seed=1))


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ("weight w: float[6] = orthogonal y = x * w", r"needs two axes or more, and the weight has the shape \[6\]"),
        ("y = x -> scale(init=xavier_normal)", r"needs two axes or more, and the weight has the shape \[6\]"),
        ("y = x -> linear(2, init=orthogonal(-1))", "unknown initialiser"),
        ("y = x -> linear(2, init=xavier_uniform(1, 2))", "unknown initialiser"),
        ("y = x -> linear(2, init=glorot)", "xavier_normal or xavier_uniform"),
    ],
)
def test_what_does_not_fit_is_reported(weight: str, words: str) -> None:
    with pytest.raises(ModgraphError, match=words):
        modgraph.loads(f"model m() {{ input x: float[6] {weight} output y }}")
