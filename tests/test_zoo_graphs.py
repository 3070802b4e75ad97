"""Published networks of graphs, each written down on one screen: held against torch_geometric, trained and exported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from modgraph_runtime import Bundle
from torch import Tensor
from torch_geometric.nn import GATConv, GCNConv

import modgraph
from modgraph.cli import main
from modgraph.ops.edges import LOWERINGS
from modgraph.store.journal import read_metrics
from modgraph.store.run_directory import RunDirectory
from tests.test_zoo import below

Weights = Mapping[str, Tensor]
SIZES = [(9, 14), (5, 3), (3, 1), (7, 0)]  # nodes and edges of unlike graphs; the last has no edge
MADE = {"gcn": {"features": 6}, "gat": {"features": 6, "heads": 3}}


def unlike_graphs(width: int, seed: int = 0) -> dict[str, Tensor]:
    """A padded batch of graphs without self-loops, in float64; what stands in padding is random too."""
    generator = torch.Generator().manual_seed(seed)
    nodes, edges = (torch.tensor(each) for each in zip(*SIZES, strict=True))
    x = torch.randn(len(SIZES), 9, width, generator=generator, dtype=torch.float64)
    link = torch.zeros(len(SIZES), 14, 2, dtype=torch.long)
    for at, (count, many) in enumerate(SIZES):
        source = torch.randint(count, (many,), generator=generator)
        link[at, :many] = torch.stack(
            (source, (source + 1 + torch.randint(count - 1, (many,), generator=generator)) % count), 1
        )
    return {"x": x, "link": link, "node_length": nodes, "link_length": edges}


def gcn(weights: Weights) -> Any:
    def layer(own: Weights, x: Tensor, edges: Tensor) -> Any:
        made = GCNConv(x.shape[1], len(own["bias"])).double()
        made.load_state_dict({"lin.weight": own["h.linear.weight"], "bias": own["bias"]})
        return made(x, edges)

    return lambda x, edges: layer(
        below(weights, "logits.graph_conv."), layer(below(weights, "h.graph_conv."), x, edges).relu(), edges
    )


def gat(weights: Weights) -> Any:
    def layer(own: Weights, x: Tensor, edges: Tensor) -> Any:
        heads, width = own["source"].shape
        made = GATConv(x.shape[1], width, heads=heads, bias=False).double()
        named = {
            "lin.weight": own["h.linear.weight"],
            "att_src": own["source"][None],
            "att_dst": own["destination"][None],
        }
        made.load_state_dict(named)
        return made(x, edges)

    first, second = below(weights, "h.graph_attention."), below(weights, "logits.graph_attention.")
    return lambda x, edges: layer(second, F.elu(layer(first, x, edges)), edges)


@pytest.mark.parametrize("lowering", [*LOWERINGS])
@pytest.mark.parametrize(("name", "published"), [("gcn", gcn), ("gat", gat)])
def test_it_computes_what_the_layers_of_torch_geometric_do(name: str, published: Any, lowering: str) -> None:
    model = modgraph.load(f"specs/zoo/{name}.mod", **MADE[name]).build(seed=3, lowering=lowering).double().eval()
    for weight in model.parameters():
        weight.data += 0.3 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    batch = unlike_graphs(6)
    batch["x"].requires_grad_()
    found = model.compute(batch, losses=False).outputs["logits"]
    of_layers = published(dict(model.state_dict()))
    for at, (nodes, edges) in enumerate(SIZES):
        x = batch["x"][at, :nodes].detach().requires_grad_()
        expected = of_layers(x, batch["link"][at, :edges].t())
        torch.testing.assert_close(found[at, :nodes], expected, atol=1e-10, rtol=1e-10)
        (gradient,) = torch.autograd.grad(expected.pow(2).sum(), [x])
        (ours,) = torch.autograd.grad(found[at, :nodes].pow(2).sum(), [batch["x"]], retain_graph=True)
        torch.testing.assert_close(ours[at, :nodes], gradient, atol=1e-9, rtol=1e-9)


def test_a_mixture_on_graphs_computes_what_dense_matrices_do() -> None:
    model = modgraph.load("specs/zoo/graph_moe.mod", features=5, hidden=4, layers=1).build(seed=2).double().eval()
    weights, batch = dict(model.state_dict()), unlike_graphs(5)
    found = model.compute(batch, losses=False).outputs["logits"]
    own = below(weights, "layer.0.h.experts_by_hops.")
    for at, (nodes, edges) in enumerate(SIZES):
        x, joined = batch["x"][at, :nodes], torch.zeros(nodes, nodes, dtype=torch.float64)
        for source, target in batch["link"][at, :edges].tolist():
            joined[target, source] += 1
        scale = (joined.sum(1) + 1).rsqrt()
        spread = scale[:, None] * (joined + torch.eye(nodes)) * scale
        h = F.linear(x * joined.sum(1, keepdim=True), weights["h.linear.weight"], weights["h.linear.bias"])
        u = F.layer_norm(h, (4,), weights["layer.0.h.layer_norm.weight"], weights["layer.0.h.layer_norm.bias"], 1e-6)
        hops = spread @ u, spread @ spread @ u
        scores = u @ own["scores.linear.weight"].T
        kept = scores.topk(2).indices
        gates = torch.zeros_like(scores).scatter(1, kept, scores.gather(1, kept).softmax(1))
        experts = [
            below(own, f"expert.{expert}.{('one_hop', 'two_hops')[expert // 2]}.y.linear.") for expert in range(4)
        ]
        values = [F.linear(hops[expert // 2], each["weight"], each["bias"]) for expert, each in enumerate(experts)]
        h = h + torch.stack([gates[:, [expert]] * value for expert, value in enumerate(values)]).sum(0).relu()
        expected = F.linear(h.mean(0), weights["logits.linear.weight"], weights["logits.linear.bias"])
        torch.testing.assert_close(found[at], expected, atol=1e-10, rtol=1e-10)


FEW: dict[str, dict[str, Any]] = {
    "gcn": {"train.epochs": 20},
    "gat": {"model.heads": 2, "train.epochs": 20},
    "graph_moe": {"model.layers": 1, "data.train": 100, "data.test": 20, "train.epochs": 4},
}


@pytest.mark.parametrize(
    "name", ["gcn", *[pytest.param(name, marks=pytest.mark.slow) for name in ("graph_moe", "gat")]]
)
def test_it_learns_and_its_bundle_takes_graphs_of_other_sizes(name: str, tmp_path: Path) -> None:
    run = modgraph.train(f"specs/zoo/{name}.mod", overrides=FEW[name], out=tmp_path / "run", quiet=True)
    measured = read_metrics(RunDirectory(tmp_path / "run"))
    losses = [record["total_loss"] for record in measured if record["split"] == "train"]
    assert losses[-1] < losses[0]
    assert main(["export", str(tmp_path / "run"), "-o", str(tmp_path / "m.onnx")]) == 0
    rng = np.random.default_rng(0)
    width = 10 if name == "graph_moe" else 34
    arrays = {"x": rng.random((3, 6, width), np.float32), "link": rng.integers(0, 6, (3, 40, 2))}
    with torch.no_grad():
        expected = run.model().eval()(**{key: torch.from_numpy(each) for key, each in arrays.items()})
    found = Bundle(str(tmp_path / "m.onnx")).run(arrays)["logits"]
    np.testing.assert_allclose(found, expected, atol=1e-5)
