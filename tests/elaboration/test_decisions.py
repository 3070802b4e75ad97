"""What a router that is written in the language decides: a node that nothing reads, beside what computes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch

import modgraph
from modgraph.ir import DecisionNode, Graph, OpNode, UnreadableGraph, flat_to_json
from modgraph.ops.elementwise import MaskPadding
from modgraph.ops.shape import Rename
from modgraph.passes import INFERENCE, apply_passes
from tests.ir.flat import flat_from_json

ROUND = """router rounds(n=3) for expert {
  input x: float[tokens, dim]
  gates = x -> linear(expert) -> softmax
  v = x -> expert by gates over expert
  repeat round[i] in 0..n { gates = gates * gates -> softmax record gates v = x -> expert by gates over expert }
  output v
}"""


def graph_of(body: str, of: str = "6", router: str = "rounds") -> Graph:
    head = f"input x: float[{of}, 5] pool p[3] = linear(5) router r = {router} y = x -> p by r"
    return modgraph.loads(f"{ROUND} model m() {{ {head} {body} }}").ir


def renames(graph: Graph) -> int:
    return sum(isinstance(node.op, Rename) for node in graph.nodes_of(OpNode))


def masks(graph: Graph) -> int:
    return sum(isinstance(node.op, MaskPadding) for node in graph.nodes_of(OpNode))


def test_a_record_is_renamed_once_where_a_spec_reads_it_and_else_not() -> None:
    plain = graph_of("output y")
    read = graph_of("output y loss importance(r) output g = r.gates -> mean")
    assert renames(plain) == 2, "what is routed on the way in, the value on the way out"
    assert renames(read) == 3, "two read one record"


def test_nothing_reads_a_decision_and_the_value_of_the_body_is_that_of_the_route() -> None:
    graph = graph_of("z = y -> relu output z")
    (node,) = graph.nodes_of(DecisionNode)
    assert not node.types and not graph.users(node.name)
    assert graph.inputs("z.relu")["x"] == graph.inputs(node.name)["value"]


def test_each_record_is_found_after_each_round() -> None:
    (decision,) = graph_of("output y").decisions("r")
    assert [result.node for result in decision.rounds["gates"]] == [f"y.p.round.{i}.gates.softmax" for i in range(3)]
    assert decision.results == {"gates": decision.rounds["gates"][-1]}
    assert (decision.pool.name, str(decision.router.router)) == ("p", "rounds")


def test_routes_by_routers_in_python_are_asked_the_same() -> None:
    text = (
        "model m() { input x: float[6, 5] pool p[3] = linear(5) y = x -> p by (x -> linear(p) -> top_k(1)) output y }"
    )
    (decision,) = modgraph.loads(text).ir.decisions()
    assert decision.facts.chooses_along == "modules"
    assert {name: result.node for name, result in decision.inside.items()} == dict.fromkeys(decision.inside, "y.p")


def test_padding_is_masked_where_there_is_any_and_the_numbers_are_zero() -> None:
    assert masks(graph_of("output y")) == 0
    graph = graph_of("output y", of="time")
    assert masks(graph) == 4, "the value, and the record of each of three rounds"
    model = modgraph.loads(
        f"{ROUND} model m() {{ input x: float[time, 5] pool p[3] = linear(5) router r = rounds "
        "y = x -> p by r output y }"
    ).build()
    batch = {"x": torch.full((2, 4, 5), torch.nan), "time_length": torch.tensor([4, 2])}
    batch["x"][0], batch["x"][1, :2] = torch.randn(4, 5), torch.randn(2, 5)
    found = model.compute(batch, routing=True)
    for value in (found.outputs["y"], found.routing["p.gates"]):
        assert value.isfinite().all() and not value[1, 2:].any() and value[1, :2].any()


def test_inference_keeps_a_decision_as_long_as_its_route() -> None:
    used = apply_passes(graph_of("output y"), INFERENCE)
    (node,) = used.nodes_of(DecisionNode)
    assert node.rounds == 1 and [*used.inputs(node.name)] == ["tokens", "value", "gates"]
    assert not apply_passes(graph_of("z = x -> relu output z"), INFERENCE).nodes_of(DecisionNode)
    assert apply_passes(used, INFERENCE) == used


def test_uses_that_decide_otherwise_are_refused() -> None:
    router = """router either() for p {
      input x: float[tokens, dim] input w: float[tokens, p] record gates = w, choice = w
      y = x -> p by w output y }"""
    body = """input x: float[6, 5] pool p[3] = linear(5) router r = either a = x -> linear(p)
      y = x -> p by r(a -> top_k(1)) {} output y"""
    modgraph.loads(f"{router} model m() {{ {body.format('z = x -> p by r(a -> top_k(1))')} }}")
    with pytest.raises(modgraph.ModgraphError, match="MG249"):
        modgraph.loads(f"{router} model m() {{ {body.format('z = x -> p by r(a -> top_k(2))')} }}")


def decision_of(record: Any) -> Any:
    return next(node for node in record["nodes"] if node["kind"] == "decision")


def router_of(record: Any) -> Any:
    return next(node for node in record["nodes"] if node["name"] == "r")


def as_route(node: Any) -> None:
    """The record of a route in the place of that of a decision."""
    for field in ("records", "rounds", "facts"):
        node.pop(field, None)
    node["kind"] = "route"


def as_declared(node: Any) -> None:
    """The record of a router that Python computes in the place of that of a text."""
    for field in ("text", "given", "defaults"):
        node.pop(field, None)
    node |= {"is": "weighted", "settings": {"over": "p"}}


LIES: dict[str, Callable[[Any], Any]] = {
    "it takes tokens, value, gates": lambda record: decision_of(record)["inputs"].reverse(),
    '"gate" is no role': lambda record: decision_of(record).update(records=[["gates", "gate"]]),
    'no fact "kind"': lambda record: decision_of(record).update(facts={"kind": 1}),
    '"k" is not 0': lambda record: decision_of(record).update(facts={"k": 0}),
    "0 is no number from 1": lambda record: decision_of(record).update(rounds=0),
    "nothing comes out of it": lambda record: decision_of(record).update(types=[{"dtype": "float", "shape": []}]),
    "its router is a text": lambda record: as_route(decision_of(record)),
    "its router has no text": lambda record: as_declared(router_of(record)),
    "with a text": lambda record: router_of(record).update(given=[["n", 3]]),
}


@pytest.mark.parametrize("said", LIES)
def test_a_stored_decision_that_lies_is_refused(said: str) -> None:
    record = json.loads(json.dumps(flat_to_json(graph_of("output y"))))
    LIES[said](record)
    with pytest.raises(UnreadableGraph, match=said):
        flat_from_json(record)


def test_a_router_that_records_only_gates_decides_by_the_choice_of_its_route() -> None:
    spec = """router sparse for expert {
      input x: float[tokens, dim] gates = x -> linear(expert, bias=false) -> relu
      record gates y = x -> expert by gates output y
    }
    model m() { input x: float[6, 5] pool p[3] = linear(5) router r = sparse y = x -> p by r output y }"""
    model = modgraph.loads(spec)
    (decision,) = [each for each in model.ir.decisions() if each.declared]
    assert (decision.label, decision.facts.chooses_along) == ("p", "modules"), "one route gives one decision"
    batch = {"x": torch.randn(4, 6, 5)}
    routing = model.build().compute(batch, losses=False, routing=True).routing
    assert routing.keys() == {"p.gates", "p.choice"}, "no record has a name that the author never wrote"
    assert torch.equal(routing["p.choice"] != 0, routing["p.gates"] > 0), (
        "chosen are the modules with a gate above zero"
    )
