"""Members of families: what is bound, given out, lost and named by an index, in loops and outside."""

from __future__ import annotations

import pytest

from modgraph.diagnostics import ModgraphError
from modgraph.ir import weights_of
from modgraph.program import Program, loads


def model(body: str) -> Program:
    return loads(f"model m() {{ input x: float[4] {body} }}")


def weights(body: str) -> list[str]:
    return [weight.name for weight in weights_of(model(body).ir)]


def codes(body: str) -> list[str]:
    try:
        return [each.code for each in model(body).warnings]
    except ModgraphError as error:
        return [each.code for each in error.diagnostics]


LINEAR = "linear(4, bias=false)"


@pytest.mark.parametrize("loop", ["for t in 0..2", "repeat layer[t] in 0..2"])
def test_losses_and_outputs_are_members_of_families(loop: str) -> None:
    body = f"target y[t]: float[4] s[t] = x -> {LINEAR} loss task[t] = mse(s[t], y[t]) output s[t]"
    graph = model(f"{loop} {{ {body} }}").ir
    assert set(graph.losses) == {"loss.task.0", "loss.task.1"}
    assert set(graph.outputs) == {"s.0", "s.1"}
    assert "loss.task.1.mse" in graph


def test_an_output_may_be_given_as_a_member() -> None:
    graph = model("for t in 0..2 { output z[t] = x -> relu output w[t] = x * 2 }").ir
    assert set(graph.outputs) == {"z.0", "z.1", "w.0", "w.1"}
    assert "output.z.1.relu" in graph


def test_members_have_names_outside_of_loops_too() -> None:
    graph = model('s["cat"] = x -> tanh output s["cat"] loss task["cat"] = mse(s["cat"], x)').ir
    assert set(graph.outputs) == {"s.cat"} and set(graph.losses) == {"loss.task.cat"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("output z[0] = x output z[0] = x", "MG208"),
        ("loss task[0] = mse(x, x) loss task[0] = mse(x, x) output x", "MG208"),
        ("loss task[x] = mse(x, x) output x", "MG213"),
        ("loss task[0.5] = mse(x, x) output x", "MG219"),
        ("output z[nine] = x", "MG201"),
        ("s[0] = x -> relu output s[1]", "MG219"),
    ],
)
def test_what_is_wrong_with_a_member_is_reported_once(body: str, code: str) -> None:
    assert codes(body) == [code]


@pytest.mark.parametrize("left", ["x -> relu = x", "(s)[0][1] = x", "3 = x", "s[0][1] = x"])
@pytest.mark.parametrize("keyword", ["loss", "output"])
def test_what_stands_left_of_the_equals_sign_is_a_name(keyword: str, left: str) -> None:
    with pytest.raises(ModgraphError) as error:
        model(f"{keyword} {left} output x")
    (message,) = error.value.diagnostics
    assert message.code == "MG240"
    assert keyword in message.advice()


def test_a_block_gives_out_members_in_order() -> None:
    block = f"block b() {{ input x: float[4] for t in 0..2 {{ s[t] = x -> {LINEAR} output s[t] }} }}"
    graph = loads(f"{block} model m() {{ input x: float[4] u, v = x -> b output u output v }}").ir
    assert [weight.name for weight in weights_of(graph)] == ["u_v.b.s.0.linear.weight", "u_v.b.s.1.linear.weight"]


def test_names_bound_together_share_their_index() -> None:
    found = weights(f"for k in 0..2 {{ a[k], b[k] = x -> {LINEAR} -> split(2) output p[k] = a[k] + b[k] }}")
    assert found == ["a_b.0.linear.weight", "a_b.1.linear.weight"]


def test_unlike_indices_are_both_in_the_name() -> None:
    assert weights(f"a[0], b[1] = x -> {LINEAR} -> split(2) output a[0]") == ["a_b.0.1.linear.weight"]


def test_a_name_given_in_a_loop_gets_the_suffix_of_the_iteration() -> None:
    named = 'x -> linear(4, bias=false, name="head")'
    assert weights(f"for k in 0..2 {{ s[k] = {named} output s[k] }}") == ["head.0.weight", "head.1.weight"]
    assert weights(f"for k in 0..2 {{ x = {named} }} output x") == ["head.0.weight", "head.1.weight"]
    inner = f"for i in 0..2 {{ for k in 0..2 {{ s[2 * i + k] = {named} output s[2 * i + k] }} }}"
    assert weights(inner) == [f"head.{i}.{k}.weight" for i in range(2) for k in range(2)]
    assert weights(f"for k in 0..2 {{ loss task[k] = mse({named}, x) }} output x") == [
        "head.0.weight",
        "head.1.weight",
    ]


def test_two_of_one_name_outside_of_a_loop_still_clash() -> None:
    named = 'x -> linear(4, bias=false, name="head")'
    assert codes(f"s[0] = {named} s[1] = {named} output s[0] output s[1]") == ["MG208"]
