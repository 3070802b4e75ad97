"""What a scan means: its states, names, what it reads and shares, and the mistakes that can be made."""

from __future__ import annotations

import pytest

from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, Result, ScanNode, weights_of
from modgraph.program import loads
from tests.examples import GRU, TWO_SCANS

BLOCKS = """
block inner() { input x: float[4] scan x as v { yield v } as s output s }
block gives() { input x: float[4] yield x output x }
block loses() { input x: float[4] output x loss x -> mean(axis=-1) }
"""


def in_model(body: str) -> str:
    return f"{BLOCKS} model m(n=2) {{ input x: float[time, 4] input c: float[4] {body} }}"


def codes(body: str) -> list[str]:
    try:
        return [diagnostic.code for diagnostic in loads(in_model(body)).warnings]
    except ModgraphError as error:
        return [diagnostic.code for diagnostic in error.diagnostics]


def weights(text: str) -> list[str]:
    return [weight.name for weight in weights_of(loads(text).ir)]


def scan_of(graph: Graph) -> ScanNode:
    (scan,) = graph.nodes_of(ScanNode)
    return scan


def test_weights_of_the_body_stand_below_the_scan_and_shared_ones_where_they_are_declared() -> None:
    assert weights(GRU) == [
        "states.embedding.weight",
        "states.z_r.linear.weight",
        "states.z_r.linear.bias",
        *(f"transition.{j}.linear.{name}" for j in range(3) for name in ("weight", "bias")),
        "controller.weight",
        "controller.noise_weight",
        "logits.linear.weight",
        "logits.linear.bias",
    ]
    names = weights(TWO_SCANS)
    assert "layers.1.x.rnn.cell.0.linear.weight" in names
    assert "states.h.linear.weight" in names
    assert len(names) == len(set(names))


def test_a_second_yield_renames_no_weight_and_no_result() -> None:
    body = "scan x as v with h: float[4] { h = h + v -> linear(4) yield h } as s output s"
    more = "scan x as v with h: float[4] { h = h + v -> linear(4) yield h yield v } as s, t output s output t"
    assert weights(in_model(body)) == weights(in_model(more)) == ["s.h.linear.weight", "s.h.linear.bias"]


def test_results_are_what_is_yielded_and_then_what_routes_record() -> None:
    graph = loads(GRU).ir
    scan = scan_of(graph)
    route = "states.transition"
    (decision,) = graph.decisions("controller")
    assert (decision.name, decision.label) == ("states.n.transition", route)
    assert [*scan.stacked[1:]] == [decision.inside[name] for name in sorted(decision.inside)]
    assert [type_.dimensions for type_ in scan.types] == [("time", 6), *[("time", 1, 3)] * 4]
    assert graph.records()[f"{route}.gates"] == Result("states", 1)
    assert graph.inputs("loss.importance.importance") == {"0": Result("states", 1)}
    assert graph.inputs("states") == {"states.x": Result("states.embedding")}
    assert graph.lengths("states") == {"time": Result("time_length")}


def test_a_value_from_outside_comes_in_once_and_is_the_same_at_every_step() -> None:
    body = "a, b = c -> split(2) scan x as v { y = (v, a, b, b) -> concat yield y + (c, b, b) -> concat } as s output s"
    graph = loads(in_model(body.replace("y + (c, b, b) -> concat", "y"))).ir
    inputs = graph.inputs("s")
    assert inputs["outer.a_b.split"] == Result("a_b.split", 0)
    assert inputs["outer.a_b.split.1"] == Result("a_b.split", 1)
    assert len(inputs) == 3


def test_the_order_of_independent_statements_in_a_body_keeps_the_hash() -> None:
    pools = "pool p[2] = linear(4) pool q[2] = linear(4) router r = noisy_top_k(1) router t = noisy_top_k(1)"
    first, second = "a = v -> p by r", "b = (v + c) -> q by t"
    texts = [
        in_model(f"{pools} scan x as v {{ {one} {two} yield a + b }} as s output s")
        for one, two in ((first, second), (second, first))
    ]
    assert loads(texts[0]).ir.hash() == loads(texts[1]).ir.hash()
    assert loads(texts[0].replace("yield a", "yield b")).ir.hash() != loads(texts[0]).ir.hash()


def test_what_a_body_declares_is_seen_outside_once_and_in_a_repeat_as_a_family() -> None:
    scan = "scan x as v { pool p[2] = linear(4) router r = noisy_top_k(1) yield v -> p by r } as s"
    graph = loads(in_model(f"{scan} g = r.gates -> sum(axis=-3) w = c -> p output g output w loss importance(r)")).ir
    assert graph.inputs("loss.importance.importance") == {"0": Result("s", 1)}
    repeated = scan.replace("as s", "as x")
    graph = loads(in_model(f"repeat b[i] in 0..n {{ {repeated} }} output x loss importance(r)")).ir
    assert graph.inputs("loss.importance.importance") == {"0": Result("b.0.x", 1), "1": Result("b.1.x", 1)}


def test_a_step_reads_the_records_of_its_own_routes() -> None:
    body = """scan x as v { pool p[2] = linear(4) router r = noisy_top_k(1, softmax="before_top_k")
      y = v -> p by r  yield y  yield r.gates -> mean  yield importance(r, over="example") } as s, g, i
      output s output g loss i -> mean(axis=-1)"""
    assert codes(body) == []
    graph = loads(in_model(body)).ir
    assert [type_.dimensions for type_ in scan_of(graph).types[:3]] == [("time", 4), ("time", 2), ("time",)]


MISTAKES = {
    "scan x as v { scan x as w { yield 3 } as q yield v } as s output s": "MG214",
    "scan x as v { scan x as w { c = c + w yield c } as q yield v } as s output s": "MG234",
    "scan x as v { scan v as w { scan w as u { yield u } as q yield w } as q yield v } as s output s": "MG310",
    "scan x as v { z = v -> loses yield z } as s output s": "MG233",
    "scan x as v { input q: float[4] yield v } as s output s": "MG233",
    "scan x as v { target q: float[4] yield v } as s output s": "MG233",
    "scan x as v { output v yield v } as s output s": "MG233",
    "pool p[2] = inner z = c -> p output z": "MG226",
    "z = c -> gives output z": "MG230",
    "scan x as v { z = v -> gives yield z } as s output s": "MG230",
    "scan x as v { c = c + v yield c } as s output s": "MG234",
    "for k in 0..2 { t[k] = c -> relu } scan x as v { t[0] = v yield v } as s output s": "MG234",
    "scan x as v with h: token[5] { yield v } as s output s": "MG311",
    "scan x as v with h: float[other] { yield v } as s output s": "MG311",
    "scan x as v with h: float[3] = c { yield v } as s output s": "MG311",
    "scan x as v with h: float[4] { h = 3 yield v } as s output s": "MG214",
    "scan x as v with h: float[4], h: float[4] { h = h + v yield h } as s output s": "MG208",
    "scan x as v with v: float[4] { yield v } as s output s": "MG208",
    "scan x as v { yield 3 } as s output s": "MG214",
    "scan x as v { yield v yield v } as s, s output s": "MG208",
    "scan 3 as v { yield v } as s output s": "MG214",
    "scan (x, x) as v { yield v } as s output s": "MG214",
    "scan x as v { yield nothing } as s y = s -> relu output y": "MG201",
    "scan nothing as v { yield v } as s y = s -> relu output y": "MG201",
    'scan x as v { z = v -> linear(4, name="v") yield z } as s output s': "MG208",
    'scan x as v { yield v } as s y = x -> linear(4, name="s") output y': "MG208",
    'pool p[2] = linear(4) y = c -> linear(4, name="p") scan x as v { yield v -> p -> mean } as s output s': "MG208",
    "module e = linear(4) y = c -> e scan x as v { yield (v, v) -> concat -> e } as s output s output y": "MG304",
}


@pytest.mark.parametrize("body", MISTAKES)
def test_a_mistake_is_reported_once_and_brings_no_other(body: str) -> None:
    assert codes(body) == [MISTAKES[body]]


def test_all_mistakes_of_a_body_are_reported_in_one_run() -> None:
    body = "scan nothing as v with h: float[4] { h = h + v -> liner(4) yield missing } as s output s"
    assert codes(body) == ["MG201", "MG202", "MG201"]


def test_weights_of_a_scan_that_reach_nothing_are_warned_of() -> None:
    assert codes("scan x as v { z = v -> linear(4) yield v } as s output s") == ["MG404"]
    assert codes("scan x as v { yield v -> linear(4) } as s output x") == ["MG404"]
    assert codes("scan x as v { pool p[2] = linear(4) yield v } as s output s") == ["MG401"]
    assert codes("scan x as v { yield v -> linear(4) } as s scan s as v { yield v -> linear(4) } as s output s") == [
        "MG406"
    ]


def test_a_router_used_only_in_a_scan_wants_a_balance_loss() -> None:
    scan = "scan x as v { yield v -> p by r } as s output s loss s -> last -> mean(axis=-1)"
    pool = "pool p[2] = linear(4) router r = linear(1)"
    assert codes(f"{pool} {scan}") == ["MG407"]
    assert codes(f"{pool} {scan} loss importance(r)") == []


def test_a_step_costs_as_much_as_the_sequence_is_long() -> None:
    program = loads(GRU)
    once, ten = program.cost(time=1), program.cost(time=10)
    assert once.parameters == ten.parameters == 11 * 12 + 12 + 3 * (11 * 6 + 6) + 2 * 33 + 20 * 5 + 6 * 20 + 20
    assert (once.macs, once.active_macs) == (11 * 12 + 3 * 66 + 33 + 120, 11 * 12 + 66 + 33 + 120)
    assert (ten.macs, ten.active_macs) == (10 * once.macs, 10 * once.active_macs)
    assert ten.nodes["transition"].active_macs == 660
