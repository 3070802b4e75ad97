"""References of a program's text, made into those of its JSON: a node, and the place of the result."""

from __future__ import annotations

from typing import Any

from modgraph.ir.invalid import InvalidGraph, ask
from modgraph.ir.text.runs import unfold


def resolve(record: Any) -> None:
    """Replace the texts of references, in definitions and in the model. Raises `InvalidGraph` for one to nothing."""
    known: dict[str, Any] = {}
    for definition in record["definitions"]:
        _resolve_body(definition["nodes"], known)
        known[definition["name"]] = definition
    _resolve_body(record["nodes"], known)


def _resolve_body(nodes: list[Any], known: dict[str, Any]) -> None:
    calls = {node["name"]: node for node in nodes if node["kind"] == "call"}
    for node in nodes:
        for region in [*node.get("regions", ()), *([node["region"]] if "region" in node else [])]:
            _resolve_body(region["nodes"], known)
            inner = {each["name"]: each for each in region["nodes"] if each["kind"] == "call"}
            region["results"] = [_result(each, inner, known) for text in region["results"] for each in _unfold(text)]
        if node["kind"] == "decision":
            node["inputs"] = _decided(node)
        if "inputs" in node:
            node["inputs"] = [each for given in node["inputs"] for each in _inputs(given, calls, known)]
        if node["kind"] == "call":
            _bind(node, known)


def _inputs(given: Any, calls: dict[str, Any], known: dict[str, Any]) -> list[Any]:
    """One operand with its slot, or several without."""
    if isinstance(given, list):
        slot, text = given
        return [[slot, *_result(text, calls, known)]]
    return [_result(each, calls, known) for each in _unfold(given)]


def _decided(node: dict[str, Any]) -> list[Any]:
    """The operands of a decision with their slots: those of the last round are called as their record."""
    records = node.pop("records", ())
    given = {name: [each for text in texts for each in _unfold(text)] for name, _, texts in records}
    rounds = {len(texts) for texts in given.values()} or {1}
    ask(len(rounds) == 1, "its records have as many rounds as each other", node["name"], "records")
    ask(len(node["inputs"]) == 2, "it takes what is routed, and the value", node["name"], "inputs")
    node |= {"rounds": last} if (last := rounds.pop()) > 1 else {}
    node |= {"records": [[name, role] for name, role, _ in records]} if given else {}
    slots = [[slot, text] for slot, text in zip(("tokens", "value"), node["inputs"], strict=True)]
    slots += [[name, texts[-1]] for name, texts in given.items()]
    return slots + [[f"{name}.{at + 1}", texts[at]] for at in range(last - 1) for name, texts in given.items()]


def _unfold(text: str) -> list[str]:
    try:
        return unfold(text)
    except ValueError as error:
        raise InvalidGraph(str(error)) from error


def _result(text: str, calls: dict[str, Any], known: dict[str, Any]) -> list[Any]:
    call, _, inner = text.partition("/")
    if not inner:
        name, _, index = text.partition(":")
        return [name, int(index or 0)]
    ask(call in calls and calls[call]["is"] in known, f"{text} is a value of a call that is not there")
    definition = known[calls[call]["is"]]
    within = {each["name"]: each for each in definition["nodes"] if each["kind"] == "call"}
    result = _result(inner, within, known)
    if result not in definition["results"]:
        definition["results"].append(result)
    return [call, definition["results"].index(result)]


def _bind(call: dict[str, Any], known: dict[str, Any]) -> None:
    """Give the operands of a call their slots, and every name that it takes what it is there."""
    ask(call["is"] in known, f"{call['is']} is no definition before it", call["name"], "is")
    definition, given = known[call["is"]], call["names"]
    formals = [each["name"] for each in definition["nodes"] if each["kind"] == "input"]
    inputs = call.setdefault("inputs", [])
    ask(len(formals) == len(inputs), f"it takes {len(formals)} values", call["name"], "inputs")
    ask(given.keys() <= {*definition["takes"]}, f"it takes no {', '.join(given)}", call["name"], "names")
    call["inputs"] = [[slot, *each] for slot, each in zip(formals, inputs, strict=True)]
    call["names"] = [given.get(name, name) for name in definition["takes"]]
    if definition["kind"] != "round":
        call.pop("key", None)
