"""Families that go into blocks and come out of them, and inputs that are members of one."""

from __future__ import annotations

import torch

from modgraph.diagnostics import ModgraphError
from modgraph.program import Program, loads

HEADS = """block heads(tasks, told=true) {
  input x: float[4]
  for k in tasks {
    seen = x
    if told {
      input about[k]: float[4]
      seen = x + about[k]
    }
    v[k] = 2 * seen
    output v[k]
  }
  output total = v -> sum
}
"""


def codes_of(text: str) -> list[str]:
    try:
        return [each.code for each in loads(text).warnings]
    except ModgraphError as error:
        return [each.code for each in error.diagnostics]


def outputs(program: Program, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = program.build()(**inputs)
    return found


def model(body: str) -> str:
    return f'{HEADS} model m(tasks=["a", "b"]) {{ input x: float[4] {body} }}'


def test_a_block_takes_a_family_member_by_member_and_gives_one() -> None:
    body = """for k in tasks { input r[k]: float[4] }
    y, total = (x, r) -> heads(tasks)
    for k in tasks { output y[k] }
    output total"""
    x, a, b = torch.randn(3, 5, 4)
    found = outputs(loads(model(body)), x=x, **{"r.a": a, "r.b": b})
    torch.testing.assert_close(found["y.a"], 2 * (x + a))
    torch.testing.assert_close(found["y.b"], 2 * (x + b))
    torch.testing.assert_close(found["total"], 2 * (x + a) + 2 * (x + b))


def test_an_input_of_a_branch_that_is_not_taken_is_none() -> None:
    x = torch.randn(5, 4)
    program = loads(model('y, total = x -> heads(tasks, told=false) z = y -> concat output z output u = y["b"]'))
    found = outputs(program, x=x)
    torch.testing.assert_close(found["z"], torch.cat([2 * x, 2 * x], -1))
    torch.testing.assert_close(found["u"], 2 * x)


def test_as_many_names_as_members_take_a_family_apart() -> None:
    text = "block two() { input x: float[4] for k in 0..2 { output v[k] = (k + 1) * x } } model m() { input x: float[4]"
    x = torch.randn(5, 4)
    found = outputs(loads(f"{text} a, b = x -> two output a output b }}"), x=x)
    torch.testing.assert_close(found["b"], 2 * found["a"])
    assert codes_of(f"{text} a, b, c = x -> two output a }}") == ["MG220"]


def test_operands_are_counted_over_loops_and_branches() -> None:
    assert codes_of(model("y, total = x -> heads(tasks) output total")) == ["MG223"]
    assert codes_of(model("y, total = (x, x, x, x) -> heads(tasks) output total")) == ["MG223"]


def test_an_input_may_stand_in_a_branch_and_as_a_member_in_a_loop_and_not_else() -> None:
    text = "model m(some=false) {{ if some {{ input w: float[3] x = w }} else {{ input s: float[5] x = s }} {} }}"
    assert set(loads(text.format("output x")).ir.input_types) == {"s"}
    assert set(loads(text.format("output x"), some=True).ir.input_types) == {"w"}
    assert codes_of("model m() { repeat b[i] in 0..2 { input x: float[3] output y[i] = x } }") == ["MG218"]


def test_a_pool_of_one_that_says_so_is_no_mistake() -> None:
    body = "pool p[{}] = linear(4) router r = agreement y = x -> p by r output y"
    text = f"model m(n=1) {{{{ input x: float[5, 4] {body} }}}}"
    assert codes_of(text.format("n")) == ["MG405"]
    assert codes_of(text.format("1")) == []
