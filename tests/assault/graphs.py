"""Damaged stored programs: mutant number n is a function of n alone."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

from modgraph.backends.torch import build
from modgraph.inspect.cost import compute_cost
from modgraph.ir import Graph, UnreadableGraph, from_json, to_json, weights_of
from modgraph.ir.text.parse import parse_text
from modgraph.program import loads
from tests.assault.vocabulary import SMALL
from tests.examples import GRU, NOVEL, SEQUENCE, TRANSFORMER, TWO_SCANS
from tests.ir.structures import STRUCTURES
from tests.nested_pools import TWO_LEVELS

PART = 1000
MOST_NUMBERS = 100_000  # of weights of a model that is built
FLOAT = {"dtype": "float", "shape": []}
ODD: tuple[Any, ...] = (
    None,
    -1,
    0,
    1,
    2,
    3,
    7,
    2**31,
    2**63,
    10**30,
    0.5,
    1.0,
    float("nan"),
    float("inf"),
    True,
    False,
)
ODD += ("x", "", "float", "0", "time", "a" * 1000, "x.y", "\ud800", [], {}, [[]], {"a": 1}, [1, 2])
KEYS: tuple[str, ...] = ("x", "frozen", "inputs", "uses", "owner", "initial", "grown", "size", "per")
KEYS += ("names", "weights", "key", "deferred", "takes", "axes", "members", "results")
MARKED = (
    "#",
    "^x",
    "@",
    "@.p",
    ".p",
    "x~2",
    "^^@",
    "##",
    "h.#.linear",
    "^output.y",
    "x.##.y",
    "~",
    "^",
    "x/y",
    "%0",
    "$0",
)
Path = tuple[Any, ...]


@cache
def records() -> list[Any]:
    """The programs of sound specs as JSON, most of them with definitions and calls."""
    texts = (*SMALL, TRANSFORMER, SEQUENCE, GRU, TWO_SCANS, NOVEL, TWO_LEVELS, *STRUCTURES.values())
    graphs = [loads(text).ir for text in texts]
    return [json.loads(json.dumps(to_json(graph))) for graph in graphs]


def mutant(n: int) -> Any:
    """A graph with one to three places changed."""
    rng = Random(n)
    record = copy.deepcopy(rng.choice(records()))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _change(record, rng)
    return record


def _change(record: Any, rng: Random) -> None:
    places = list(_places(record))
    *path, key = rng.choice(places)
    holder = _at(record, tuple(path))
    old = holder[key]
    kind = rng.randrange(7)
    if kind == 0:
        del holder[key]
    elif kind == 1:
        holder[key] = copy.deepcopy(_at(record, rng.choice(places)))
    elif kind == 2 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(old))
    elif kind == 2:
        holder[rng.choice(KEYS)] = rng.choice((True, copy.deepcopy(old)))
    elif kind == 3 and isinstance(old, int):
        holder[key] = old + rng.choice((-1, 1, 100))
    elif kind == 3 and isinstance(old, str):
        holder[key] = rng.choice((rng.choice(MARKED), rng.choice(MARKED)[0] + old, f"{old}.#", f"{old}~2"))
    elif kind <= 4 and isinstance(old, str):
        holder[key] = rng.choice([each for place in places if isinstance(each := _at(record, place), str)])
    elif kind == 5 and isinstance(old, list) and len(old) > 1:
        rng.shuffle(old)
    elif kind == 5:
        holder[key] = _nested(rng.choice((2, 50, 300)), rng)
    else:
        holder[key] = rng.choice(ODD)


def _places(record: Any, path: Path = ()) -> Iterator[Path]:
    """Where each value inside stands."""
    keys = record if isinstance(record, dict) else range(len(record)) if isinstance(record, list) else ()
    for key in keys:
        yield (*path, key)
        if len(path) < 50:
            yield from _places(record[key], (*path, key))


def _at(record: Any, path: Path) -> Any:
    for key in path:
        record = record[key]
    return record


def _nested(depth: int, rng: Random) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value] if rng.random() < 0.7 else {"a": value}
    return value


def judged(part: int) -> Counter[str]:
    """Counts of a part by outcome. Raises `AssertionError` with the number of a mutant that fails."""
    counts: Counter[str] = Counter()
    for n in range(part * PART, (part + 1) * PART):
        counts[judge(n)] += 1
    return counts


def judge(n: int) -> str:
    """A mutant is unreadable, or a graph that can be shown, costed, and stored again."""
    record = mutant(n)
    try:
        graph = from_json(record)
    except UnreadableGraph as reason:
        assert str(reason)
        return "unreadable"
    except Exception as error:
        raise AssertionError(f"mutant {n} is no graph, and is not told") from error
    try:
        _use(graph)
    except Exception as error:
        raise AssertionError(f"mutant {n} is read and cannot be used") from error
    return "read"


def _use(graph: Graph) -> None:
    assert parse_text(str(graph)) == graph
    compute_cost(graph)
    assert from_json(to_json(graph)).hash() == graph.hash()
    if sum(weight.count for weight in weights_of(graph)) < MOST_NUMBERS:
        build(graph)


def derived(graph: Graph) -> Iterator[tuple[str, Any]]:
    """A stored graph with one thing changed that follows from the others, and the name of the node that lies."""
    record = json.loads(json.dumps(to_json(graph)))
    for path in _places(record):
        node = _node_of(record, path)
        for value in _lies(node, path[-1], _at(record, path)) if node else ():
            changed = copy.deepcopy(record)
            _at(changed, path[:-1])[path[-1]] = value
            yield node["name"], changed


def _node_of(record: Any, path: Path) -> Any:
    """The innermost node that a place is in."""
    holders = [_at(record, path[:end]) for end in range(len(path))]
    return next((each for each in reversed(holders) if _is_node(each)), None)


def _is_node(record: Any) -> bool:
    """Whether a record is a node, and no definition, whose facts may all be others."""
    return isinstance(record, dict) and {"name", "kind"} <= record.keys() and "members" not in record


def _lies(node: Any, key: Any, value: Any) -> list[Any]:
    """Other values for a field that has one true value only."""
    match key:
        case "types" if node["kind"] not in ("input", "target"):
            return [[*value, FLOAT], [FLOAT], value[:-1]] if value else [[FLOAT]]
        case "shape" if node["kind"] not in ("input", "target"):
            return [[*value, 2], value[1:] if value else [7]]
        case "dtype":
            return ["token", "float" if value != "float" else "length"]
        case "per":
            return ["example"]
        case "inputs":
            return [[*value, ["more", *value[0][1:]]], value[1:]] if node["is" if "is" in node else "kind"] else []
        case "uses":
            return [{"pool": value["router"], "router": value["pool"]}, {"pool": value["pool"]}]
        case "kind" | "lowering":
            given = ["input"] * (node["kind"] != "target")  # which may be given as well
            return ["op", "message_passing"] if key == "lowering" else [*given, "pool", "route"]
        case "arguments":
            return [[*value, "more"], [], value[::-1] if len(value) > 1 else ["more"]]
        case "results":
            return [[], [["more", 0]], [*value, value[0]]]
        case "carried" | "grown" | "size" if node["kind"] in ("scan", "pool"):
            return [value + 1, -1] if key == "carried" else [0]
        case "final":
            return [value + 1, 0]
        case "is":
            return ["embedding", "no_such_op"]
        case "names":
            return [[*value, "more"], value[1:] if value else ["more"]]
        case _:
            return []
