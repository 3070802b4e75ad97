"""Blocks, ops, modules, pools and routers as arguments of blocks: as if they were written in."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.ir import weights_of
from modgraph.program import load, loads
from tests.ordinary_run import some_examples

BLOCKS = """block ffn(dim, hidden=8) {
  input x: float[t, dim]
  y = x -> linear(hidden) -> gelu -> linear(dim, name="down")
  output y
}
block residual(inner) {
  input x: float[t, d]
  y = x + (x -> inner)
  output y
}
block moe(inner, kind=agreement(2), size=4) {
  input x: float[t, d]
  pool p[size] = inner
  router r = kind
  y = x -> p by r -> mean
  output y
}
block chain(inner, n=2) {
  input x: float[t, d]
  y = x -> inner -> linear(n)
  output y
}
block further(inner) {
  input x: float[t, d]
  y = x -> inner(6, bias=false)
  output y
}
block by_router(p, r) {
  input x: float[t, d]
  y = x -> p by r
  output y
}
block twice(inner) {
  input x: float[t, d]
  y = x -> inner(inner)
  output y
}
router pair() for a, b {
  input x: float[t, d]
  y = x -> a -> mean(axis=a)
  output y
}
"""
BODIES = (  # of a block with an input x, which uses what stands for CALLABLE
    "y = x -> CALLABLE",
    "y = x + (x -> CALLABLE -> tanh)",
    "y = x -> (CALLABLE -> linear(6))",
    "module e = CALLABLE y = x -> e -> relu -> e",
    "pool p[3] = CALLABLE y = x -> p by (x -> linear(p) -> softmax)",
    "pool p[2] = linear(6) pool q[p] = CALLABLE -> linear(6) y = x -> p -> q -> mean(axis=p)",
    "frozen { y = x -> CALLABLE } y = y -> linear(6)",
    "frozen { pool p[3] = CALLABLE } y = x -> p -> sum(axis=p)",
    "repeat r[i] in 0..2 { x = x -> CALLABLE } y = x",
    "scan x as step with h: float[6] { h = h + step -> CALLABLE yield h } as y",
    "y = x -> residual(CALLABLE)",
    "y = x -> residual(residual(CALLABLE)) -> relu",
)
CALLABLES = (
    "relu",
    "linear(6)",
    "ffn(6)",
    "ffn(dim=6, hidden=3)",
    "(linear(4, init=zeros) -> tanh -> linear(6))",
    "residual(linear(6))",
    "residual(residual(ffn(6)))",
    "residual((ffn(6) -> layer_norm))",
)


def diagnose(body: str) -> Diagnostic:
    with pytest.raises(ModgraphError) as raised:
        loads(f"{BLOCKS}model m() {{\n  input x: float[5, 6]\n  {body}\n  output y\n}}\n")
    (only,) = raised.value.diagnostics
    return only


def text_at(diagnostic: Diagnostic) -> str:
    assert diagnostic.span is not None
    return diagnostic.span.text


def model_with(block: str, use: str) -> str:
    return f"{BLOCKS}{block} model m() {{ input x: float[5, 6] z = x -> {use} output z }}"


@some_examples(40)
@given(st.sampled_from(BODIES), st.sampled_from(CALLABLES), st.booleans())
def test_a_block_given_a_callable_is_the_block_with_the_callable_written_in(
    body: str, callable_: str, as_default: bool
) -> None:
    here = f"input x: float[t, 6] {body} output y"
    written = loads(model_with(f"block b() {{ {here.replace('CALLABLE', callable_)} }}", "b"))
    passing = here.replace("CALLABLE", "inner")
    if as_default:
        passed = loads(model_with(f"block b(inner={callable_}) {{ {passing} }}", "b"))
    else:
        passed = loads(model_with(f"block b(inner) {{ {passing} }}", f"b({callable_})"))
    assert passed.ir == written.ir


@pytest.mark.parametrize(
    ("given_to", "written"),
    [
        ("further(linear)", "linear(6, bias=false)"),
        ("further(linear(init=zeros))", "linear(6, bias=false, init=zeros)"),
        ("further(inner=linear(name='u'))".replace("'", '"'), 'linear(6, bias=false, name="u")'),
    ],
)
def test_what_is_given_some_arguments_is_given_the_others_where_it_is_used(given_to: str, written: str) -> None:
    inline = f"block further() {{ input x: float[t, d] y = x -> {written} output y }}"
    text = BLOCKS.replace(BLOCKS[BLOCKS.index("block further") : BLOCKS.index("block by_router")], "")
    other = f"{text}{inline} model m() {{ input x: float[5, 6] z = x -> further output z }}"
    assert loads(model_with("", given_to)).ir == loads(other).ir


def test_an_op_that_was_passed_is_applied_like_a_function_too() -> None:
    block = "block b(f, g) { input x: float[t, d] y = f(x) + g(x, axis=-1, keep=true) output y }"
    assert "z.b.y.relu" in loads(model_with(block.replace(", keep=true", ""), "b(relu, softmax)")).ir


def test_the_names_in_an_argument_mean_what_they_mean_where_it_is_written() -> None:
    block = "block b(inner, width=3) { input x: float[place, d] y = x -> inner -> linear(width) output y }"
    model = 'model m(width=7) { input x: float[time, 6] z = x -> b(linear(width) -> softmax(axis="time")) output z }'
    shapes = {weight.name: weight.shape for weight in weights_of(loads(f"{block} {model}").ir)}
    assert shapes["z.b.y.linear.weight"] == (7, 6)
    assert shapes["z.b.y.linear2.weight"] == (3, 7)


def test_pools_modules_and_routers_are_passed_as_what_they_are() -> None:
    block = "block used(p, r) { input x: float[t, d] y = (x -> p by r) * len(p) output y output use = r.gates } "
    declared = "pool p[3] = linear(6) router r = agreement(1) module e = linear(6)"
    body = "z, use = x -> used(p, r) u = x -> chain(e) v = x -> chain(e) output z output u output v output use"
    graph = loads(f"{BLOCKS}{block}model m() {{ input x: float[5, 6] {declared} {body} }}").ir
    assert {weight.name for weight in weights_of(graph)} >= {"p.0.linear.weight", "r.weight", "e.linear.weight"}


@pytest.mark.parametrize("kind", ["agreement(1)", "noisy_top_k(k=2)", "mine", "mine(3)"])
def test_a_kind_of_router_is_an_argument(kind: str) -> None:
    mine = "router mine(k=1) for e { input x: float[n, d] y = x -> e by (x -> linear(e) -> top_k(k)) output y }"
    written = BLOCKS.replace("router r = kind", f"router r = {kind}") + mine
    model = "model m() { input x: float[5, 6] z = x -> moe(linear(6)KIND) output z }"
    passed = loads(BLOCKS + mine + model.replace("KIND", f", kind={kind}"))
    assert passed.ir == loads(written + model.replace("KIND", "")).ir


def test_a_router_of_the_language_is_given_an_op() -> None:
    scored = "router scored(score) for e { input x: float[n, d] y = x -> e by (x -> score(e) -> softmax) output y }"
    text = f"{scored} {BLOCKS} model m() {{ input x: float[5, 6] z = x -> moe(linear(6), scored(linear)) output z }}"
    assert "z.moe.r.y.linear.weight" in {weight.name for weight in weights_of(loads(text).ir)}


def test_a_block_of_another_file_is_passed_on_to_a_block_of_a_third(tmp_path: Path) -> None:
    (tmp_path / "ffn.mod").write_text(BLOCKS[: BLOCKS.index("block residual")])
    middle = "block twice(inner) { input x: float[t, d] y = x -> ffn(6) -> inner -> inner output y }"
    (tmp_path / "twice.mod").write_text(f'import ffn from "ffn.mod" {middle}')
    imports = 'import twice from "twice.mod" import ffn from "ffn.mod"'
    model = "model m() { input x: float[5, 6] y = x -> twice(ffn(6)) output y }"
    (tmp_path / "m.mod").write_text(f"{imports} {model}")
    names = {weight.name for weight in weights_of(load(tmp_path / "m.mod").ir)}
    assert {"y.twice.y.ffn.down.weight", "y.twice.y.ffn3.down.weight"} <= names


@pytest.mark.parametrize(
    ("body", "code", "at"),
    [
        ("y = x -> chain(3)", "MG218", "3"),
        ("y = x -> moe(3)", "MG218", "3"),
        ("y = x -> chain(ffn)", "MG205", "ffn"),
        ("y = x -> moe(linear)", "MG205", "linear"),
        ("pool q[2] = linear(6) y = x -> moe(q)", "MG218", "q"),
        ("y = x -> chain(fnf)", "MG201", "fnf"),
        ("y = x -> chain(lineer(8))", "MG202", "lineer"),
        ("y = x -> chain(x)", "MG213", "x"),
        ("y = x -> twice(twice)", "MG222", "twice"),
        ("y = (x, x) -> chain(relu)", "MG223", "chain(relu)"),
        ("y = x -> chain(contract)", "MG301", "contract"),
        ("y = x -> chain(agreement(2))", "MG202", "agreement"),
        ("router r = agreement(1) y = x -> moe(linear(6), r)", "MG218", "r"),
        ("pool q[2] = linear(6) y = x -> by_router(q, agreement(1))", "MG218", "agreement(1)"),
        ("y = x -> moe(linear(6), relu)", "MG202", "relu"),
        ("y = x -> moe(linear(6), 3)", "MG218", "3"),
        ("y = x -> moe(linear(6), linear(6) -> relu)", "MG218", "linear(6) -> relu"),
        ("y = x -> moe(linear(6), pair)", "MG248", "p by r"),
        ("y = x -> chain(relu, gelu)", "MG213", "gelu"),
        ("y = x -> moe([linear(6), 3], size=2)", "MG218", "[linear(6), 3]"),
        ("y = x -> chain([relu, gelu])", "MG218", "[relu, gelu]"),
        ('y = x -> chain(relu, "a")', "MG206", '"a"'),
        ("y = x -> further(linear(6) -> relu)", "MG218", "linear(6) -> relu"),
        ("y = x -> chain(linear(6, biass=true))", "MG204", "biass=true"),
        ("y = x -> chain(ffn(7))", "MG301", "input x: float[t, dim]"),
    ],
)
def test_what_cannot_be_an_argument_is_reported_where_the_user_wrote_it(body: str, code: str, at: str) -> None:
    mistake = diagnose(body)
    assert (mistake.code, text_at(mistake)) == (code, at)
    assert mistake.advice()


def test_a_mistake_names_both_where_something_is_given_and_where_it_is_applied() -> None:
    notes = [(note.text, note.span.text) for note in diagnose("y = x -> chain(conv(3))").notes if note.span]
    assert notes[-1] == ("applied here", "inner")
    other = [(note.text, note.span.text) for note in diagnose("y = x -> chain(relu, gelu)").notes if note.span]
    assert ("used here", "n") in other


def test_a_block_that_its_own_default_names_is_recursive() -> None:
    text = "block b(inner=b) { input x: float[4] y = x -> inner output y }"
    with pytest.raises(ModgraphError) as raised:
        loads(f"{text} model m() {{ input x: float[4] y = x -> b output y }}")
    assert [each.code for each in raised.value.diagnostics] == ["MG222"]


def test_an_argument_of_a_router_is_of_the_kind_of_its_default() -> None:
    scored = "router scored(score=linear, k=1) for e { input x: float[n, d] y = x -> e by (x -> score(e)) output y }"
    for use, problem in (("scored(3)", "must be an op or a block, not 3"), ("scored(k=relu)", "not relu")):
        with pytest.raises(ModgraphError) as raised:
            loads(f"{scored} {BLOCKS} model m() {{ input x: float[5, 6] z = x -> moe(linear(6), {use}) output z }}")
        (only,) = raised.value.diagnostics
        assert only.code == "MG250"
        assert problem in only.text()


def test_a_list_of_callables_is_an_argument_of_unlike_modules_and_of_loops() -> None:
    body = """
      input x: float[t, d]
      pool p = KINDS
      y = x -> p by (x -> linear(p) -> softmax)
      for k in KINDS { z = y -> k -> linear(6) }
      repeat r[i] in 0..len(KINDS) { y = y -> KINDS[i] }
      output y
    """
    kinds = "[linear(6), linear(3) -> linear(6), identity]"
    first = f"block b(kinds) {{ {body.replace('KINDS', 'kinds')} }}"
    passed = loads(model_with(first, f"b({kinds})"))
    written = body.replace("pool p = KINDS", f"pool p = {kinds}").replace("KINDS", "kinds")
    other = loads(model_with(f"block b(kinds={kinds}) {{ {written} }}", "b"))
    assert passed.ir == other.ir
    assert {"z.b.p.1.linear.weight", "z.b.r.1.y.linear2.weight", "z.b.z.2.linear.weight"} <= {
        weight.name for weight in weights_of(passed.ir)
    }


@pytest.mark.parametrize("bound", ["n = 3", "n = x -> linear(3)", "if true { n = 3 }"])
@pytest.mark.parametrize("frozen", ["{}", "frozen {{ {} }}"])
def test_a_name_that_is_bound_anew_changes_no_module_above_it(bound: str, frozen: str) -> None:
    rest = "output y = x -> p -> sum(axis=p) -> m"
    declared = frozen.format("pool p[2] = linear(n) module m = linear(2 * n)")
    anew, once = (loads(f"model m(n=5) {{ input x: float[4, 6] {declared} {each} {rest} }}").ir for each in (bound, ""))
    widths = [
        {weight.name: weight.shape for weight in weights_of(graph) if weight.name[0] in "pm"} for graph in (anew, once)
    ]
    assert widths[0] == widths[1]
