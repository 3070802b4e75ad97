"""The axes of a block's inputs: two words mean two axes, whatever a use sends."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.program import load, loads

PAIRS = """block pairs(w) {
  input a: float[one, w]
  input b: float[other, w]
  output y = (a, b) -> contract
}
"""
ROUTER = """router hinted() for p {
  input x: float[tokens, dim]
  input hint: float[other, dim]
  gates = (x -> linear(p)) * ((x, hint) -> contract -> mean(axis=other)) -> softmax
  record gates
  output y = x -> p by gates
}
"""
INPUTS = "input x: float[time, 4] input z: float[memory, 4] input at: float[place=3, 4] pool p[2] = linear(4)"
USES = {
    "padded": "y = (x, x) -> pairs(4)",
    "values of one axis": "y = (x, x -> linear(4)) -> pairs(4)",
    "named and sized": "y = (at, at) -> pairs(4)",
    "modules": "y = (z -> mean -> p, z -> mean -> p) -> pairs(4)",
    "module": "module m = pairs(4) y = (x, x) -> m",
    "family": "for k in 0..2 { v[k] = x -> linear(4) } y = v -> pairs(4)",
    "block in a block": "y = (x, x) -> outer",
    "pool": "pool q[3] = pairs(4) y = (x, x) -> q",
    "router": "router r = hinted y = x -> p by r(x)",
}
OUTER = "block outer() { input a: float[one, 4] input b: float[one, 4] output y = (a, b) -> pairs(4) }"


def in_model(body: str, blocks: str = PAIRS + OUTER + ROUTER) -> str:
    return f"{blocks} model m() {{ {INPUTS} {body} output y }}"


def refused(text: str) -> Diagnostic:
    with pytest.raises(ModgraphError) as raised:
        loads(text)
    (diagnostic,) = raised.value.diagnostics
    return diagnostic


@pytest.mark.parametrize("use", USES)
def test_a_use_that_sends_one_axis_for_two_is_refused_where_it_stands(use: str) -> None:
    found = refused(in_model(USES[use]))
    assert found.code == "MG306", found.text()
    assert found.span is not None and len(found.notes) >= 2
    assert '"other"' in found.text() and "for both" in found.text()


def test_a_use_of_an_imported_block_is_refused_in_the_file_that_uses_it(tmp_path: Path) -> None:
    (tmp_path / "blocks.mod").write_text(PAIRS)
    spec = tmp_path / "m.mod"
    spec.write_text(in_model(USES["padded"], 'import pairs from "blocks.mod"'))
    with pytest.raises(ModgraphError) as raised:
        load(spec)
    (found,) = raised.value.diagnostics
    assert found.code == "MG306" and found.span is not None and found.span.source.name == str(spec)


def test_an_axis_with_a_number_is_routed_twice_under_two_names_as_the_help_says() -> None:
    text = in_model(USES["named and sized"])
    way_out = refused(text).advice().partition(": ")[2]
    program = loads(text.replace("(at, at)", f"(at, at {way_out})"))
    assert [axis.name for axis in program.ir.type_of(program.ir.outputs["y"]).shape] == ["place", "other"]
    at = torch.randn(2, 3, 4)
    given = {"x": torch.randn(2, 5, 4), "z": torch.randn(2, 6, 4), "at": at}
    found = program.build().compute(given).outputs["y"]
    torch.testing.assert_close(found, torch.einsum("npd,nqd->npq", at, at))


def test_one_axis_of_any_length_is_called_so_in_both_inputs_as_the_help_says() -> None:
    text = in_model(USES["padded"])
    declared = refused(text).advice().partition(": ")[2]
    program = loads(text.replace("input b: float[other, w]", declared))
    assert [axis.name for axis in program.ir.type_of(program.ir.outputs["y"]).shape] == ["time"]


@pytest.mark.parametrize("use", ["y = (x, z) -> pairs(4)", "y = (x -> mean, x) -> pairs(4)", "y = (at, x) -> pairs(4)"])
def test_two_axes_for_two_words_are_welcome(use: str) -> None:
    assert loads(in_model(use)).build() is not None


def test_plain_axes_of_one_length_stay_two() -> None:
    text = f"{PAIRS} model m() {{ input x: float[5, 4] y = (x, x) -> pairs(4) output y }}"
    x = torch.randn(2, 5, 4)
    torch.testing.assert_close(loads(text).build()(x), torch.einsum("npd,nqd->npq", x, x))
