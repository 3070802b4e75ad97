"""Graphs from the user's disk, as JSON: arrays by name with a list of edges, or networkx's node-link form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from modgraph.data.declaration import TRAIN, VALIDATION, Arrays, DataSet, check_splits, split_off
from modgraph.data.errors import bad_file
from modgraph.data.files import read_text
from modgraph.data.graphs import MISSING
from modgraph.data.in_python import Types, stack_examples
from modgraph.declare import setting
from modgraph.ir import Graph

EDGES, NODES = "edges", "nodes"
WAY_OUT = 'write each graph as {"edges": [[0, 1], …], "x": […], …}, or by networkx.node_link_data'
Record = dict[str, Any]


class Graphs(DataSet, name="graphs"):
    """Graphs of JSON files: a graph or a list of them, or a graph in each line of a `.jsonl` file.

    A graph has values by the names of inputs and targets, and `edges`, pairs of a source and a target: `{"edges": [[0,
    1], [1, 2]], "x": [[0.5], [1.0], [2.0]], "label": 1}`. Or it is in the form of `networkx.node_link_data`: values
    stand at its nodes, its links and in `graph`, and nodes have any ids. Edges that are not `directed` go both ways.
    """

    train: str = setting(path=True, doc="the file for training, .json or .jsonl")
    validation: str | None = setting(None, path=True, doc="the file for validation; none if not given")
    test: str | None = setting(None, path=True, doc="the file for the test; a part of the training file if not given")
    test_fraction: float = setting(0.2, min=0.01, max=0.9, doc="share for the test if it has no file")
    seed: int = setting(0, min=0, doc="seed of the split")

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        files = {TRAIN: self.train, VALIDATION: self.validation, "test": self.test}
        found = check_splits({name: _read(path, graph) for name, path in files.items() if path is not None}, graph)
        return found if self.test is not None else found | split_off(found[TRAIN], self.test_fraction, self.seed)


def _read(path: str, graph: Graph) -> Arrays:
    types = {**graph.input_types, **graph.target_types}
    examples = [_name_values(record, types, path, at) for at, record in enumerate(_records(path))]
    try:
        return Arrays(stack_examples(examples, types, graph, path))
    except TypeError as error:  # values that are no numbers
        raise bad_file(path, str(error).removeprefix(path), WAY_OUT) from error


def _records(path: str) -> Iterator[Record]:
    """Yield the graphs of a file. Raises `ModgraphError`."""
    text, in_lines = read_text(path), Path(path).suffix.lower() in (".jsonl", ".ndjson")
    parts = [(f"line {at}", line) for at, line in enumerate(text.splitlines(), 1) if line.strip()]
    for place, part in parts if in_lines else [("it", text)]:
        try:
            found = json.loads(part)
        except (ValueError, RecursionError) as error:
            raise bad_file(path, f"{place} is not JSON", WAY_OUT) from error
        records = found if isinstance(found, list) and not in_lines else [found]
        for record in records:
            if not isinstance(record, dict):
                raise bad_file(path, f"{place} has {_describe(record)} where a graph is expected", WAY_OUT)
            yield record


def _describe(value: Any) -> str:
    return f"{json.dumps(value)[:40]}"


def _name_values(record: Record, types: Types, path: str, at: int) -> Record:
    """The values of a graph by input and target."""
    try:
        links = [name for name, type_ in types.items() if type_.ends]
        has_nodes = isinstance(record.get(NODES), list) and NODES not in types
        values = _read_objects(record, types, links) if has_nodes else _read_lists(record, links)
        return {name: _keep_ends(value) if name in links else value for name, value in values.items()}
    except _Misfit as error:
        raise bad_file(path, f"graph {at}: {error}", WAY_OUT) from None


class _Misfit(Exception):
    """The problem with a graph."""


def _read_lists(record: Record, links: Sequence[str]) -> Record:
    """The values of a graph by name; `edges` are those of its only input of edges."""
    values = {name: value for name, value in record.items() if name != "directed"}
    if EDGES in values and EDGES not in links and len(links) == 1:
        values[links[0]] = values.pop(EDGES)
    if record.get("directed") is False:
        raise _Misfit("directed: false is for graphs with nodes; list both directions of each edge")
    return values


def _read_objects(record: Record, types: Types, links: Sequence[str]) -> Record:
    """The values of a graph whose nodes and edges are objects."""
    if len(links) != 1 or len({*types[links[0]].ends}) > 1:
        raise _Misfit("nodes with ids need a spec with one input of edges, between nodes of one kind")
    nodes = _objects(record[NODES], "node")
    edges = _objects(record.get("links", record.get(EDGES, [])), "edge")
    number = _number(nodes)
    pairs = [[_find(number, edge, end, at) for end in ("source", "target")] for at, edge in enumerate(edges)]
    if record.get("directed") is not True:
        back = [at for at, (source, target) in enumerate(pairs) if source != target]
        pairs, edges = [*pairs, *(pairs[at][::-1] for at in back)], [*edges, *(edges[at] for at in back)]
    (link,) = links
    own = {types[link].ends[0]: (nodes, "node"), types[link].shape[0]: (edges, "edge")}
    whole = record.get("graph")
    values: Record = {**record, **whole} if isinstance(whole, dict) else dict(record)
    values = {name: value for name, value in values.items() if name in types}
    for name, type_ in types.items():
        if name == link:
            values[name] = pairs
        elif type_.shape and type_.shape[0] in own:
            of, kind = own[type_.shape[0]]
            values[name] = [_value(each, name, f"{kind} {at}", type_.dtype == "class") for at, each in enumerate(of)]
    return values


def _objects(found: Any, kind: str) -> list[Record]:
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise _Misfit(f"its {kind}s are not a list of objects")
    return found


def _number(nodes: Sequence[Record]) -> Mapping[str, int]:
    """The place of each node by its id, as JSON."""
    found: dict[str, int] = {}
    for at, node in enumerate(nodes):
        if "id" not in node:
            raise _Misfit(f"node {at} has no id")
        key = json.dumps(node["id"])
        if key in found:
            raise _Misfit(f"nodes {found[key]} and {at} have the id {_describe(node['id'])}")
        found[key] = at
    return found


def _find(number: Mapping[str, int], edge: Record, end: str, at: int) -> int:
    if end not in edge:
        raise _Misfit(f"edge {at} has no {end}")
    key = json.dumps(edge[end])
    if key not in number:
        raise _Misfit(f"the {end} of edge {at} is {_describe(edge[end])}, which is the id of no node")
    return number[key]


def _value(of: Record, name: str, place: str, may_miss: bool) -> Any:
    if of.get(name) is None and not may_miss:
        raise _Misfit(f'{place} has no "{name}"')
    return MISSING if of.get(name) is None else of[name]


def _keep_ends(pairs: Any) -> Any:
    """Pairs of ends; of none, an array that keeps the axis of ends."""
    import numpy as np

    return np.zeros((0, 2), np.int64) if pairs == [] else pairs
