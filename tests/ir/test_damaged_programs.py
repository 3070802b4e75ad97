"""Stored programs whose definitions, calls, places or names are wrong: refused, with the node, and at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from modgraph.ir import UnreadableGraph, from_json, to_json
from modgraph.program import loads

FLOAT = [{"dtype": "float", "shape": [4]}]
SPEC = """block sends(q) { input x: float[t, d] y = x -> layer_norm -> q output y }
model m {
  input x: float[5, 4]
  repeat b[i] in 0..3 { pool p[2] = linear(4) x = x -> sends(p) -> mean(axis=p) }
  output x
}"""
Record = dict[str, Any]


def sound() -> Record:
    record: Record = json.loads(json.dumps(to_json(loads(SPEC).ir)))
    return record


def definition(record: Record, name: str) -> Record:
    return next(each for each in record["definitions"] if each["name"] == name)


def node(holder: Record, name: str) -> Record:
    return next(each for each in holder["nodes"] if each["name"] == name)


def round_(record: Record) -> Record:
    return definition(record, "b")


def first(record: Record) -> Record:
    return node(record, "b.1")


def test_the_sound_program_reads() -> None:
    assert from_json(sound()) == loads(SPEC).ir


def swapped(record: Record) -> None:
    record["definitions"].reverse()


CHANGES: dict[str, tuple[Callable[[Record], object], str]] = {
    "one that is called before it": (swapped, 'field "is": sends is no definition before it'),
    "itself": (lambda r: node(round_(r), "x.sends").update({"is": "b"}), 'field "is": b is no definition before it'),
    "one name twice": (lambda r: r["definitions"].append(r["definitions"][0]), "another definition is called so"),
    "no such kind": (lambda r: round_(r).update(kind="loop"), 'node "b", field "kind"'),
    "no operand": (lambda r: first(r).update(inputs=[]), 'node "b.1", field "inputs"'),
    "an operand too many": (lambda r: first(r)["inputs"].append(["z", "x", 0]), 'node "b.1", field "inputs"'),
    "a slot of another name": (lambda r: first(r)["inputs"][0].__setitem__(0, "z"), 'node "b.1", field "inputs"'),
    "an operand of another type": (
        lambda r: round_(r)["nodes"][0].update(types=FLOAT),
        'node "',
    ),
    "no name for what it takes": (lambda r: node(round_(r), "x.sends").update(names=[]), 'field "names"'),
    "a name too many": (lambda r: node(round_(r), "x.sends")["names"].append("p"), 'field "names"'),
    "a name of nothing": (lambda r: node(round_(r), "x.sends")["names"].__setitem__(0, "q"), "q"),
    "a result that is not there": (lambda r: round_(r)["results"].append(["x.other", 0]), 'node "b", field "results"'),
    "a result beyond the last": (lambda r: round_(r)["results"][0].__setitem__(1, 7), 'node "b", field "results"'),
    "a read beyond the results": (lambda r: first(r)["inputs"][0].__setitem__(2, 7), 'node "b.1", field "inputs"'),
    "no results, and read": (lambda r: round_(r).update(results=[]), 'field "inputs"'),
    "a deferred pool that nothing places": (
        lambda r: definition(r, "sends").update(
            nodes=[n for n in definition(r, "sends")["nodes"] if n["kind"] != "place"]
        ),
        "it uses b.0.p, which is not there before it",
    ),
    "a deferred pool that nothing uses": (
        lambda r: r["nodes"].insert(1, {**node(round_(r), "p"), "name": "unused", "deferred": True}),
        "unused",
    ),
    "a place of nothing": (
        lambda r: r["nodes"].insert(1, {"name": "nothing", "kind": "place"}),
        "nothing is not declared",
    ),
    "a place of a value": (lambda r: r["nodes"].insert(1, {"name": "x", "kind": "place"}), "x is no pool"),
    "a deferred op": (lambda r: node(definition(r, "sends"), "y.p").update(deferred=True), "y.p"),
    "a deferred input": (lambda r: node(r, "x").update(deferred=True), '"x"'),
    "weights of no node": (lambda r: r["weights"].update({"b.7.p": {"grown": 1}}), "b.7.p"),
    "weights of a definition": (lambda r: r["weights"].update({"p": {"grown": 1}}), '"p"'),
    "weights with no such fact": (lambda r: r["weights"].update({"b.1.p": {"size": 1}}), 'node "b.1.p", field "size"'),
    "weights that are frozen of a pool": (lambda r: r["weights"].update({"b.1.p": {"frozen": True}}), "b.1.p"),
    "added that are more than there are": (lambda r: r["weights"].update({"b.1.p": {"grown": 9}}), "b.1.p"),
    "a key that is no key": (lambda r: first(r).update(key=[1]), 'node "b.1", field "key"'),
    "a call of a name that is taken": (lambda r: first(r).update(name="b.0"), "another node is called so"),
    "takes one name twice": (
        lambda r: definition(r, "sends")["takes"].append(definition(r, "sends")["takes"][0]),
        "twice",
    ),
    "lengths": (lambda r: first(r).update(lengths=[]), 'field "lengths": is not known here'),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_damaged_program_is_refused_with_its_node(name: str) -> None:
    record = sound()
    change, said = CHANGES[name]
    change(record)
    with pytest.raises(UnreadableGraph) as caught:
        from_json(record)
    assert said in str(caught.value)


MARKED = (
    "#",
    "##",
    "^x",
    "^^x",
    "@",
    "@.x",
    ".x",
    "x~2",
    "h.#.y",
    "x.##",
    "^output.y",
    "~",
    "^",
    "x/y",
    "a b",
    "",
    "%0",
    "$0",
    "x~",
    "^~2",
)


@pytest.mark.some(6)
@pytest.mark.parametrize("mark", MARKED)
def test_a_name_with_marks_where_they_mean_nothing_is_refused_or_read(mark: str) -> None:
    """What is read has plain names."""
    for place in (lambda r: node(r, "x"), first, lambda r: round_(r)["nodes"][0], round_, lambda r: r["nodes"][-1]):
        for key in ("name", "is", "label", "weights"):
            record = sound()
            holder = place(record)
            holder[key] = mark
            try:
                graph = from_json(record)
            except UnreadableGraph as error:
                assert str(error)
            else:
                assert not [each.name for each in graph if {*each.name} & {*"#^@~/%$ "} or not each.name]
                assert from_json(to_json(graph)) == graph
