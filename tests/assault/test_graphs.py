"""Stored graphs with parts dropped, doubled, exchanged or replaced: unreadable, or graphs like any other."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import pytest

from modgraph.ir import UnreadableGraph, flat_to_json, from_json, to_json
from modgraph.program import loads
from tests.assault.campaign import campaign
from tests.assault.graphs import derived, judge, judged
from tests.ir.flat import flat_from_json
from tests.nested_pools import TWO_LEVELS

PARTS = 20


def test_damaged_graphs_are_unreadable_or_usable() -> None:
    outcomes = [judge(n) for n in range(150)]
    assert outcomes.count("unreadable") > 110
    assert outcomes.count("read") > 1


LYING = """model lying(n=2) {
  input  x: float[time, 4]  input start: float[4]  target y: class[time, kind=3]
  module enc = linear(4) -> tanh
  pool   p[n] = linear(4) -> relu
  router r = noisy_top_k(1)
  scan x as v with h: float[4] = start, g: float[4] {
    h = (v -> enc) + h * start
    g = g + (h -> p by r)
    yield g
  } as s
  z = (x -> enc, s) -> concat -> linear(kind)
  grow p by r when (z -> batch_mean -> max(axis=kind)) > 1
  output z
  loss cross_entropy(z, y)
  loss 0.1 * importance(r)
}"""


@pytest.mark.parametrize("text", [LYING, TWO_LEVELS], ids=["a scan", "pools in pools"])
@pytest.mark.parametrize("share", [12, pytest.param(1, marks=pytest.mark.slow)])
def test_what_follows_from_the_rest_cannot_be_changed_by_itself(text: str, share: int) -> None:
    graph = loads(text).ir
    accepted, count = [], 0
    for node, record in islice(derived(graph), 0, None, share):
        count += 1
        try:
            same = from_json(record).hash() == graph.hash()
        except UnreadableGraph as error:
            assert error.field, f"{error} names no place"
        else:
            accepted += [] if same else [(node, record)]
    assert count > 200 // share
    assert [node for node, _ in accepted] == []


def route(record: Any) -> Any:
    (scan,) = (node for node in record["nodes"] if node["kind"] == "scan")
    return next(node for node in scan["region"]["nodes"] if node["kind"] == "route")


@pytest.mark.parametrize(
    ("node", "change", "place"),
    [
        ("z.enc.linear", {"owner": "z.linear"}, 'field "owner": z.enc.linear has other weights'),
        ("z.enc.tanh", {"owner": "enc.linear"}, 'field "owner": z.enc.linear has other weights'),
        ("z.linear", {"owner": "p"}, 'field "owner"'),
        ("z.linear", {"owner": "enc.linear.more"}, "lie below those of enc.linear"),
        ("z.linear", {"size": 3}, 'node "z.linear", field "size": is not known here'),
        ("z.concat", {"initial": {"kind": "zeros"}}, 'node "z.concat", field "initial"'),
        ("z.linear", {"initial": {"kind": "normal", "scale": -1.0}}, 'field "initial": normal(-1.0)'),
        ("z.linear", {"settings": {"width": 3, "depth": 1}}, '"linear" has no setting "depth"'),
        ("z.linear", {"settings": {}}, '"linear" needs the setting "width"'),
        ("x", {"types": [{"dtype": "float", "shape": ["time", 4], "per": "batch"}]}, 'node "x", field "types"'),
        ("loss.cross_entropy", {"inputs": [["x", "z.linear", 0]]}, 'field "inputs": a loss is a number'),
        ("time_length", {"types": [{"dtype": "length", "shape": [], "of": "chars"}]}, "tells the lengths of time"),
        ("output.z", {"label": None}, 'node "output.z", field "label"'),
        ("z.concat", {"inputs": [["1", "s", 0], ["0", "x.enc.tanh", 0]]}, 'node "z.concat", field "inputs"'),
    ],
)
def test_a_lie_is_reported_with_its_node_and_field(node: str, change: dict[str, Any], place: str) -> None:
    record = json.loads(json.dumps(flat_to_json(loads(LYING).ir)))
    next(each for each in record["nodes"] if each["name"] == node).update(change)
    with pytest.raises(UnreadableGraph) as caught:
        flat_from_json(record)
    assert place in str(caught.value)


@pytest.mark.parametrize("node", ["s", "z.linear", "z.enc"])
def test_what_gives_lengths_follows_and_is_not_stored(node: str) -> None:
    record = json.loads(json.dumps(to_json(loads(LYING).ir)))
    next(each for each in record["nodes"] if each["name"] == node)["lengths"] = [["time", "time_length", 0]]
    with pytest.raises(UnreadableGraph, match=f'node "{node}", field "lengths": is not known here'):
        from_json(record)


@pytest.mark.parametrize(("lowering", "sound"), [("grouped", True), ("masked", True), ("dense", False), ("", False)])
def test_a_route_has_a_lowering_that_its_router_offers(lowering: str, sound: bool) -> None:
    record = json.loads(json.dumps(flat_to_json(loads(LYING).ir)))
    route(record)["lowering"] = lowering
    if sound:
        assert flat_from_json(record)
        return
    with pytest.raises(UnreadableGraph, match=r'node "s.g.p.y.p", field "lowering"'):
        flat_from_json(record)


@pytest.mark.slow
def test_twenty_thousand_damaged_graphs() -> None:
    assert campaign("graphs", judged, PARTS)["unreadable"] > PARTS * 800
