"""Small stored programs of huge graphs, or of calls nested deep: refused, and at once."""

from __future__ import annotations

from typing import Any

import pytest

from modgraph.ir import UnreadableGraph, from_json
from modgraph.ir.stored.program import FORMAT

FLOAT = [{"dtype": "float", "shape": [4]}]
Record = dict[str, Any]


def doubling(levels: int) -> Record:
    """Each definition calls the one before twice."""
    definitions: list[Record] = []
    for at in range(levels):
        nodes: list[Record] = [{"name": "x", "kind": "input", "types": FLOAT}]
        before, slot = ["x", 0], "x"
        for number in range(2):
            name = f"n{number}"
            if at == 0:
                nodes.append({"name": name, "kind": "op", "is": "relu", "settings": {}, "inputs": [before]})
            else:
                call = {"name": name, "kind": "call", "is": f"d{at - 1}", "names": [], "inputs": [[slot, *before]]}
                nodes.append(call)
            before = [name, 0]
        head = {"name": f"d{at}", "kind": "block", "is": "d", "takes": [], "axes": [], "members": []}
        definitions.append(head | {"results": [["n1", 0]], "nodes": nodes})
    return called(definitions)


def nested(levels: int) -> Record:
    """Each definition calls the one before."""
    record = doubling(levels)
    for each in record["definitions"][1:]:
        each["nodes"] = each["nodes"][:2]
        each["results"] = [["n0", 0]]
    return record


def called(definitions: list[Record]) -> Record:
    last = definitions[-1]["name"]
    nodes = [
        {"name": "x", "kind": "input", "types": FLOAT},
        {"name": "y", "kind": "call", "is": last, "names": [], "inputs": [["x", "x", 0]]},
        {"name": "output.y", "kind": "output", "types": [], "label": "y", "inputs": [["x", "y", 0]]},
    ]
    head = {"format": FORMAT, "name": "m", "parameters": {}, "weights": {}}
    return head | {"definitions": definitions, "nodes": nodes}


def test_definitions_that_call_others_read() -> None:
    assert len(from_json(doubling(5))) == 2 + 2**5
    assert len(from_json(nested(50))) == 2 + 2


@pytest.mark.parametrize("levels", [20, 400])
def test_a_small_program_of_a_huge_graph_is_refused(levels: int) -> None:
    with pytest.raises(UnreadableGraph, match=r"more than 200,?000 nodes|nested too deep"):
        from_json(doubling(levels))


@pytest.mark.parametrize("levels", [150, 5000])
def test_calls_that_are_nested_too_deep_are_refused(levels: int) -> None:
    with pytest.raises(UnreadableGraph, match="its calls are nested more than 100 deep"):
        from_json(nested(levels))
