"""The axes of a block's inputs: two words mean two axes, whatever a use sends."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from modgraph import Program
from modgraph.diagnostics import ModgraphError
from modgraph.ir import OpNode, from_json, grow, to_json, weights_of
from modgraph.ir.text.parse import parse_text
from modgraph.ops.shape import Rename
from modgraph.program import load, loads

BLOCKS = """block pairs(w) {
  input a: float[one, w]
  input b: float[other, w]
  output y = (a, b) -> contract
}
block outer() { input a: float[one, 4] input b: float[one, 4] output y = (a, b) -> pairs(4) }
block triples() {
  input a: float[one, 4] input b: float[other, 4] input c: float[third, 4]
  output y = (((a, b) -> contract) * ((a, c) -> contract)) * ((b, c) -> contract)
}
block weighted() {
  input a: float[one, 4] input b: float[other, 4] input c: float[other, 4]
  w = (a, b) -> contract
  output y = c by w over other
}
block both() {
  input a: float[one, 4] input b: float[other, 4]
  s = (a, b) -> contract
  output y[0] = s -> mean(axis=one)
  output y[1] = s -> softmax(axis="other")
}
router hinted() for p {
  input x: float[tokens, dim]
  input hint: float[other, dim]
  gates = (x -> linear(p)) * ((x, hint) -> contract -> mean(axis=other)) -> softmax
  record gates
  output y = x -> p by gates
}
"""
INPUTS = "input x: float[time, 4] input z: float[memory, 4] input at: float[place=3, 4] input w: float[3, 4]"
PAIRS, ROUNDS = "ntd,nsd->nts", "nab,ncb,ncd,ned,nef->naf"
USES = {  # the use, the einsum that it means, and its axes
    "padded": ("y = (x, x) -> pairs(4)", PAIRS, "[time, other=time]"),
    "two sequences": ("y = (x, z) -> pairs(4)", PAIRS, "[time, memory]"),
    "named and sized": ("y = (at, at) -> pairs(4)", PAIRS, "[place=3, other=3]"),
    "plain": ("y = (w, w) -> pairs(4)", PAIRS, "[3, 3]"),
    "module": ("module m = pairs(4) y = (x, x) -> m", PAIRS, "[time, other=time]"),
    "family": ("for k in 0..2 { v[k] = 1 * x } y = v -> pairs(4)", PAIRS, "[time, other=time]"),
    "block in a block": ("y = (x, x) -> outer", PAIRS, "[time, other=time]"),
    "a reading": ('y = (x -> rename(time="key"), x) -> pairs(4)', PAIRS, "[key=time, time]"),
    "a reading twice": ('r = x -> rename(time="other") y = (r, r) -> pairs(4)', PAIRS, "[other=time, other2=time]"),
    "two uses that meet": ("y = 0.5 * ((x, x) -> pairs(4)) + ((x, 0.5 * x) -> pairs(4))", PAIRS, "[time, other=time]"),
    "given again": ("y = (x, x, x) -> weighted", "ntd,nsd,nse->nte", "[time, 4]"),
    "three": ("y = (x, x, x) -> triples", "ntd,nsd,nte,nue,nsf,nuf->ntsu", "[time, other=time, third=time]"),
    "rounds": (
        "v = x repeat l[i] in 0..2 { v = (x, x, v) -> weighted } y = v",
        "nab,ncb,ncd,ned,nef->naf",
        "[time, 4]",
    ),
    "scan": ("scan at as v { yield v -> sum(axis=-1) } as y", "npd->np", "[place=3]"),
}


def in_model(body: str, blocks: str = BLOCKS) -> str:
    return f"{blocks} model m() {{ {INPUTS} pool p[2] = linear(4) {body} output y }}"


def values() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = {"x": (5, 4), "z": (6, 4), "at": (3, 4), "w": (3, 4)}
    return {name: torch.randn(2, *shape, generator=generator) for name, shape in shapes.items()}


def axes_of(program: Program, output: str = "y") -> str:
    return str(program.ir.type_of(program.ir.outputs[output])).removeprefix("float")


@pytest.mark.parametrize("use", USES)
def test_words_of_inputs_stay_apart_whatever_a_use_gives(use: str) -> None:
    body, equation, axes = USES[use]
    program = loads(in_model(body))
    assert axes_of(program) == axes
    given = values()
    found = program.build().compute(given).outputs["y"]
    operands = {"named and sized": ("at", "at"), "plain": ("w", "w"), "two sequences": ("x", "z")}
    first, second = (given[name] for name in operands.get(use, ("x", "x")))
    expected = given["at"].sum(-1) if use == "scan" else torch.einsum(equation, first, *[second] * equation.count(","))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("use", USES)
def test_programs_with_words_apart_read_back(use: str) -> None:
    graph = loads(in_model(USES[use][0])).ir
    assert parse_text(str(graph)) == graph == from_json(to_json(graph))


def test_a_call_reads_an_axis_again_below_its_path_without_weights() -> None:
    graph = loads(in_model("y = (x, x) -> pairs(4)")).ir
    renames = [node for node in graph.nodes_of(OpNode) if isinstance(node.op, Rename)]
    assert [str(node.types[0]) for node in renames] == ["float[y.pairs.other=time, 4]", "float[time, other=time]"]
    assert all(node.name.startswith("y.pairs.axes.") for node in renames) and not weights_of(graph)


def test_results_of_a_body_have_an_axis_by_the_name_of_its_use() -> None:
    program = loads(in_model("v = (x, x) -> both output mean = v[0] y = v[1]"))
    assert axes_of(program, "mean") == "[time]" and axes_of(program) == "[time, other=time]"


def test_rounds_with_words_apart_share_a_definition() -> None:
    head = "block head() { input a: float[one, 4] input b: float[other, 4] output y = (a -> linear(4), b) -> contract }"
    graph = loads(in_model("repeat l[i] in 0..3 { s[i] = (x, x) -> head } y = s[0] + s[1] + s[2]", BLOCKS + head)).ir
    assert str(graph).count("block head") == 1 and str(graph).count("round l") == 1
    assert {weight.owner for weight in weights_of(graph)} == {f"l.{i}.s.{i}.head.y.linear" for i in range(3)}


def test_padding_is_read_along_no_word() -> None:
    model = loads(in_model("y = (x, x, x) -> weighted")).build()
    x, ends = values()["x"], torch.tensor([5, 2])
    soiled = x.clone()
    soiled[1, 2:] = 7e3
    found = model.compute(values() | {"x": soiled, "time_length": ends}).outputs["y"]
    torch.testing.assert_close(found[1, :2], torch.einsum("td,sd,se->te", *[x[1, :2]] * 3))


def test_an_axis_of_modules_grows_in_both_places() -> None:
    graph = loads(in_model("h = x -> mean -> p y = (h, h) -> pairs(4)")).ir
    assert str(graph.type_of(graph.outputs["y"])) == "float[p=2, other=2]"
    grown = grow(graph, "p", 1)
    assert str(grown.type_of(grown.outputs["y"])) == "float[p=3, other=3]"


def test_a_router_reads_a_hint_of_its_tokens() -> None:
    program = loads(in_model("router r = hinted y = x -> p by r(x) output gates = r.gates"))
    assert axes_of(program) == "[time, 4]" and axes_of(program, "gates") == "[time, p=2]"
    model, x = program.build(seed=1), values()["x"]
    found = model.compute(values()).outputs["gates"]
    weight, bias = (model.state_dict()[f"r.gates.linear.{name}"] for name in ("weight", "bias"))
    mean = torch.einsum("ntd,nsd->nt", x, x) / x.shape[1]
    torch.testing.assert_close(found, ((x @ weight.T + bias) * mean[..., None]).softmax(-1))


def test_tokens_of_modules_are_one_axis_and_a_second_word_is_refused(tmp_path: Path) -> None:
    (tmp_path / "blocks.mod").write_text(BLOCKS)
    spec = tmp_path / "m.mod"
    spec.write_text(in_model("pool q[3] = pairs(4) y = (x, x) -> q", 'import pairs from "blocks.mod"'))
    with pytest.raises(ModgraphError) as raised:
        load(spec)
    (found,) = raised.value.diagnostics
    assert found.code == "MG306" and found.span is not None and found.span.source.name == str(spec)
    assert '"other"' in found.text() and "for both" in found.text() and len(found.notes) >= 2
    declared = found.advice().partition(": ")[2]
    assert declared == "input b: float[one, w]"


def test_mistakes_in_a_body_name_an_axis_by_its_word() -> None:
    wrong = "block wrong() { input a: float[one, 4] input b: float[other, 4] output y = (a, b) -> concat }"
    with pytest.raises(ModgraphError) as raised:
        loads(in_model("y = (x, x) -> wrong", wrong))
    assert "other=time" in str(raised.value) and "y.wrong" not in str(raised.value)
