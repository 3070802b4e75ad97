"""Loops that end by a value: what they mean in the graph, what they cost, and the mistakes that can be made."""

from __future__ import annotations

import pytest

from modgraph.diagnostics import ModgraphError
from modgraph.inspect.cost_text import note_upper_bound
from modgraph.ir import Graph, Result, ScanNode, from_json, to_json
from modgraph.ir.text.parse import parse_text
from modgraph.passes import INFERENCE, apply_passes, list_scans
from modgraph.program import loads

HEAD = "input x: float[time, 4] input q: float[4] input w: token[time, 9] target t: class[3]"
HALTING = """scan 0..8 as n with h: float[time, 4] = x, total: float[time] {
  h = h -> linear(4) -> tanh total = total + (h -> max(axis=-1)) yield (h, n + total) } until total > 0.99 as y, z"""
ROUND = "h = h -> linear(4) -> tanh yield h"
OF_Q = f"scan 0..8 as n with h: float[4] = q {{ {ROUND} }}"


def graph_of(body: str) -> Graph:
    return loads(f"model m(k=0) {{ {HEAD} {body} output y }}").ir


def scan_of(graph: Graph) -> ScanNode:
    (scan,) = graph.nodes_of(ScanNode)
    return scan


def test_it_is_a_scan_over_the_numbers_of_its_rounds_that_holds_what_it_yields() -> None:
    graph = graph_of(HALTING)
    scan = scan_of(graph)
    assert (scan.carried, scan.final, scan.lowering) == (2, 2, "")
    assert [str(type_) for type_ in scan.types] == ["float[time, 4]", "float[time]"]
    assert str(graph.type_of(graph.inputs("y")["y.n"])) == "float[8]"
    assert str(graph.type_of(graph.inputs("y")["y.total"])) == "float[time]"
    assert scan.going == Result("y.until.mask_padding"), "padding would go on to the end"
    assert [*list_scans(graph)] == [("y", "steps, one after another; it ends by a value")]
    assert parse_text(str(graph)) == graph == from_json(to_json(graph))


def test_inference_keeps_what_ends_the_loop_though_nothing_else_reads_it() -> None:
    graph = apply_passes(graph_of(HALTING.replace("h, n + total", "n * h, h")), INFERENCE)
    scan = scan_of(graph)
    assert (scan.states, scan.final, len(scan.types)) == (("y.h", "y.total"), 1, 1)


def test_weights_of_the_rounds_are_a_sequence_too() -> None:
    scan = "weight r: float[5, 4] = ones scan r as v with h: float[4] = q { h = h * v yield h } until h > 2 as y"
    assert [str(type_) for type_ in scan_of(graph_of(scan)).types] == ["float[4]"]


def test_a_range_without_until_stacks_its_rounds() -> None:
    assert str(scan_of(graph_of(f"{OF_Q} as y")).types[0]) == "float[8, 4]"


def test_the_cost_is_that_of_all_rounds_and_says_so() -> None:
    program = loads(f"model m() {{ {HEAD} {HALTING} output y }}")
    assert program.cost(time=5).macs == 8 * 5 * 4 * 4
    assert note_upper_bound(program.ir) == [
        "MACs are an upper bound: the rounds of y end by a value, and all are counted"
    ]


MISTAKES = {
    f"scan as n with h: float[4] = q {{ {ROUND} }} until n > 3 as y": "MG104 scan x as v",
    OF_Q.replace("0..8", "0..0") + " until n > 3 as y": "MG215 0..8",
    OF_Q.replace("0..8", "0..k") + " until n > 3 as y": "MG215 0..8",
    OF_Q.replace("0..8", "0..10**9") + " until n > 3 as y": "MG216 lower",
    OF_Q.replace("0..8", "8") + " until n > 3 as y": "MG214 scan 0..8 as n",
    f"{OF_Q} until w as y": "MG235 compare it",
    f"{OF_Q} until t as y": "MG235 compare it",
    f"{OF_Q} until t == 2 as y": "MG235 read a state",
    f"{OF_Q} until (q -> max(axis=-1)) > 1 as y": "MG235 read a state",
    f"{OF_Q} until k > 1 as y": "MG214 an input",
    f"{OF_Q} until (h -> batch_mean) > 1 as y": "MG235 without batch_mean",
    f"{OF_Q} until (x -> mean(axis=-1)) * n > 1 as y": 'MG235 state "h"',
    OF_Q.replace("yield h", "yield n") + " until h > 1 as y": 'MG235 "y"',
    OF_Q.replace("yield h", "h = h -> batch_mean yield q") + " until n > 1 as y": "MG311",
    OF_Q.replace("yield h", "h = h - (h -> batch_mean) yield h") + " until n > 1 as y": "MG301 batch_mean",
    f"scan 0..8 as n with h: float[other, 4] {{ {ROUND} }} until n > 3 as y": "MG311 start it as a value",
    f"{OF_Q} until n > 3": "MG104 as",
    "repeat r[i] in 0..8 { x = x -> tanh } until x > 3 y = x": "MG104 until follows the body of a scan",
}


@pytest.mark.parametrize("body", MISTAKES)
def test_a_mistake_is_reported_once_with_a_way_out(body: str) -> None:
    code, _, words = MISTAKES[body].partition(" ")
    with pytest.raises(ModgraphError) as caught:
        graph_of(body)
    assert [each.code for each in caught.value.diagnostics] == [code]
    (message,) = caught.value.diagnostics
    assert words in f"{message.text()} {message.advice()}"


def test_until_remains_a_name() -> None:
    body = "until = q -> tanh scan x as until with h: float[4] { h = h + until yield h } until n > 3 as y"
    with pytest.raises(ModgraphError, match='unknown name "n"'):
        graph_of(body)
    assert graph_of("until = q -> tanh y = until -> linear(2)").outputs["y"] == Result("y.linear")


def test_an_output_that_a_target_ends_reads_the_target() -> None:
    body = f"{OF_Q.replace('until', '')} until (t == 2) * n > 1 as y"
    with pytest.raises(ModgraphError) as caught:
        graph_of(body)
    assert [each.code for each in caught.value.diagnostics] == ["MG264"]
