"""What a spec means: sharing, scopes, names, families, parameters, and words of later versions."""

from __future__ import annotations

import pytest

from modgraph.diagnostics import ModgraphError
from modgraph.ir import weights_of
from modgraph.program import Program, loads

BOTH = ("weight", "bias")


def weights(text: str, **parameters: object) -> list[str]:
    return [weight.name for weight in weights_of(loads(text, **parameters).ir)]


def codes(text: str) -> list[str]:
    try:
        return [diagnostic.code for diagnostic in loads(text).warnings]
    except ModgraphError as error:
        return [diagnostic.code for diagnostic in error.diagnostics]


def in_model(body: str) -> str:
    return f"model m(n=2) {{ input x: float[5, 4] {body} output x }}"


def test_a_pool_outside_a_repeat_is_one_and_inside_each_iteration_has_its_own() -> None:
    pool = "pool p[2] = linear(4, bias=false) router r = agreement(1)"
    loop = "x = x + (x -> p by r -> mean)"
    outside = weights(in_model(f"{pool} repeat b[i] in 0..n {{ {loop} }}"))
    assert outside == ["p.0.linear.weight", "p.1.linear.weight", "r.weight"]
    inside = weights(in_model(f"repeat b[i] in 0..n {{ {pool} {loop} }}"))
    assert inside == [f"b.{i}.{name}" for i in range(2) for name in outside]


def test_a_pool_that_rounds_share_takes_in_each_what_it_took_first() -> None:
    pool, loop = "pool p[2] = linear({})", "repeat b[i] in 0..n {{ x = x -> p -> mean(axis=p) }}"
    assert weights(in_model(f"{pool} {loop}".format(4))) == [f"p.{j}.linear.{each}" for j in (0, 1) for each in BOTH]
    with pytest.raises(ModgraphError) as caught:
        loads(in_model(f"{pool} {loop}".format(3)))
    message = str(caught.value)
    assert '"p" takes float[4]' in message and '"b.0.x"' in message and '"b.1.x" sends it float[5, 3]' in message


def test_inline_ops_are_new_at_each_place_and_modules_are_not() -> None:
    text = in_model("module enc = linear(4, bias=false) y = x -> enc z = x -> enc x = y + z -> linear(4, bias=false)")
    assert weights(text) == ["enc.linear.weight", "x.linear.weight"]


def test_rebinding_carries_out_of_a_body_and_new_names_do_not() -> None:
    program = loads(in_model("repeat b[i] in 0..3 { x = x -> relu } if true { x = x -> tanh }"))
    assert sum(node.name.endswith("relu") for node in program.ir) == 3
    assert program.ir.inputs("output.x")["x"].node == "x.tanh"
    assert codes("model m() { input x: float[4] repeat b[i] in 0..2 { y = x -> relu } output y }") == ["MG201"]
    assert codes("model m() { input x: float[4] if true { y = x -> relu } output y }") == ["MG201"]


def test_an_inserted_statement_renames_no_other_weight() -> None:
    before = weights(in_model("y = x -> linear(3) x = y -> relu -> linear(4)"))
    after = weights(in_model("y = x -> linear(3) w = x -> linear(9) x = y -> relu -> linear(4)"))
    assert set(before) < set(after)


def test_ordinals_count_within_a_statement_and_second_bindings_are_numbered() -> None:
    text = in_model("x = x -> linear(3, bias=false) -> linear(4, bias=false) x = x -> linear(4, bias=false)")
    assert weights(text) == ["x.linear.weight", "x.linear2.weight", "x2.linear.weight"]


def test_a_name_given_by_the_user_stands_instead() -> None:
    text = in_model('repeat b[i] in 0..1 { x = x -> linear(4, bias=false, name="proj") }')
    assert weights(text) == ["b.0.proj.weight"]
    assert codes(in_model('x = x -> linear(4, name="a") x = x -> linear(4, name="a")')) == ["MG208"]


def test_routers_inside_are_a_family_that_statistics_sum_over() -> None:
    text = in_model(
        "repeat b[i] in 0..3 { if i in [0, 2] { pool p[2] = linear(4) router r = agreement(1) "
        "x = x + (x -> p by r -> mean) } } loss importance(r)"
    )
    graph = loads(text).ir
    assert list(graph.inputs("loss.importance.importance")) == ["0", "1"]


def test_an_empty_family_counts_as_zero_with_a_warning() -> None:
    assert codes(in_model("if false { router r = agreement(1) } loss importance(r)")) == ["MG402"]


def test_a_value_of_a_modules_name_does_not_hide_the_op() -> None:
    assert codes("model m() { input mean: float[5, 4] tokens = mean -> mean output tokens }") == []


def test_parameters_reach_sizes_conditions_and_types() -> None:
    text = (
        'model m(width=3, deep=false, sizes=[2, 4], kind="a") { input x: float[width] '
        'if deep and kind == "a" { x = x -> linear(sizes[1]) } output x }'
    )
    assert weights(text) == []
    assert weights(text, deep=True, sizes=[1, 7]) == ["x.linear.weight", "x.linear.bias"]
    assert loads(text, width=9).ir.input_types["x"].dimensions == (9,)


def test_mistakes_do_not_bring_others_with_them() -> None:
    text = in_model("pool p[2] = liner(4) router r = agreemnt(1) y = x -> p by r -> mean z = y -> linear(k) w = z + y")
    assert sorted(codes(text)) == ["MG201", "MG202", "MG202"]


def test_unused_things_are_warned_of() -> None:
    assert codes(in_model("pool p[2] = linear(4) router r = agreement(1) module e = relu")) == ["MG401"] * 3


def test_names_of_torch_are_names_like_any_other() -> None:
    import torch

    text = (
        "model m() { input x: float[4] tokenizer forward = linear(4) module train = linear(4) "
        "parameters = x -> forward -> train modules = parameters -> linear(4) "
        'steps = modules -> linear(4, name="graph") -> relu pool p[2] = linear(4, name="steps") -> relu '
        "steps = steps -> p -> mean output steps }"
    )
    program: Program = loads(text)
    model = program.build()
    assert sum(p.numel() for p in model.parameters()) == program.cost().parameters == 120
    assert model(torch.zeros(2, 4)).shape == (2, 4)
    model.load_state_dict(model.state_dict())
