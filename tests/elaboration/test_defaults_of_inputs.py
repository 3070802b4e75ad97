"""Defaults of a block's inputs, and plain axes that its body names."""

from __future__ import annotations

import pytest
import torch

import modgraph
from modgraph import ModgraphError

READ = """block read(dim) {
  input x: float[tokens, dim]
  input memory: float[key, dim] = x
  input bias: float[tokens, key] = 0
  scores = (x, memory) -> contract
  if given(bias) { scores = scores + bias }
  y = memory by (scores -> softmax(axis=key)) over key
  if given(memory) { y = x + y }
  output y
}
"""
USE = "model m() {{ input x: float[5, 4] input m: float[3, 7] y = {} -> read(4) output y }}"


def run(body: str, **values: torch.Tensor) -> torch.Tensor:
    model = modgraph.loads(f"{READ} model m() {{ {body} output y }}").build().double()
    found = model(**values)
    assert isinstance(found, torch.Tensor)
    return found


def test_a_use_reads_the_default_of_an_input_that_it_leaves_out() -> None:
    x, m, b = (torch.randn(2, *sizes, dtype=torch.float64) for sizes in ((5, 4), (3, 4), (5, 3)))
    inputs = "input x: float[5, 4] input m: float[3, 4] input b: float[5, 3] "
    attended = (x @ x.mT).softmax(-1) @ x
    torch.testing.assert_close(run("input x: float[5, 4] y = x -> read(4)", x=x), attended)
    torch.testing.assert_close(run("input x: float[5, 4] y = (x, x) -> read(4)", x=x), x + attended)
    expected = x + ((x @ m.mT) + b).softmax(-1) @ m
    torch.testing.assert_close(run(f"{inputs} y = (x, m, b) -> read(4)", x=x, m=m, b=b), expected)


def test_plain_outer_axes_are_those_of_all_inputs() -> None:
    x, m = (torch.randn(2, 6, *sizes, dtype=torch.float64) for sizes in ((5, 4), (3, 4)))
    found = run("input x: float[6, 5, 4] input m: float[6, 3, 4] y = (x, m) -> read(4)", x=x, m=m)
    torch.testing.assert_close(found, x + (x @ m.mT).softmax(-1) @ m)


def test_modules_of_a_pool_take_the_axes_that_a_block_names() -> None:
    pool = "pool p[2] = read(4) w = x -> mean -> mean(axis=-1) -> linear(p) -> softmax y = x -> p by w"
    graph = modgraph.loads(f"{READ} model m() {{ input x: float[6, 5, 4] {pool} output y }}").ir
    assert [str(each) for each in graph.outputs] and str(graph.type_of(graph.outputs["y"])) == "float[6, 5, 4]"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("model m() { input x: float[4] = 1 output x }", "leave it out: input x: float[4]"),
        (f"{READ} {USE.format('(x, x, x, x)')}", "takes 1 to 3 inputs, not 4"),
        (f"{READ} {USE.format('(x, m)')}", 'its input "memory" must be float[key=3, 4], not float[key=3, 7]'),
        (f"{READ} {USE.format('x -> mean')}", 'its input "memory" must be float[key, 4], not float[4]'),
        (f"{READ.replace('given(bias)', 'given(bais)')} {USE.format('x')}", "inputs with a default: memory, bias"),
        (f"{READ.replace('= x', '= relu')} {USE.format('x')}", "expected a value or a number"),
        (
            f"{READ.replace('dim] = x', 'dim]').replace('given(memory)', 'given(x)')} {USE.format('(x, x)')}",
            "default: bias",
        ),
        ("model m() { input x: float[4] if given(x) { y = x } output x }", "give the input one: input NAME: TYPE = …"),
    ],
)
def test_what_does_not_fit_is_reported_where_it_stands(text: str, says: str) -> None:
    with pytest.raises(ModgraphError) as raised:
        modgraph.loads(text)
    assert says in str(raised.value), raised.value
