"""Blocks, imports, for, families, unlike pools, frozen weights: what each means for weights and values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from modgraph.diagnostics import ModgraphError
from modgraph.ir import weights_of
from modgraph.program import Program, load, loads

FFN = """block ffn(dim, factor=2) {
  input x: float[tokens, dim]
  y = x -> linear(factor * dim, bias=false) -> gelu -> linear(dim, bias=false)
  output y
}
"""


def weights(program: Program) -> dict[str, tuple[int, ...]]:
    return {weight.name: weight.shape for weight in weights_of(program.ir)}


def codes(text: str) -> list[str]:
    try:
        return [diagnostic.code for diagnostic in loads(text).warnings]
    except ModgraphError as error:
        return [diagnostic.code for diagnostic in error.diagnostics]


def in_model(body: str, blocks: str = "") -> str:
    return f"{blocks} model m() {{ input x: float[5, 4] {body} }}"


def test_each_use_of_a_block_has_its_own_weights_and_a_module_of_one_has_one_set() -> None:
    program = loads(in_model("y = x -> ffn(4) -> ffn(4, factor=3) module e = ffn(4) z = y -> e -> e output z", FFN))
    assert weights(program) == {
        "y.ffn.y.linear.weight": (8, 4),
        "y.ffn.y.linear2.weight": (4, 8),
        "y.ffn2.y.linear.weight": (12, 4),
        "y.ffn2.y.linear2.weight": (4, 12),
        "e.ffn.y.linear.weight": (8, 4),
        "e.ffn.y.linear2.weight": (4, 8),
    }
    assert program.build()(torch.zeros(2, 5, 4)).shape == (2, 5, 4)


def test_a_block_computes_what_its_body_would_inline() -> None:
    block = loads(in_model("y = x -> ffn(4) output y", FFN)).build().double()
    inline = (
        loads(in_model("y = x -> linear(8, bias=false) -> gelu -> linear(4, bias=false) output y")).build().double()
    )
    for ours, theirs in zip(inline.parameters(), block.parameters(), strict=True):
        ours.data.copy_(theirs.data)
    value = torch.randn(3, 5, 4, dtype=torch.float64)
    assert torch.equal(block(value), inline(value))


def test_a_block_takes_several_inputs_and_gives_several_outputs() -> None:
    swap = "block swap() { input a: float[4] input b: float[4] output b output a }"
    text = f"{swap} model m() {{ input p: float[4] input q: float[4] u, v = (p, q) -> swap output u output v }}"
    model = loads(text).build()
    p, q = torch.ones(1, 4), torch.zeros(1, 4)
    outputs = model(p, q)
    assert isinstance(outputs, dict)
    assert torch.equal(outputs["u"], q)
    assert torch.equal(outputs["v"], p)


def test_losses_in_a_block_join_those_of_the_model() -> None:
    penal = "block penal() { input a: float[4] loss size = (a -> sum(axis=-1)) ** 2 output a }"
    text = f"{penal} model m() {{ input p: float[4] y = p -> penal z = y -> penal output z }}"
    computed = loads(text).build().compute({"p": torch.ones(2, 4)})
    assert {name: loss.item() for name, loss in computed.losses.items()} == {
        "y.penal.loss.size": 16,
        "z.penal.loss.size": 16,
    }


@pytest.mark.parametrize(
    ("use", "code"),
    [
        ("x -> ffn(5)", "MG301"),
        ("x -> ffn", "MG205"),
        ("x -> ffn(4, 2, 3)", "MG207"),
        ("x -> ffn(4, dim=4)", "MG209"),
        ("x -> ffn(4, factr=2)", "MG204"),
        ("(x, x) -> ffn(4)", "MG223"),
        ("x -> fnf(4)", "MG202"),
        ("x -> ffn(x)", "MG213"),
    ],
)
def test_a_block_used_wrongly_is_reported(use: str, code: str) -> None:
    assert codes(in_model(f"y = {use} output y", FFN)) == [code]


def test_blocks_that_use_each_other_in_a_circle_are_reported() -> None:
    blocks = "block a() { input x: float[4] y = x -> b output y } block b() { input x: float[4] y = x -> a output y }"
    assert codes(f"{blocks} model m() {{ input x: float[4] y = x -> a output y }}") == ["MG222"]


def test_experts_can_be_blocks() -> None:
    body = "pool p[3] = ffn(4) router r = agreement(1) y = x -> p by r output y"
    program = loads(in_model(body, FFN))
    assert weights(program)["p.2.ffn.y.linear2.weight"] == (4, 8)
    assert program.build()(torch.zeros(2, 5, 4)).shape == (2, 3, 4)


def test_for_gives_each_round_names_of_its_own_and_families_outlive_it() -> None:
    text = in_model(
        "for k in [3, 6] { s[k] = x -> mean -> linear(k, bias=false) "
        "module e = linear(k, bias=false) t[k] = s[k] -> e } "
        "joined = t -> concat total = s[3] -> sum(axis=-1) output joined output total"
    )
    program = loads(text)
    expected = {f"{name}.{k}.linear.weight" for name in "se" for k in (3, 6)}
    assert set(weights(program)) == expected
    assert program.ir.type_of(program.ir.outputs["joined"]).dimensions == (9,)


def test_several_targets_have_a_head_and_a_loss_each() -> None:
    text = in_model(
        "for k in 0..2 { target label[k]: class[3] s[k] = x -> mean -> linear(3) "
        "loss cross_entropy(s[k], label[k]) output s = s[k] }"
    )
    program = loads(text)
    assert list(program.ir.target_types) == ["label.0", "label.1"]
    assert list(program.ir.losses) == ["loss.cross_entropy.0", "loss.cross_entropy.1"]
    assert list(program.ir.outputs) == ["s.0", "s.1"]


def test_mean_and_sum_of_a_family_run_over_its_members() -> None:
    body = "for k in 0..3 { s[k] = (k + 1) * x } a = s -> mean b = s -> sum output a output b"
    value = torch.randn(2, 5, 4)
    outputs = loads(in_model(body)).build()(value)
    assert isinstance(outputs, dict)
    torch.testing.assert_close(outputs["a"], 2 * value)
    torch.testing.assert_close(outputs["b"], 6 * value)


def test_a_heterogeneous_pool_names_each_module_and_routes_the_same_way() -> None:
    body = "pool p = [linear(4), ffn(4), identity] router r = agreement(2) y = x -> p by r -> mean output y"
    program = loads(in_model(body, FFN))
    assert "p.0.linear.weight" in weights(program)
    assert "p.1.ffn.y.linear.weight" in weights(program)
    models = [program.build(lowering=lowering).double() for lowering in ("dense", "message_passing")]
    value = torch.randn(2, 5, 4, dtype=torch.float64)
    torch.testing.assert_close(models[0](value), models[1](value), atol=1e-10, rtol=0)
    assert codes(in_model("pool p = [linear(4), linear(3)] router r = agreement(2) y = x -> p by r output y")) == [
        "MG301"
    ]


def test_a_pool_without_a_router_applies_every_module_and_then_deals_row_by_row() -> None:
    program = loads("model m() { input x: float[4] pool p[3] = linear(4) a = x -> p b = a -> p output a output b }")
    assert [program.ir.type_of(result).dimensions for result in program.ir.outputs.values()] == [(3, 4), (3, 4)]
    model = program.build()
    value = torch.randn(2, 4)
    outputs = model(value)
    assert isinstance(outputs, dict)
    for j in range(3):
        expert = model.get_submodule(f"p.{j}")
        torch.testing.assert_close(outputs["a"][:, j], expert(value))
        torch.testing.assert_close(outputs["b"][:, j], expert(expert(value)))


def test_records_of_a_router_are_values() -> None:
    body = "pool p[3] = linear(4) router r = agreement(2) y = x -> p by r -> mean g = r.gates -> mean output y output g"
    program = loads(in_model(body))
    assert program.ir.type_of(program.ir.outputs["g"]).dimensions == (3,)
    assert codes(in_model("router r = agreement(2) g = r.gates output x"))[0] == "MG214"
    assert codes(in_model("router r = agreement(2) g = r.gate output x"))[0] == "MG201"


@pytest.mark.parametrize("branch", ["true", "false"])
def test_what_a_branch_declares_stands_behind_its_name(branch: str) -> None:
    body = f"""if {branch} {{ pool p[2] = linear(4) router r = agreement(2) module m = linear(4) }}
      else {{ pool p[3] = linear(4) router r = noisy_top_k(2) module m = linear(4) -> relu }}
      g = x -> m -> p by r -> mean  u = r.gates -> mean  output g output u loss importance(r)"""
    (decision,) = loads(in_model(body)).ir.decisions("r")
    assert decision.facts.k == (0 if branch == "true" else 2)


def test_what_several_rounds_declare_has_no_one_behind_its_name() -> None:
    assert "MG218" in codes(in_model("repeat b[i] in 0..1 { router r = agreement(2) } g = x -> p by r output g"))


def test_frozen_weights_are_not_trained() -> None:
    body = "frozen { module stem = linear(4) y = x -> linear(4) } z = y -> stem -> linear(4) output z"
    program = loads(in_model(body))
    trained = {name for name, p in program.build().named_parameters() if p.requires_grad}
    assert trained == {"z.linear.weight", "z.linear.bias"}
    assert (program.cost().parameters, program.cost().trainable) == (60, 20)


def test_initialisers_can_be_set() -> None:
    body = "y = x -> linear(4, init=zeros) -> linear(4, init=ones) -> linear(64, init=normal(3)) output y"
    state = loads(in_model(body)).build().state_dict()
    assert not state["y.linear.weight"].any()
    assert (state["y.linear2.weight"] == 1).all()
    assert 2.5 < state["y.linear3.weight"].std() < 3.5


def test_blocks_come_from_other_files(tmp_path: Path) -> None:
    (tmp_path / "blocks").mkdir()
    (tmp_path / "blocks/ffn.mod").write_text(f'import twice from "more.mod" {FFN}')
    (tmp_path / "blocks/more.mod").write_text("block twice() { input x: float[4] y = 2 * x output y }")
    (tmp_path / "m.mod").write_text(
        f'import ffn, twice from "blocks/ffn.mod" {in_model("y = x -> ffn(4) -> twice output y")}'
    )
    assert (
        load(tmp_path / "m.mod").ir
        == loads(in_model("y = x -> ffn(4) -> twice output y", FFN + (tmp_path / "blocks/more.mod").read_text())).ir
    )


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"m.mod": 'import b from "none.mod"'}, "MG101"),
        ({"m.mod": 'import b from "other.mod"', "other.mod": "block a() { input x: float[4] output x }"}, "MG224"),
        ({"m.mod": 'import b from "other.mod"', "other.mod": "block ("}, "MG104"),
        ({"m.mod": 'import b from "m.mod"'}, "MG225"),
        ({"m.mod": 'import b from "other.mod"', "other.mod": 'import c from "m.mod" block b() { }'}, "MG225"),
        ({"m.mod": 'import b from "."'}, "MG101"),
    ],
)
def test_imports_that_fail_are_reported(tmp_path: Path, files: dict[str, str], code: str) -> None:
    for name, text in files.items():
        model = in_model("y = x -> b output y") if name == "m.mod" else ""
        (tmp_path / name).write_text(f"{text} {model}")
    with pytest.raises(ModgraphError) as caught:
        load(tmp_path / "m.mod")
    assert code in {diagnostic.code for diagnostic in caught.value.diagnostics}


def test_files_outside_the_specs_folder_are_not_read_unnoticed(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "b.mod").write_text("block b() { input x: float[5, 4] output x }")
    (tmp_path / "inner/m.mod").write_text(f'import b from "../b.mod" {in_model("y = x -> b output y")}')
    assert [warning.code for warning in load(tmp_path / "inner/m.mod").warnings] == ["MG403"]


CONVOLVED = """block convolved(dim, width, rows) {
  input x: float[1 + rows * rows, dim]
  module seen = conv(width, kernel=3, padding=1) -> relu
  first, rest = x -> linear(width, name="down") -> transpose -> split([1, rows * rows])
  alone = first -> unmerge([1, 1]) -> seen -> merge
  together = rest -> unmerge([rows, rows]) -> seen -> merge
  y = (alone, together) -> concat -> transpose -> linear(dim, name="up")
  output y
}
model m() {
  input x: float[10, 4]
  pool p[2] = convolved(4, 3, 3)
  y = x -> p
  output y
}
"""


def test_a_module_in_a_pool_is_one_for_each_of_its_modules_whatever_sizes_it_is_used_at() -> None:
    program = loads(CONVOLVED)
    of_one = {name: shape for name, shape in weights(program).items() if name.startswith("p.1.")}
    assert of_one == {
        "p.1.convolved.down.weight": (3, 4),
        "p.1.convolved.down.bias": (3,),
        "p.1.convolved.seen.conv.weight": (3, 3, 3, 3),
        "p.1.convolved.seen.conv.bias": (3,),
        "p.1.convolved.up.weight": (4, 3),
        "p.1.convolved.up.bias": (4,),
    }
    model = program.build().double()
    x = torch.randn(2, 10, 4, dtype=torch.float64)
    expected = []
    for part in (model.get_submodule(f"p.{module}.convolved") for module in range(2)):
        down, conv, up = (part.get_submodule(name) for name in ("down", "seen.conv", "up"))
        inner = down(x).transpose(1, 2)
        images = inner[..., :1].unflatten(-1, (1, 1)), inner[..., 1:].unflatten(-1, (3, 3))
        expected.append(up(torch.cat([conv(each).relu().flatten(2) for each in images], -1).transpose(1, 2)))
    assert torch.allclose(model(x), torch.stack(expected, 1), atol=1e-12)


BRANCHES = """model m(deep=true, kind=1) {
  input x: float[4]
  if deep {
    h = x -> linear(8) -> relu
    only = x
  } else if kind == 1 {
    frozen {
      h = x -> linear(5)
    }
  } else {
    h, rest = x -> split(2)
  }
  y = h -> linear(2)
  output y
}
"""


@pytest.mark.parametrize(("given", "width"), [({}, 8), ({"deep": False}, 5), ({"deep": False, "kind": 2}, 2)])
def test_a_value_that_all_branches_name_is_there_behind_them(given: dict[str, Any], width: int) -> None:
    assert weights(loads(BRANCHES, **given))["y.linear.weight"] == (2, width)


def test_a_value_that_one_branch_names_is_not_there_behind_it() -> None:
    assert codes(BRANCHES.replace("y = h", "y = only")) == ["MG201"]
    assert codes(BRANCHES.replace("if deep {", "if x {")) == ["MG213"], "and nothing follows from a wrong condition"
