"""Routers that a spec defines: what they are to the tools, where they may be used, what is told of mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import modgraph
from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.ir import from_json, to_json
from modgraph.ir.text.parse import parse_text
from modgraph.passes import INFERENCE, apply_passes
from modgraph.prelude import routers
from modgraph.types import format_shape

SOFT = """router soft() for p {
  input x: float[tokens, dim]
  gates = x -> linear(p) -> softmax
  record gates
  y = x -> p by gates
  output y
}"""
SWITCH = """router switch(k=1) for expert {
  input x: float[tokens, dim]
  scores = x -> linear(expert, bias=false)
  chosen = scores -> top_k(k)
  gates = (scores -> softmax) * chosen
  record gates, scores: logits, choice = chosen
  y = x -> expert by gates
  output y
}"""


def model(definition: str, body: str) -> str:
    return f"{definition} model m() {{ {body} }}"


def message_of(text: str) -> str:
    with pytest.raises(ModgraphError) as caught:
        modgraph.loads(text)
    return str(caught.value)


def test_a_graph_reads_back_and_loses_earlier_rounds_in_inference() -> None:
    body = "input x: float[6, 5] pool p[3] = linear(4) router r = agreement(3) y = x -> p by r output y"
    graph = modgraph.loads(model("", body)).ir
    assert from_json(to_json(graph)) == graph == parse_text(str(graph))
    lean = apply_passes(graph, INFERENCE)
    assert [*lean.inputs("y.p")] == ["tokens", "value", "gates", "scores"]
    assert from_json(to_json(lean)) == lean


def test_one_router_serves_values_of_other_shapes_with_one_set_of_weights() -> None:
    body = """input x: float[2, time, 5] input one: float[5] input xs: float[n, 3, 5] pool p[4] = linear(5) -> tanh
      router r = switch(2) y = x -> p by r z = one -> p by r
      scan xs as v with h: float[3, 5] { h = h + v -> p by r yield h } as states
      output y output z output states loss importance(r)"""
    program = modgraph.loads(model(SWITCH, body))
    built = program.build()
    assert sum(name.startswith("r.") for name in built.state_dict()) == 1
    batch = {"x": torch.randn(2, 2, 4, 5), "one": torch.randn(2, 5), "xs": torch.randn(2, 3, 3, 5)}
    found = built.compute(batch, routing=True)
    assert found.routing["z.p.gates"].shape == (2, 1, 4) and (found.routing["y.p.choice"].sum(-1) == 2).all()


PER_IMAGE = """router image() for expert {
  input x: float[tokens, dim]
  scores = x -> mean(axis=tokens) -> linear(expert)
  chosen = scores -> top_k(1)
  gates = (scores -> softmax) * chosen
  far = abs(scores)
  record gates, scores: logits, choice = chosen, novelty = far
  y = x -> expert by gates over expert
  output y
}"""


AT_ONCE = """input x: float[2, time, 5] input z: float[5, 5] input one: float[5] input xs: float[n, 3, 5]
  pool p[4] = linear(5) -> tanh router r = image y = x -> p by r u = z -> p by r w = one -> p by r
  scan xs as v with h: float[3, 5] { h = h + v -> p by r yield h } as states
  output y output u output w output states loss importance(r)"""


def test_one_decision_for_all_tokens_has_a_record_for_each_but_a_novelty() -> None:
    program = modgraph.loads(model(PER_IMAGE, AT_ONCE))
    types = {name: program.ir.type_of(result).dimensions for name, result in program.ir.records().items()}
    tokens = {"y.p": (2, "time"), "u.p": (5,), "w.p": (1,), "states.p": ("n", 3)}
    fewer = {"y.p": (2,), "u.p": (), "w.p": (), "states.p": ("n",)}
    assert {each.label: format_shape(each.token_axes) for each in program.ir.decisions()}.items() >= {
        route: f"[{', '.join(map(str, axes))}]" for route, axes in tokens.items()
    }.items()
    for route in tokens:
        assert {types[f"{route}.{name}"] for name in ("gates", "scores", "choice")} == {(*tokens[route], 4)}
        assert types[f"{route}.novelty"] == (*fewer[route], 4)
    built = program.build().double()
    x, length = torch.randn(2, 2, 4, 5, dtype=torch.float64), torch.tensor([4, 2])
    batch = {"x": x, "z": torch.randn(2, 5, 5).double(), "one": torch.randn(2, 5).double()}
    batch |= {"xs": torch.randn(2, 3, 3, 5).double(), "time_length": length, "n_length": torch.tensor([3, 1])}
    found = built.compute(batch, routing=True)
    linear = built.get_submodule("r.scores.linear")
    for example, last in enumerate(length):
        shares = linear(x[example, :, :last].mean(1)).softmax(-1)
        expected = (shares * (shares == shares.max(-1, keepdim=True).values))[:, None].expand(2, last, 4)
        torch.testing.assert_close(found.routing["y.p.gates"][example, :, :last], expected)
    assert not found.routing["y.p.choice"][1, :, 2:].any()


@pytest.mark.slow
def test_one_decision_for_all_tokens_is_exported(tmp_path: Path) -> None:
    modgraph.export(modgraph.loads(model(PER_IMAGE, AT_ONCE)).build(), tmp_path / "m.onnx", routing=True)


def test_a_sample_has_a_record_for_those_that_it_is_sampled_for() -> None:
    sampled = PER_IMAGE.replace("chosen = scores -> top_k(1)", "chosen = scores -> log_softmax -> draw")
    body = "input x: float[time, 5] pool p[4] = linear(5) router r = image y = x -> p by r output y"
    assert "MG246" in message_of(model(sampled, body)) and "choice must be [time, p=4]" in message_of(
        model(sampled, body)
    )


def test_operands_and_pools_after_the_first() -> None:
    definition = """router by_task(k=1) for p, q {
      input x: float[tokens, dim]
      input hint: float[tokens, other]
      scores = (hint -> linear(p)) + ((x -> q) -> mean(axis=-1))
      chosen = scores -> top_k(k)
      record gates = chosen, choice = chosen, scores: logits
      y = x -> p by chosen
      output y
    }"""
    body = "input x: float[5] input task: float[2] pool p[3] = linear(4) pool q[p] = linear(1) router r = by_task"
    program = modgraph.loads(model(definition, f"{body} y = x -> p by r(q, task) output y"))
    assert program.build()(torch.randn(3, 5), torch.randn(3, 2)).shape == (3, 4)
    assert "MG248" in message_of(model(definition, f"{body} y = x -> p by r(task) output y"))
    assert "MG223" in message_of(model(definition, f"{body} y = x -> p by r(q) output y"))


def test_traits_follow_from_the_text() -> None:
    body = "input x: float[6, 5] pool p[3] = linear(4) router r = {} y = x -> p by r output y"
    texts = (("soft", SOFT), ("switch", SWITCH), ("agreement", ""))
    graphs = [modgraph.loads(model(text, body.replace("{}", name))).ir for name, text in texts]
    found = [decision.facts for graph in graphs for decision in graph.decisions("r")]
    assert [each.chooses_along for each in found] == [None, "modules", None]
    assert [each.k for each in found] == [0, 1, 0]
    assert [each.one_for_each for each in found] == ["sender", "sender", "module"]
    assert all(each.balanced for each in found)


def test_an_imported_definition_comes_before_the_vocabularys(tmp_path: Path) -> None:
    (tmp_path / "routers.mod").write_text(SOFT.replace("router soft", "router linear"))
    spec = tmp_path / "m.mod"
    body = "input x: float[6, 5] pool p[3] = linear(4) router r = linear y = x -> p by r output y"
    spec.write_text(f'import linear from "routers.mod" model m() {{ {body} }}')
    assert {*modgraph.load(spec).ir.records()} == {"p.gates"}


MISTAKES = {
    "y = x -> p by soft": 'write, for example|router r = soft|the kind of router "soft"',
    "router r = sofd y = x -> p by r": 'did you mean "soft"',
    "router r = soft(3) y = x -> p by r": "MG20",
    "router r = soft y = x -> p by r over p": "leave it out",
    "router r = soft y = (x, x) -> p by r": "error",
    "router r = soft y = x -> p by r(x)": 'router "soft" takes 1 inputs, not 2',
    "router r = soft y = x -> p by r z = r.scores": "soft records: gates",
    "record gates = x y = x": "MG244",
    "y = x -> soft": "error",
    "router r = truncated_kernel(3.0) y = x -> p by r": "truncation of truncated_kernel must be at most 2, not 3.0",
}


@pytest.mark.parametrize("statement", MISTAKES)
def test_mistakes_are_reported(statement: str) -> None:
    message = message_of(model(SOFT, f"input x: float[5, 4] pool p[2] = linear(3) {statement} output y"))
    assert any(part in message for part in MISTAKES[statement].split("|")), message


ASKING = """
router asking(k=1, mode="sum", share=0.5, deep=false) for p {
  require k >= 1 and k <= len(p) and mode in ["sum", "mean"]
  require share > 0 and 1 >= share
  require k + 1 < 5 or deep
  input x: float[tokens, dim]
  y = x -> p by (x -> linear(p) -> top_k(k))
  output y
}
"""
REFUSED = {
    "k=0": "k of asking must be at least 1, not 0|write k=1",
    'mode="mea"': 'mode of asking must be one of "sum", "mean", not "mea"|did you mean "mean"?',
    "share=0": "share of asking must be greater than 0, not 0.0|choose a number above 0",
    "share=2.0": "share of asking must be at most 1, not 2.0|write share=1",
    "k=3": "k of asking must be at most 2, not 3|write k=2",
    "k=9": "k and deep of asking must satisfy k + 1 < 5 or deep, not k=9, deep=false",
    "k=1.5": "k of asking must be a whole number, not 1.5|write it like its default: k=1",
}


@pytest.mark.parametrize("argument", REFUSED)
def test_what_a_definition_requires_is_reported_once_where_the_argument_stands(argument: str) -> None:
    declared = f"router r = asking({argument})"
    body = f"input x: float[5, 4] pool p[2] = linear(4) {declared} repeat b[i] in 0..3 {{ x = x -> p by r }} output x"
    with pytest.raises(modgraph.ModgraphError) as error:
        modgraph.loads(model(ASKING, body))
    (mistake,) = error.value.diagnostics
    assert mistake.code == "MG250" and mistake.span is not None
    assert mistake.span.source.text[mistake.span.start : mistake.span.end] == argument
    for part in REFUSED[argument].split("|"):
        assert part in f"{mistake.text()}\n{mistake.advice()}"


def test_models_and_blocks_require_too() -> None:
    text = "block b(k=1) { require k > 1 input x: float[4] y = x -> linear(k) output y } "
    text += "model m(n=2) { require n < 4 require = n input x: float[4] y = x -> b(require) output y }"
    assert modgraph.loads(text).ir
    with pytest.raises(modgraph.ModgraphError, match="n of m must be less than 4, not 5"):
        modgraph.loads(text, n=5)
    with pytest.raises(modgraph.ModgraphError, match="k of b must be greater than 1, not 1"):
        modgraph.loads(text, n=1)


def test_a_mistake_in_the_vocabularys_text_is_reported_where_it_is_used() -> None:
    message = message_of(
        "model m() {\n input x: float[5, n]\n pool p[2] = gelu\n router r = truncated_kernel\n"
        " y = x -> p by r\n output y\n}"
    )
    assert "5 |  y = x -> p by r" in message and "in the text of the router" in message


@pytest.mark.parametrize("definition", [SOFT, SWITCH])
def test_a_file_of_only_routers_is_checked(definition: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "routers.mod"
    path.write_text(definition)
    assert main(["check", str(path)]) == 0
    path.write_text(definition.replace("softmax", "sofmax"))
    assert main(["check", str(path)]) == 1
    assert "sofmax" in capsys.readouterr().err


FIRST = ("agreement", "categorical", "cosine")  # of each way to choose


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each in FIRST else pytest.mark.slow) for each in routers()]
)
def test_those_of_the_vocabulary_are_exported_in_a_scan_too(name: str, tmp_path: Path) -> None:
    body = f"""input xs: float[time, 5, 6] input one: float[6] pool p[3] = linear(4) router r = {name} z = one -> p by r
      scan xs as x {{ y = x -> p by r yield y }} as ys output ys output z"""
    modgraph.export(modgraph.loads(model("", body)).build(), tmp_path / "m.onnx", routing=True)
