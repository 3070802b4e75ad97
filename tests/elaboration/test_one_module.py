"""One module of a pool, by a constant index: `x -> expert[0]`."""

from __future__ import annotations

import pytest
import torch

import modgraph
from modgraph.diagnostics import ModgraphError

SPEC = """
model m() {
  input x: float[5, 6]
  pool  e[4] = linear(6) -> relu
  y = x
  for i in [1, 3] {
    y = y + (y -> e[i])
  }
  output y
}
"""
OTHERS = "model m() { input x: float[5, 6] pool e[4] = linear(6) y = x -> e[INDEX] output y }"
SEVERAL = """
block step() { input x: float[d] input h: float[n] output a = (x, h) -> concat -> linear(3) output b = h -> linear(2) }
model m() { input x: float[5, 6] input h: float[5, 4] pool e[3] = step() a, b = (x, h) -> e[2] output a output b }
"""


def test_it_computes_what_that_module_does() -> None:
    model, x = modgraph.loads(SPEC).build(seed=0), torch.randn(2, 5, 6)
    first, second = (model.get_submodule(f"e.{index}") for index in (1, 3))
    wanted = x + first(x)
    torch.testing.assert_close(model.compute({"x": x}).outputs["y"], wanted + second(wanted))


def test_only_that_module_costs() -> None:
    cost = modgraph.loads(OTHERS.replace("INDEX", "0")).cost()
    assert (cost.macs, cost.active_macs) == (5 * 36, 5 * 36)


@pytest.mark.parametrize("index", ["4", "-1", '"a"', "1.5"])
def test_an_index_outside_of_the_pool_is_refused(index: str) -> None:
    with pytest.raises(ModgraphError, match="MG219") as caught:
        modgraph.loads(OTHERS.replace("INDEX", index))
    assert "the last is e[3]" in str(caught.value)


def test_it_takes_and_gives_several_values() -> None:
    program = modgraph.loads(SEVERAL)
    assert [str(program.ir.type_of(each)) for each in program.ir.outputs.values()] == ["float[5, 3]", "float[5, 2]"]
