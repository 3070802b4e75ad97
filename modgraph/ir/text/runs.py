"""Folding of consecutive equal rounds into one line, and of references to values; and the inverse."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any

from modgraph.ir.graph import Graph
from modgraph.ir.invalid import ask
from modgraph.ir.node import Node, Result
from modgraph.ir.program.program import CallNode, Definition

ROUND = re.compile(r"([^/]+)\.(\d+)/(.+)", re.S)
KEYS = re.compile(r"([^/\[]+)\[([0-9.,]+)\]/(.*)", re.S)
VALUES = re.compile(r"(.*)/\{(.*)\}", re.S)
MOST_ROUNDS = 100_000  # the number of rounds in one reference
BEFORE = "[-1]"  # behind the name of a loop: the round before


@dataclass(frozen=True)
class Run:
    """Consecutive rounds of one loop that differ only in their keys: the `first` one, and the key of the `last`."""

    loop: str
    definition: Definition
    names: tuple[str, ...]
    operands: tuple[str, ...]
    first: CallNode
    last: int


def reference(graph: Graph, result: Result) -> str:
    """Write a reference to a value: `x2.add`, a second result `x2.split:1`, a result of a call `blocks.8/x2.add`."""
    node = graph[result.node]
    if isinstance(node, CallNode):
        return f"{node.name}/{reference(node.definition.graph, node.definition.results[result.index])}"
    return str(result)


def list_runs(graph: Graph) -> Iterator[Node | Run]:
    """List the nodes of a body in order, with runs in place of consecutive rounds."""
    pending: Run | None = None
    for node in (*graph, None):
        here = _round(node, graph)
        if pending and here and here == replace(pending, first=here.first, last=pending.last + 1):
            pending = replace(pending, last=here.last)
            continue
        if pending is not None:
            yield pending if pending.last != pending.first.key else pending.first
        pending = here
        if here is None and node is not None:
            yield node


def fold(references: Sequence[str]) -> list[str]:
    """Fold consecutive references to one value in several rounds, `blocks[0..4]/x.add` and `blocks[8,10]/x.add`, or to
    several values of one call, `x.ffn/{y.add, z.relu}`."""
    found: list[str] = []
    rounds = [(ROUND.fullmatch(text), text) for text in references]
    for _, same in groupby(rounds, lambda each: each[0].group(1, 3) if each[0] else each[1]):
        of_rounds, texts = zip(*same, strict=True)
        keys = [int(each[2]) for each in of_rounds if each]
        if len(keys) > 1 and all(one < other for one, other in pairwise(keys)):
            follow = len(keys) > 2 and keys == [*range(keys[0], keys[-1] + 1)]
            text = f"{keys[0]}..{keys[-1] + 1}" if follow else ",".join(map(str, keys))
            found.append(f"{of_rounds[0][1]}[{text}]/{of_rounds[0][3]}")
        else:
            found += texts
    folded: list[str] = []
    for call, group in groupby(found, lambda text: text.rpartition("/")[0]):
        values = [*group]
        listed = ", ".join(text.rpartition("/")[2] for text in values)
        folded += [f"{call}/{{{listed}}}"] if call and len(values) > 1 else values
    return folded


def unfold(text: str) -> list[str]:
    """Expand a folded reference. Raises `InvalidGraph` if it names too many rounds."""
    if match := VALUES.fullmatch(text):
        return [each for value in match[2].split(",") for each in unfold(f"{match[1]}/{value.strip()}")]
    match = KEYS.fullmatch(text)
    if match is None:
        return [text]
    first, dots, last = match[2].partition("..")
    keys: Iterable[str | int] = first.split(",")
    if dots:
        ask(0 <= int(last) - int(first) <= MOST_ROUNDS, f"{match[2]} are too many rounds")
        keys = range(int(first), int(last))
    return [f"{match[1]}.{int(key)}/{match[3]}" for key in keys]


def _round(node: Node | None, graph: Graph) -> Run | None:
    """Make a run of one round if its name and operands follow from its key; None otherwise."""
    if not isinstance(node, CallNode) or not isinstance(node.key, int) or node.weights:
        return None
    loop, _, key = node.name.rpartition(".")
    if not loop or key != str(node.key):
        return None
    before = f"{loop}.{node.key - 1}"

    def shift(text: str, mark: str) -> str:
        return f"{loop}{BEFORE}{text[len(before) :]}" if text.startswith(before + mark) else text

    operands = (reference(graph, each) for each in graph.inputs(node.name).values())
    names = tuple(shift(each, ".") for each in node.names)
    return Run(loop, node.definition, names, tuple(shift(each, "/") for each in operands), node, node.key)


def resolve(record: Any) -> None:
    """Replace the texts of references by nodes and places of results, in definitions and in the model.

    Raises `InvalidGraph` for an unknown reference.
    """
    known: dict[str, Any] = {}
    for definition in record["definitions"]:
        _resolve_body(definition["nodes"], known)
        known[definition["name"]] = definition
    _resolve_body(record["nodes"], known)


def _resolve_body(nodes: list[Any], known: dict[str, Any]) -> None:
    calls = _calls_in(nodes)
    for node in nodes:
        for region in [*node.get("regions", ()), *([node["region"]] if "region" in node else [])]:
            _resolve_body(region["nodes"], known)
            inner = _calls_in(region["nodes"])
            region["results"] = [_result(each, inner, known) for text in region["results"] for each in unfold(text)]
        if node["kind"] == "decision":
            node["inputs"] = _bind_decision(node)
        if "inputs" in node:
            given = (each if isinstance(each, list) else [each] for each in node["inputs"])  # behind a slot, or several
            texts = [(slot, text) for *slot, texts in given for text in (unfold(texts) if not slot else [texts])]
            node["inputs"] = [[*slot, *_result(text, calls, known)] for slot, text in texts]
        if node["kind"] == "call":
            _bind(node, known)


def _calls_in(nodes: list[Any]) -> dict[str, Any]:
    return {node["name"]: node for node in nodes if node["kind"] == "call"}


def _bind_decision(node: dict[str, Any]) -> list[Any]:
    """Bind the operands of a decision to their slots. The slots of the last round have the names of the records."""
    records = node.pop("records", ())
    given = {name: [each for text in texts for each in unfold(text)] for name, _, texts in records}
    rounds = {len(texts) for texts in given.values()} or {1}
    ask(len(rounds) == 1, "its records have as many rounds as each other", node["name"], "records")
    ask(len(node["inputs"]) == 2, "it takes what is routed, and the value", node["name"], "inputs")
    node |= {"rounds": last} if (last := rounds.pop()) > 1 else {}
    node |= {"records": [[name, role] for name, role, _ in records]} if given else {}
    slots = [[slot, text] for slot, text in zip(("tokens", "value"), node["inputs"], strict=True)]
    slots += [[name, texts[-1]] for name, texts in given.items()]
    return slots + [[f"{name}.{at + 1}", texts[at]] for at in range(last - 1) for name, texts in given.items()]


def _result(text: str, calls: dict[str, Any], known: dict[str, Any]) -> list[Any]:
    call, _, inner = text.partition("/")
    if not inner:
        name, _, index = text.partition(":")
        return [name, int(index or 0)]
    ask(call in calls and calls[call]["is"] in known, f"{text} is a value of a call that is not there")
    definition = known[calls[call]["is"]]
    results, result = definition["results"], _result(inner, _calls_in(definition["nodes"]), known)
    if result not in results:
        results.append(result)
    return [call, results.index(result)]


def _bind(call: dict[str, Any], known: dict[str, Any]) -> None:
    """Bind the operands of a call to their slots, and the names that it takes to names of the body."""
    ask(call["is"] in known, f"{call['is']} is no definition before it", call["name"], "is")
    definition, given, inputs = known[call["is"]], call["names"], call.get("inputs", [])
    formals = [each["name"] for each in definition["nodes"] if each["kind"] == "input"]
    ask(len(formals) == len(inputs), f"it takes {len(formals)} values", call["name"], "inputs")
    ask(given.keys() <= {*definition["takes"]}, f"it takes no {', '.join(given)}", call["name"], "names")
    call["inputs"] = [[slot, *each] for slot, each in zip(formals, inputs, strict=True)]
    call["names"] = [given.get(name, name) for name in definition["takes"]]
    if definition["kind"] != "round":
        call.pop("key", None)
