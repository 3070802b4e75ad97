"""Edges as data: values and gradients against matrices in numpy, padding, sizes that no trace has, and mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from modgraph_runtime import Bundle, BundleError
from numpy.typing import NDArray
from torch import Tensor

import modgraph
from modgraph.backends.report import compile_report
from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.ir import OpNode, from_json, to_json
from modgraph.ir.text.parse import parse_text
from modgraph.nn import edges, message_passing
from modgraph.ops.edges import LOWERINGS

GIVEN = "input x: float[node, 4] input link: edge[node, node] input w: float[link, 2] "
PAIRS = [[0, 1], [2, 1], [2, 1], [1, 0], [3, 3]]  # node 2 receives nothing, one edge is there twice
Array = NDArray[np.float64]


def model_of(body: str, lowering: str = "by_density") -> Any:
    return modgraph.loads(f"model m() {{ {body} }}").build(lowering=lowering).double().eval()


def ends(pairs: list[list[int]], nodes: int) -> tuple[Array, Array]:
    """The matrices of sources and targets [edges, nodes]."""
    return tuple(np.eye(nodes)[np.array(pairs)[:, end]] for end in (0, 1))  # type: ignore[return-value]


@pytest.mark.parametrize("lowering", LOWERINGS)
def test_a_route_over_edges_and_its_gradients_are_those_of_matrices(lowering: str) -> None:
    """u = Tᵀ (w ⊙ S x) for matrices S and T of sources and targets; dx = Sᵀ (w ⊙ T g), dw = Σ (T g) ⊙ (S x)."""
    model = model_of(GIVEN + "v = x -> unmerge([2, 2]) u = v by w over link output u", lowering)
    rng, (source, target) = np.random.default_rng(0), ends(PAIRS, 4)
    x, w, g = rng.normal(size=(4, 4)), rng.normal(size=(5, 2)), rng.normal(size=(4, 2, 2))
    given = {"x": torch.tensor(x[None], requires_grad=True), "w": torch.tensor(w[None], requires_grad=True)}
    with pytest.raises(ModgraphError):  # weights have no axis of the two halves, so that they do not fit
        model_of(GIVEN + "u = x by w over link output u")
    found = model.compute({**given, "link": torch.tensor([PAIRS])}).outputs["u"]
    v = x.reshape(4, 2, 2)
    np.testing.assert_allclose(
        found[0].detach(), np.einsum("en,ec,edc->ndc", target, w, np.einsum("en,ndc->edc", source, v)), atol=1e-12
    )
    dx, dw = torch.autograd.grad((found[0] * torch.from_numpy(g)).sum(), [given["x"], given["w"]])
    back = np.einsum("en,ndc->edc", target, g)
    np.testing.assert_allclose(dx[0].reshape(4, 2, 2), np.einsum("en,ec,edc->ndc", source, w, back), atol=1e-12)
    np.testing.assert_allclose(dw[0], np.einsum("edc,en,ndc->ec", back, source, v), atol=1e-12)


@pytest.mark.parametrize("lowering", LOWERINGS)
@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_a_node_without_edges_gets_zero_and_all_others_the_reduction(reduce: str, lowering: str) -> None:
    model = model_of(f'{GIVEN} y = (x - 5, link) -> aggregate("{reduce}") z = y output z', lowering)
    x = torch.randn(1, 4, 4, dtype=torch.float64, requires_grad=True)
    found = model.compute({"x": x, "link": torch.tensor([PAIRS]), "w": torch.zeros(1, 5, 2).double()}).outputs["z"][0]
    of_numpy = {"sum": np.sum, "mean": np.mean, "max": np.max}[reduce]
    rows = x[0].detach().numpy() - 5
    expected = [of_numpy(rows[nodes], axis=0) if nodes else np.zeros(4) for nodes in ([1], [0, 2, 2], [], [3])]
    np.testing.assert_allclose(found.detach(), np.stack(expected), atol=1e-12)
    (gradient,) = torch.autograd.grad(found.sum(), [x])
    assert gradient.isfinite().all() and gradient[0, 3].eq(1).all()


EVERYTHING = (
    GIVEN
    + """
  s = (link -> degree) + (link -> degree(at="source"))
  a = ((x, link) -> at_source) * ((x, link) -> at_target) -> sum(axis=-1)
  pool p[3] = linear(4)
  router r = linear(2)
  y = ((x, link) -> at_source) -> p by r
  u = x by ((a, link) -> edge_softmax) over link
  t = x -> p by a over link -> mean(axis=p)
  back = (u, link) -> aggregate("max", at="source")
  output whole = s * (t + u + back + ((y, link) -> aggregate("mean")))
"""
)


def unlike(seed: int, sizes: list[tuple[int, int]]) -> dict[str, Tensor]:
    """Graphs of so many nodes and edges as one batch, with rubbish in the padding of values."""
    rng = np.random.default_rng(seed)
    nodes, edges = (np.array(each) for each in zip(*sizes, strict=True))
    link = np.zeros((len(sizes), edges.max(), 2), np.int64)
    for row, (count, many) in zip(link, sizes, strict=True):
        row[:many] = rng.integers(0, count, (many, 2))
    shapes = {"x": (len(sizes), nodes.max(), 4), "w": (len(sizes), edges.max(), 2)}
    found = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    found |= {"link": link, "node_length": nodes, "link_length": edges}
    return {name: torch.from_numpy(each) for name, each in found.items()}


@pytest.mark.parametrize("lowering", LOWERINGS)
@pytest.mark.parametrize("training", [False, True])
def test_graphs_of_a_batch_do_not_meet(lowering: str, training: bool) -> None:
    model = model_of(EVERYTHING, lowering).train(training)
    sizes = [(4, 9), (1, 1), (6, 2), (3, 12)]
    batch = unlike(0, sizes)
    together = model.compute(batch, moves=False).outputs["whole"]
    for at, (nodes, count) in enumerate(sizes):
        single = {"x": batch["x"][at : at + 1, :nodes], "link": batch["link"][at : at + 1, :count]}
        single["w"] = batch["w"][at : at + 1, :count]
        single_result = model.compute(single, moves=False).outputs["whole"]
        torch.testing.assert_close(together[at, :nodes], single_result[0], atol=1e-11, rtol=1e-11)


def test_all_lowerings_have_the_gradients_of_the_definition() -> None:
    found = []
    for lowering in LOWERINGS:
        model, batch = model_of(EVERYTHING, lowering), unlike(1, [(5, 8), (3, 0), (4, 6)])
        batch["x"].requires_grad_()
        total = model.compute(batch).outputs["whole"][:, :3].pow(2).sum()
        found.append([total, *torch.autograd.grad(total, [batch["x"], *model.parameters()])])
    for one, *others in zip(*found, strict=True):
        assert one.isfinite().all()
        for other in others:
            torch.testing.assert_close(one, other, atol=1e-10, rtol=1e-10)


def test_a_call_picks_its_lowering_by_its_numbers_of_edges_and_nodes() -> None:
    rng, model = np.random.default_rng(0), model_of(GIVEN + "u = (x, link) -> aggregate output u", "by_density")
    for nodes, count, pick in ((48, 60, "scatter"), (48, 100, "matrices"), (300, 2100, "messages")):
        link = torch.from_numpy(rng.integers(0, nodes - 8, (2, count, 2)))
        x = torch.from_numpy(rng.normal(size=(2, nodes, 4)))
        batch = {"x": x, "link": link, "w": torch.zeros(2, count, 2).double()}
        with (
            patch.object(message_passing, "sum_by_matrices", wraps=edges.sum_by_matrices) as multiply,
            patch.object(edges.EdgeScatter, "forward", autospec=True, side_effect=edges.EdgeScatter.forward) as scatter,
        ):
            found = model.compute(batch).outputs["u"]
            picked = "matrices" if multiply.called else "scatter" if scatter.called else "messages"
            assert picked == pick, f"{count} edges between {nodes} nodes"
            multiply.reset_mock()
            x[:, nodes - 8 :] = float("inf")  # no edge begins there
            torch.testing.assert_close(model.compute(batch).outputs["u"], found)
            assert not multiply.called, "a product with matrices multiplies infinities"
            with patch.object(edges, "_can_wait", lambda x: False):  # as on an accelerator
                torch.testing.assert_close(model.compute(batch).outputs["u"], found)
            assert multiply.called == (pick == "matrices")
        x[:, nodes - 8 :] = 0
        expected = torch.zeros(2, nodes, 4).double()
        for example in range(2):
            expected[example].index_add_(0, link[example, :, 1], x[example, link[example, :, 0]])
        torch.testing.assert_close(found, expected)


@pytest.mark.slow
def test_a_bundle_takes_numbers_of_nodes_and_edges_that_no_trace_has(tmp_path: Path) -> None:
    (tmp_path / "m.mod").write_text(f"model m() {{ {EVERYTHING} }}", encoding="utf-8")
    path = str(tmp_path / "m.onnx")
    assert main(["compile", str(tmp_path / "m.mod"), "-o", path]) == 0
    model, bundle = modgraph.load(tmp_path / "m.mod").build().eval(), Bundle(path)
    for seed, sizes in enumerate([[(1, 1)], [(37, 120), (2, 3)], [(3, 64), (64, 1), (11, 40)]]):
        batch = {name: each.float() if each.is_floating_point() else each for name, each in unlike(seed, sizes).items()}
        with torch.no_grad():
            expected = model.compute(batch).outputs["whole"]
        given = {name: each.numpy() for name, each in batch.items() if name != "node_length"}
        found = bundle.run(given)["whole"]
        for row, one, (nodes, _) in zip(found, expected.numpy(), sizes, strict=True):
            np.testing.assert_allclose(row[:nodes], one[:nodes], atol=1e-4, rtol=1e-4)
    given["link"][1, 0, 1] = 64
    with pytest.raises(BundleError, match=r'"link" has an edge that ends at 64, at \[1, 0\]; example 1 has 0 to 63'):
        bundle.run(given)


def test_the_source_needs_only_torch(tmp_path: Path) -> None:
    (tmp_path / "m.mod").write_text(f"model m() {{ {EVERYTHING} }}", encoding="utf-8")
    assert main(["compile", str(tmp_path / "m.mod"), "-o", str(tmp_path / "m.py")]) == 0
    assert "torch_geometric" not in (tmp_path / "m.py").read_text(encoding="utf-8")


def test_compile_reports_how_edges_are_computed_and_cost_counts_them() -> None:
    program = modgraph.loads(f"model m() {{ {GIVEN} h = x -> unmerge([2, 2]) y = h by w over link output y }}")
    report = compile_report(program.ir, program.build())
    assert "edge route y.send: by_density; edges are data: torch_geometric message passing; sums by" in report
    assert "edge route y.send when exported: scatter; edges are data" in report
    assert "edge route y.send: scatter" in compile_report(program.ir, program.build(lowering="scatter"))
    assert [program.cost(link=edges, node=7).macs for edges in (1, 10)] == [4, 40]


def test_programs_with_edges_read_back_from_text_and_json() -> None:
    block = "block b() { input z: float[n, d] input between: edge[n, n] u = (z, between) -> aggregate output u } "
    text = block + f"model m() {{ {EVERYTHING} v = (x, link) -> b output v }}"
    program = modgraph.loads(text)
    written = str(program.ir)
    assert "link: edge[link, node, node] = input" in written and "call b (x, link)" in written
    assert parse_text(written) == program.ir
    assert from_json(to_json(program.ir)) == program.ir


def test_modules_send_to_the_modules_that_a_constant_joins() -> None:
    model = model_of(
        "input x: float[6] pool p[3] = linear(4) h = x -> p constant link: edge[p, p] = [[0, 1], [2, 1], [1, 0]] "
        "weight w: float[link] = normal(1.0) y = h by w over link z = (h, link) -> at_target output h output y output z"
    )
    found = model.compute({"x": torch.randn(2, 6, dtype=torch.float64)}).outputs
    h, w = found["h"], model.state_dict()["w"]
    expected = torch.stack((w[2] * h[:, 1], w[0] * h[:, 0] + w[1] * h[:, 2], torch.zeros(2, 4)), 1)
    torch.testing.assert_close(found["y"], expected)
    torch.testing.assert_close(found["z"], h[:, [1, 1, 0]])


def test_edges_join_two_kinds_of_nodes_at_each_step_of_a_scan() -> None:
    model = model_of(
        "input user: float[person, 3] input item: float[thing, 3] input bought: edge[person, thing] "
        "input at: float[time, thing, 3] "
        'y = (user, bought) -> aggregate z = (item, bought) -> aggregate(at="source") '
        'scan at as now { back = (now, bought) -> aggregate(at="source") '
        "u = (user + back, bought) -> aggregate yield u } as us output y output z output us"
    )
    rng, pairs = np.random.default_rng(0), np.array([[0, 1], [2, 1], [1, 0]])
    shapes = {"user": (1, 3, 3), "item": (1, 2, 3), "at": (1, 4, 2, 3)}
    values = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    batch = {name: torch.from_numpy(each) for name, each in values.items()} | {"bought": torch.from_numpy(pairs[None])}
    found = model.compute(batch).outputs
    joined = np.zeros((3, 2))
    np.add.at(joined, (pairs[:, 0], pairs[:, 1]), 1)
    np.testing.assert_allclose(found["y"][0], joined.T @ values["user"][0], atol=1e-12)
    np.testing.assert_allclose(found["z"][0], joined @ values["item"][0], atol=1e-12)
    total = values["user"] + joined @ values["at"][0]
    np.testing.assert_allclose(found["us"][0], joined.T @ total, atol=1e-12)


MISTAKES = {
    "input link: edge[nodes, nodes] output x": 'MG308.*join places along "nodes", which no input has',
    "input link: edge[node] output x": r"edges have two ends, not 1(.|\n)*for example: edge\[node, node\]",
    "input link: edge[node, node, 4] output x": r"two ends, not 3(.|\n)*input value: float\[link, 4\]",
    "input link: edge[5, 5] output x": "the end of an edge is an axis with a name, not 5",
    "input node: edge[node, node] output x": 'the edges are called like their end "node"',
    "target link: edge[node, node] output x": "only an input or a constant holds edges",
    "input z: float[place, 4] input link: edge[node, node] y = (z, link) -> aggregate output y": "has neither the axis",
    "input z: float[place, 4] input link: edge[node, node] y = (z, link) -> at_source output y": "lacks the axis",
    "y = (x, x) -> aggregate output y": 'operand "edges" must be edges, not float',
    "input link: edge[node, node] y = x by x over link output y": r"the weights \[node, 4\] lack the axis",
    "input link: edge[node, node] input w: float[link] y = x by w output y": "by … over link",
    "input link: edge[node, node] input w: float[link, 3] y = x by w over link output y": "do not fit messages",
    "input link: edge[node, node] y = link + 1 output y": "add: it takes no edges",
    "input link: edge[node, node] pool p[2] = linear(4) y = link -> p output y": "it takes no edges",
    "input link: edge[node, node] pool p[2] = linear(4) y = (x, link) -> p output y": "its modules take no edges",
    'input link: edge[node, node] back = link -> rename(node="other") output x': "rename: it takes no edges",
    "input link: edge[node, node] output link": "edges are an input, not an output",
    "constant link: edge[node, node] = [[0, 1]] output x": "constant edges join axes with a length",
    "pool p[3] = linear(4) constant link: edge[p, p] = [[0, 3]] h = x -> p y = (h, link) -> aggregate output y": (
        "edge 0 ends at 3, and p has 0 to 2"
    ),
    "pool p[3] = linear(4) constant link: edge[p, p] = [[0, 1, 2]] output x": "expected a list of 2, found 3",
    "pool p[3] = linear(4) constant link: edge[p, p] = 1 output x": "expected a list of pairs",
}


@pytest.mark.parametrize("body", MISTAKES)
def test_a_mistake_is_explained(body: str) -> None:
    with pytest.raises(ModgraphError, match=MISTAKES[body]):
        modgraph.loads(f"model m() {{ input x: float[node, 4] {body} }}")


def test_a_block_needs_a_value_over_the_nodes() -> None:
    block = "block b() { input m: float[link, d] input link: edge[n, n] y = (m, link) -> aggregate output y } "
    with pytest.raises(ModgraphError, match='no value here has the axis "node"'):
        modgraph.loads(f"{block} model m() {{ {GIVEN} y = (w, link) -> b output y }}")


def test_edges_at_nodes_that_an_example_lacks_are_named() -> None:
    model, batch = model_of(EVERYTHING), unlike(0, [(4, 3), (2, 3)])
    batch["link"][1, 2, 0] = 3
    with pytest.raises(ValueError, match="edge 2 of example 1 begins at 3, and node has 0 to 1"):
        model.compute(batch)
    batch["link_length"][1] = 2  # what stands in padding does not count
    assert model.compute(batch).outputs["whole"].isfinite().all()


def test_every_op_of_edges_is_lowered_to_what_is_asked() -> None:
    computed = modgraph.loads(f"model m() {{ {EVERYTHING} }}").build(lowering="scatter").computed
    found = [vars(node.op)["lowering"] for node in computed.nodes_of(OpNode) if "lowering" in vars(node.op)]
    assert len(found) == 4 and {*found} == {"scatter"}


def test_layers_share_the_degrees_of_their_nodes() -> None:
    """Each layer counts the nodes by a value of its own, and values over the same nodes count the same."""
    layer = "block layer() { input z: float[n, d] input on: edge[n, n] s = on -> degree "
    layer += "weights = (1 / (s + 1), on) -> at_source y = z by weights over on output y }"
    program = modgraph.loads(
        f"{layer} model m() {{ input x: float[node, 4] input link: edge[node, node] "
        "h = (x, link) -> layer -> relu y = (h, link) -> layer output y }"
    )
    names = [type(node.op).name for node in program.build().computed.nodes_of(OpNode)]
    assert [names.count(each) for each in ("degree", "at_source", "send")] == [1, 1, 2]
