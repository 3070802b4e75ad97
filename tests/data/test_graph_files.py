"""Graphs as JSON from the user's disk: lists of edges, networkx's node-link form, and mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from torch_geometric.utils import from_networkx

import modgraph
from modgraph.data import Arrays, Graphs
from modgraph.diagnostics import ModgraphError

SPEC = """model m() { input x: float[node, 2] input link: edge[node, node] input w: float[link] target label: class[3]
  logits = x by w over link -> mean(axis="node") -> linear(3) output logits loss cross_entropy(logits, label) }"""
OF_NODES = """model m() { input x: float[node, 2] input link: edge[node, node] target label: class[node, 3]
  logits = (x, link) -> aggregate -> linear(3) output logits loss cross_entropy(logits, label, missing=true) }"""
LISTS = [
    {"edges": [[0, 1], [1, 2], [2, 0]], "x": [[0, 1], [2, 3], [4, 5]], "w": [0.5, 1, 2], "label": 2},
    {"link": [], "x": [[6, 7]], "w": [], "label": 0},
    {"edges": [[1, 1]], "x": [[8, 9], [1, 1]], "w": [3], "label": 1},
]
NODES = [{"id": "a", "x": [0, 1]}, {"id": 7, "x": [2, 3], "label": 1}]


def read(tmp_path: Path, content: Any, spec: str = SPEC, name: str = "g.json") -> dict[str, Arrays]:
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return Graphs(train=str(path), test=str(path)).splits(modgraph.loads(spec).ir)


def test_lists_of_edges_are_read_from_a_list_and_from_lines(tmp_path: Path) -> None:
    found = read(tmp_path, LISTS)["train"].values
    in_lines = read(tmp_path, "\n\n".join(map(json.dumps, LISTS)), name="g.jsonl")["test"].values
    assert found["link_length"].tolist() == [3, 0, 1] and found["node_length"].tolist() == [3, 1, 2]
    assert found["link"][0].tolist() == [[0, 1], [1, 2], [2, 0]] and found["x"][2].tolist() == [[8, 9], [1, 1], [0, 0]]
    assert found["w"][:, 0].tolist() == [0.5, 0, 3] and found["label"].tolist() == [2, 0, 1]
    for name, each in found.items():
        np.testing.assert_array_equal(each, in_lines[name])


@pytest.mark.parametrize("kind", [networkx.Graph, networkx.DiGraph])
@pytest.mark.parametrize("edges", ["links", "edges"])
def test_a_graph_of_networkx_has_the_edges_that_torch_geometric_reads(tmp_path: Path, kind: Any, edges: str) -> None:
    graph = networkx.karate_club_graph().subgraph(range(12)).to_directed()
    graph = kind(graph) if kind is networkx.DiGraph else graph.to_undirected()
    graph.add_edge(3, 3, weight=9)
    graph = networkx.relabel_nodes(graph, {at: f"member {at}" for at in range(12)})
    for at, node in enumerate(graph):
        graph.nodes[node]["x"] = [at, -at]
    graph.graph["label"] = 2
    expected = from_networkx(graph)
    for _, _, values in graph.edges(data=True):
        values["w"] = values["weight"]
    found = read(tmp_path, networkx.node_link_data(graph, edges=edges))["train"].values
    pairs = {(*pair, w) for pair, w in zip(found["link"][0].tolist(), found["w"][0].tolist(), strict=True)}
    ours = {(int(a), int(b), w) for a, b, w in pairs}
    assert ours == {
        (int(a), int(b), float(w)) for (a, b), w in zip(expected.edge_index.t(), expected.weight, strict=True)
    }
    assert found["link"].shape[1] == expected.edge_index.shape[1] and found["label"].tolist() == [2]
    assert found["x"][0, :, 0].tolist() == list(range(12))


def test_nodes_without_a_label_do_not_count(tmp_path: Path) -> None:
    graph = {"directed": True, "nodes": NODES, "links": [{"source": 7, "target": "a"}]}
    found = read(tmp_path, graph, OF_NODES)["train"].values
    assert found["label"].tolist() == [[-1, 1]] and found["link"].tolist() == [[[1, 0]]]


def test_a_training_reads_graphs_and_cuts_off_a_test(tmp_path: Path) -> None:
    (tmp_path / "m.mod").write_text(SPEC, encoding="utf-8")
    (tmp_path / "g.jsonl").write_text("\n".join(map(json.dumps, LISTS * 4)), encoding="utf-8")
    recipe = {"data": {"name": "graphs", "train": str(tmp_path / "g.jsonl")}, "train": {"epochs": 1, "batch": 4}}
    run = modgraph.train(tmp_path / "m.mod", recipe, out=tmp_path / "run", quiet=True)
    assert 0 <= run.evaluate()["test.accuracy"] <= 1


SOUND = {"nodes": NODES, "links": [{"source": 7, "target": "a"}]}
MISTAKES: dict[str, tuple[Any, str]] = {
    "text": ("edges: 0 1", "it is not JSON"),
    "number": ("[1]", "it has 1 where a graph is expected"),
    "nothing": ([], "has no examples"),
    "misspelt": ({**LISTS[0], "lable": 1, "label": None} | {"label": "house"}, r'\["label"\] is a string'),
    "missing": ({"edges": [[0, 1]], "x": [[0, 1]] * 2, "label": 1}, 'has no "w"'),
    "triples": ({**LISTS[0], "edges": [[0, 1, 2]], "w": [1]}, "has the shape"),
    "ragged": ({**LISTS[0], "edges": [[0, 1], [2]], "w": [1]}, "an array of numbers is needed"),
    "beyond": ({**LISTS[0], "edges": [[0, 3]], "w": [1]}, "ends at 3"),
    "more values than edges": ({**LISTS[0], "w": [1]}, "two lengths along link"),
    "undirected": ({**LISTS[0], "directed": False}, "list both directions of each edge"),
    "nodes": ({**SOUND, "nodes": ["a"]}, "its nodes are not a list of objects"),
    "edges": ({**SOUND, "links": {"a": 1}}, "its edges are not a list of objects"),
    "no id": ({**SOUND, "nodes": [{"x": [0, 1]}]}, "node 0 has no id"),
    "twice": ({**SOUND, "nodes": [*NODES, NODES[1]]}, "nodes 1 and 2 have the id 7"),
    "no target": ({**SOUND, "links": [{"source": 7}]}, "edge 0 has no target"),
    "unknown id": ({**SOUND, "links": [{"source": 7, "target": ["b"]}]}, r'target of edge 0 is \["b"\], which is'),
    "no value": ({**SOUND, "nodes": [{"id": 1, "label": 2}], "links": []}, 'node 0 has no "x"'),
    "deep": ("[" * 100_000, "it is not JSON"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_file_is_explained(mistake: str, tmp_path: Path) -> None:
    content, reason = MISTAKES[mistake]
    spec = OF_NODES if isinstance(content, dict) and "nodes" in content else SPEC
    with pytest.raises(ModgraphError, match=reason):
        read(tmp_path, content, spec)


def test_nodes_with_ids_need_one_input_of_edges(tmp_path: Path) -> None:
    spec = "model m() { input x: float[node, 2] input link: edge[node, item] input y: float[item, 2] output x }"
    with pytest.raises(ModgraphError, match="one input of edges, between nodes of one kind"):
        read(tmp_path, SOUND, spec)


def test_the_path_of_a_file_of_graphs_as_data_suggests_the_data_set() -> None:
    with pytest.raises(ModgraphError, match=r"data: \{name: graphs, train: g.jsonl\}"):
        modgraph.train(modgraph.loads(SPEC), {"data": {"name": "g.jsonl"}})
