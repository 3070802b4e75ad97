"""The graph: its text and JSON, what its hash depends on, and what damaged JSON gives."""

from __future__ import annotations

import json
from pathlib import Path

import networkx
import pytest

from modgraph.ir import UnreadableGraph, from_json, to_json
from modgraph.ir.text.parse import parse_text
from modgraph.program import load, loads
from tests.examples import GRU, OP_EXAMPLES, ROUTER_EXAMPLES, SEQUENCE, TRANSFORMER, TWO_SCANS

SPECS = {
    "smn": Path("specs/smn.mod").read_text(),
    "transformer": TRANSFORMER,
    "sequence": SEQUENCE,
    "gru": GRU,
    "two": TWO_SCANS,
}
ALL = {**SPECS, **OP_EXAMPLES, **ROUTER_EXAMPLES}


@pytest.mark.some(70)
@pytest.mark.parametrize("name", ALL)
def test_json_reads_back_to_the_same_graph(name: str) -> None:
    graph = loads(ALL[name]).ir
    again = from_json(json.loads(json.dumps(to_json(graph))))
    assert list(again.input_types) == list(graph.input_types)
    assert again == graph
    assert again.hash() == graph.hash()
    assert str(again) == str(graph)


def test_layout_comments_and_the_order_of_independent_statements_keep_the_hash() -> None:
    plain = "model m() { input x: float[4] a = x -> linear(3) b = x -> linear(2) output a output b }"
    other = """model other() {  # a comment
        input x: float[4]
        b = x -> linear(
            2)
        a = x
            -> linear(3)   output b   output a
    }"""
    assert loads(plain).ir.hash() == loads(other).ir.hash()


SMN = SPECS["smn"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("iterations=4", "iterations=3"),
        ("modules=2", "modules=3"),
        ("modulated_linear(384)", "modulated_linear(256)"),
        ("kernel=5", "kernel=3"),
        ("-> mean", "-> flatten"),
        ("-> relu -> max_pool(2)", "-> gelu -> max_pool(2)"),
        ("balance=0.001", "balance=0.002"),
        ('over="example"', 'over="batch"'),
        ("glimpses", "eyes"),
        ("output logits", "output answer = logits"),
        ("bias=false", "bias=true"),
    ],
)
def test_every_meaningful_edit_changes_the_hash(old: str, new: str) -> None:
    assert old in SMN
    assert loads(SMN).ir.hash() != loads(SMN.replace(old, new)).ir.hash()


def test_show_prints_the_graph_of_smn(request: pytest.FixtureRequest) -> None:
    golden = Path(__file__).parent / "smn.txt"
    text = str(load("specs/smn.mod").ir) + "\n"
    if request.config.getoption("--refresh"):
        golden.write_text(text)
    assert golden.read_text() == text


@pytest.mark.parametrize("name", SPECS)
def test_text_reads_back_to_the_same_graph(name: str) -> None:
    graph = loads(SPECS[name]).ir
    assert parse_text(str(graph)) == graph
    assert str(parse_text(str(graph))) == str(graph)


def test_a_scan_that_shares_something_with_another_of_its_name_is_unreadable() -> None:
    text = (
        "model m() { input x: float[3, 4] pool p[2] = linear(4) y = x -> p scan y as v { yield v -> p } as s output s }"
    )
    record = to_json(loads(text).ir)
    (scan,) = (node for node in record["nodes"] if node["kind"] == "scan")
    (pool,) = (node for node in scan["region"]["nodes"] if node["kind"] == "pool")
    pool["grown"] = 1
    with pytest.raises(UnreadableGraph, match="p is two things"):
        from_json(record)


def test_a_range_among_parameters_is_stored_as_one() -> None:
    graph = loads("model m(n=-1..10**15, k=[0..3, 2]) { input x: float[4] output x }").ir
    for again in (from_json(json.loads(json.dumps(to_json(graph)))), parse_text(str(graph))):
        assert again.parameters["n"] == range(-1, 10**15)
        assert str(again) == str(graph)


@pytest.mark.parametrize("garbage", [None, 3, [], {}, {"format": 1}, {"format": 4, "nodes": []}, "x"])
def test_what_is_no_graph_is_unreadable(garbage: object) -> None:
    with pytest.raises(UnreadableGraph):
        from_json(garbage)


def test_networkx_sees_every_node_and_edge() -> None:
    graph = loads(SMN).ir
    found = graph.to_networkx()
    assert networkx.is_directed_acyclic_graph(found)
    assert {name: facts["node"] for name, facts in found.nodes(data=True)} == {node.name: node for node in graph}
    for node in graph:
        read = {slot: result.node for slot, result in graph.inputs(node.name).items()} | dict(graph.uses(node.name))
        edges = {slot: source for source, _, slots in found.in_edges(node.name, data="slots") for slot in slots}
        assert edges == read | {axis: result.node for axis, result in graph.lengths(node.name).items()}, node.name
        assert {node.name, *networkx.ancestors(found, node.name)} == graph.ancestors([node.name])
