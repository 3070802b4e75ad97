"""Learned arrays, and what is derived from them, in PyTorch source: a value lives until its last reader has read it."""

from __future__ import annotations

import pytest

import modgraph
from tests.backends.torch.test_source import check

SPECS = {
    "read again after another value of a like name": """
        weight w: float[4] = normal(0.5)
        a = w -> sigmoid
        b = (a, x -> mean) -> concat -> linear(4)
        y = x * a
        a2 = y -> linear(4)
        y = a2 * a + b""",
    "given to each example, then read alone": """
        weight w: float[4] = normal(0.5)
        a = w -> sigmoid
        b = (a, x -> mean) -> concat -> linear(4)
        c = a * 2
        y = x * c + b * a""",
    "bound again while the first is still to be read": """
        weight w: float[4] = normal(0.5)
        h = w -> tanh
        y = x + h
        k = h * h
        h = (h, k) -> concat -> linear(4)
        y = y * h + k""",
    "given numbers read alone and for each example": """
        constant c: float[4] = [1, 2, 0.5, -1]
        c2 = (c, x -> mean) -> concat -> linear(4)
        c = 1 - c
        y = x * c + c2 * c""",
    "given numbers beside a learned array": """
        constant c: float[4] = [1, 2, 0.5, -1]
        weight w: float[4] = normal(0.5)
        y = x * ((c, w) -> concat -> linear(4)) + c""",
    "an array in parts": """
        weight w: float[4] = normal(0.5)
        a, b = w -> split(2)
        c = (b, a * a) -> concat
        d = (a, x -> mean) -> concat -> linear(4)
        y = x * c + d""",
    "in a repeat": """
        weight w: float[4] = normal(0.5)
        repeat round[i] in 0..2 {
          a = w -> sigmoid
          v = x -> linear(4)
          a = a * a
          x = v * a + (a -> relu)
          w = w * a
        }
        y = x * w""",
    "in a repeat whose rounds have classes": """
        weight w: float[4] = normal(0.5)
        u = w * w
        repeat round[i] in 0..2 {
          weight s: float[4] = normal(0.5)
          t = s * u
          x = (x -> linear(4) -> relu -> linear(4)) * t + (t -> sigmoid) * s
        }
        y = x * u""",
    "across blocks": """
        weight w: float[4] = normal(0.5)
        a = x -> mixed(4)
        b = x + w -> mixed(4)
        y = a * b + w""",
    "in a scan": """
        weight w: float[4] = normal(0.5)
        u = w -> tanh
        scan x as e with h: float[4] {
          g = (e -> linear(4)) * u
          u2 = u * w
          h = h * u2 + g
          yield h * u2
        } as s
        y = s * u + w""",
    "beside a state": """
        weight w: float[4] = normal(0.5)
        state s: float[4] = ones
        a = w * s
        b = (w, a) -> concat -> linear(4)
        y = x * b + a""",
    "in the modules of a pool": """
        pool p[3] = mixed(4)
        router r = noisy_top_k(2)
        y = x -> p by r""",
}
MIXED = """
block mixed(dim) {
  input x: float[n, dim]
  weight w: float[dim] = normal(0.5)
  u = w * w
  v = u * u + x -> linear(dim)
  w = w -> sigmoid
  z = v * w + u
  output z
}
"""


@pytest.mark.some(6)
@pytest.mark.parametrize("name", SPECS)
def test_values_derived_from_arrays_are_read_as_often_as_the_spec_says(name: str) -> None:
    ends = "input x: float[3, 4] target goal: float[3, 4]", "output y loss mse(y, goal)"
    check(modgraph.loads(f"{MIXED} model m() {{ {ends[0]} {SPECS[name]}\n {ends[1]} }}").build(seed=1))
