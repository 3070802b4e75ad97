"""Graphs as data: those of torch_geometric that need no download, and the user's own from files and from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import modgraph
from modgraph.data import BaShapes, KarateClub, Motifs
from modgraph.diagnostics import ModgraphError

OF_NODES = modgraph.loads(
    "model m() { input x: float[node, 34] input link: edge[node, node] target label: class[node, 4] "
    "logits = (x, link) -> aggregate -> linear(4) output logits loss cross_entropy(logits, label, missing=true) }"
).ir
OF_GRAPHS = """model m() { input x: float[node, 10] input link: edge[node, node] target label: class[2]
  logits = (x, link) -> aggregate -> mean(axis="node") -> linear(2) output logits loss cross_entropy(logits, label) }"""


def test_each_member_of_the_club_is_labelled_for_training_or_for_the_test() -> None:
    splits = KarateClub().splits(OF_NODES)
    train, test = (splits[name].values["label"][0] for name in ("train", "test"))
    assert (train >= 0).sum() == 4 and {*train[train >= 0].tolist()} == {0, 1, 2, 3}
    assert ((train >= 0) ^ (test >= 0)).all()
    link = splits["train"].values["link"][0]
    assert link.shape == (156, 2) and (np.sort(link, 0) == np.sort(link[:, ::-1], 0)).all(), "both directions"


def test_what_is_generated_depends_on_nothing_but_the_seed() -> None:
    graph = modgraph.loads(OF_GRAPHS).ir
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = Motifs(train=8, test=4, seed=3).splits(graph)
    assert (torch.get_rng_state() == state).all()
    torch.manual_seed(2)
    again, other = (Motifs(train=8, test=4, seed=seed).splits(graph)["train"].values for seed in (3, 4))
    for name, each in first["train"].values.items():
        np.testing.assert_array_equal(each, again[name])
    assert again["link"].shape != other["link"].shape or (again["link"] != other["link"]).any()
    nodes, edges = again["node_length"], again["link_length"]
    assert len({*nodes.tolist()}) > 1 and (nodes >= 20).all() and (nodes <= 30).all()
    for at, label in enumerate(again["label"]):  # a house has six edges, a cycle five
        inside = (again["link"][at, : edges[at]] >= nodes[at] - 5).all(1)
        assert inside.sum() == (12 if label == 0 else 10)
    with pytest.raises(ModgraphError, match="the fewest and the most"):
        modgraph.train(modgraph.loads(OF_GRAPHS), {"data": {"name": "motifs", "nodes": [9, 3]}, "train": {"epochs": 1}})


def test_houses_have_four_kinds_of_nodes() -> None:
    program = modgraph.loads(
        "model m() { input x: float[node, 10] input link: edge[node, node] target label: class[node, 4] "
        "logits = x -> linear(4) output logits loss cross_entropy(logits, label, missing=true) }"
    )
    splits = BaShapes(train_fraction=0.5).splits(program.ir)
    labels = np.maximum(splits["train"].values["label"], splits["test"].values["label"])[0]
    assert np.bincount(labels).tolist() == [300, 160, 160, 80]
    assert (splits["train"].values["label"] >= 0).sum() == 350


def test_graphs_come_from_python_and_from_files_and_pickles_are_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    examples = []
    for nodes, edges in [(4, 6), (7, 3), (2, 9), (5, 5)]:
        link = torch.from_numpy(rng.integers(0, nodes, (edges, 2)))
        examples.append({"x": torch.rand(nodes, 10), "link": link, "label": torch.tensor(nodes % 2)})
    recipe: dict[str, Any] = {"train": {"epochs": 1, "batch": 2}}
    run = modgraph.train(
        modgraph.loads(OF_GRAPHS), recipe, data={"train": examples, "test": examples}, out=tmp_path / "run", quiet=True
    )
    assert 0 <= run.evaluate()["test.accuracy"] <= 1
    (tmp_path / "m.mod").write_text(OF_GRAPHS, encoding="utf-8")
    link = np.zeros((4, 9, 2), np.int64)
    arrays = {"x": rng.random((4, 7, 10)), "link": link, "label": np.array([0, 1, 0, 1])}
    arrays |= {"node_length": np.array([4, 7, 2, 5]), "link_length": np.array([6, 3, 9, 5])}
    np.savez(tmp_path / "g.npz", **arrays)
    of_file = {"data": {"name": "npz", "train": str(tmp_path / "g.npz")}, **recipe}
    modgraph.train(tmp_path / "m.mod", of_file, out=tmp_path / "of_file", quiet=True)
    torch.save(examples, tmp_path / "g.pt")
    of_file["data"]["train"] = str(tmp_path / "g.pt")
    with pytest.raises(ModgraphError, match="it is a pickle of torch"):
        modgraph.train(tmp_path / "m.mod", of_file, out=tmp_path / "of_pickle", quiet=True)


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [((2, 8, 1), 2, r"ends at 2, first at \[2, 8\], where node has 0 to 1"), ((0, 0, 0), -1, "begins at -1")],
)
def test_an_edge_at_a_node_that_is_not_there_is_named(place: tuple[int, int, int], value: int, reason: str) -> None:
    link = np.zeros((4, 9, 2), np.int64)
    link[place], link[1, 5] = value, 99  # the second is padding
    arrays = {"x": np.zeros((4, 7, 10)), "link": link, "label": np.zeros(4, np.int64)}
    arrays |= {"node_length": np.array([4, 7, 2, 5]), "link_length": np.array([6, 3, 9, 5])}
    with pytest.raises(ModgraphError, match=f'array "link" of train has an edge that {reason}'):
        modgraph.train(modgraph.loads(OF_GRAPHS), {"train": {"epochs": 1}}, data={"train": arrays}, out="unused")
