"""What must not pass as an export: wrong numbers, wrong decisions, examples that depend on each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from modgraph_runtime import Bundle
from onnx import numpy_helper
from torch import Tensor, nn

import modgraph
from modgraph.backends.onnx import bundle as export_stage
from modgraph.backends.onnx.decisions import gap
from modgraph.backends.onnx.examples import Examples
from modgraph.backends.onnx.trace import Traced, trace
from modgraph.backends.onnx.verify import relative_errors, verify
from modgraph.backends.torch import Model
from modgraph.declare import Operand, Record, Role, TorchModule, Weight, normal, setting
from modgraph.ir import RouteNode, facts_of
from modgraph.passes import Lower, Moved
from modgraph.routers import Router
from tests.examples import ROUTER_EXAMPLES, SEQUENCE
from tests.traces import Trace

SMALL = "model m() { input x: float[4] y = x -> linear(3) output y }"
ROUTED = """model m() { input x: float[5, 4] pool p[3] = linear(4) -> tanh router r = best_of(last=LAST)
  y = x -> p by r -> mean output y }"""


class BestOf(nn.Module):
    """Scores of modules for tokens, one weight per module; the last is never chosen unless `last`."""

    def __init__(self, width: int, modules: int, last: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(modules, width))
        self.last = last

    def forward(self, x: Tensor) -> Tensor:
        scores = x @ self.weight.T
        return scores if self.last else scores.index_fill(-1, torch.tensor([scores.shape[-1] - 1]), -1e3)


class BestOfRoute(nn.Module):
    """Each token to the module of its largest score."""

    def forward(self, tokens: Tensor, pool: Any, router: BestOf, mask: Tensor | None = None) -> tuple[Tensor, ...]:
        scores = router(tokens)
        choice = nn.functional.one_hot(scores.argmax(-1), len(pool)).to(tokens.dtype)
        return (pool.all(tokens) * choice.unsqueeze(-1)).sum(-2), choice, scores


@pytest.fixture
def discrete() -> Iterator[None]:
    """A router that chooses, for as long as a test lasts."""

    class BestOfRouter(Router, name="best_of"):
        """Send each token to the module with the largest score."""

        operands = (Operand("tokens", "... N D"),)
        records = (Record("selected", "... N M", Role.CHOICE), Record("scores", "... N M", Role.SCORES))
        weights = (Weight("weight", "M D", normal(1.0)),)
        module = TorchModule(f"{__name__}.BestOf", "D", "M", "last")
        reference = f"{__name__}.BestOfRoute"
        last: bool = setting(True, doc="the last module may be chosen")

    yield
    del Router.registry["best_of"]


def routed(last: str = "true") -> Model:
    return modgraph.loads(ROUTED.replace("LAST", last)).build()


@pytest.mark.usefixtures("discrete")
def test_decisions_that_hang_on_rounding_are_replaced_and_counted(tmp_path: Path) -> None:
    close = np.zeros((40, 5, 4), np.float32)
    clear = np.random.default_rng(0).normal(size=(40, 5, 4)).astype(np.float32)
    report = modgraph.export(routed(), tmp_path / "m.onnx", examples={"x": np.concatenate((close, clear))})
    assert report.verified.replaced >= 40
    assert report.verified.unreached == {"p": []}
    assert "examples replaced because their decisions were too close to compare: " in str(report)


@pytest.mark.usefixtures("discrete")
def test_a_model_of_only_ties_is_compared_all_the_same(tmp_path: Path) -> None:
    report = modgraph.export(routed(), tmp_path / "m.onnx", examples={"x": np.zeros((3, 5, 4))})
    assert report.verified.replaced > 0
    assert report.verified.unreached == {"p": [1, 2]}  # ties go to the lower index, in every order of modules


@pytest.mark.usefixtures("discrete")
def test_modules_that_nothing_reaches_are_a_warning_and_stand_in_the_manifest(tmp_path: Path) -> None:
    report = modgraph.export(routed(last="false"), tmp_path / "m.onnx")
    assert [warning.code for warning in report.warnings] == ["MG705"]
    assert "2 of 3 modules reached" in str(report)
    bundle = Bundle(tmp_path / "m.onnx")
    assert bundle.manifest["pools"]["p"] == {"size": 3, "unreached": [2], "permuted": []}
    assert bundle.manifest["verified"]["worst"] < 1e-5


LAYERS = """model m() {
  input  xs: float[time, 4]
  pool   first[3] = linear(4)
  pool   second[2] = linear(4)
  router a = categorical(1)
  router b = noisy_top_k(1)
  y = xs -> first by a -> second by b -> mean
  output y
}"""
IN_SCAN = LAYERS.replace(
    "y = xs -> first by a -> second by b -> mean", "scan xs as x { z = x -> first by a -> second by b yield z } as y"
)


BY_CHOICE = LAYERS.replace("router a = categorical(1)", "module a = linear(first)").replace(
    "first by a", "first by (xs -> a -> top_k)"
)


def lopsided(spec: str) -> Model:
    """The first router always chooses its second module."""
    model = modgraph.loads(spec).build()
    (bias,) = (each for name, each in model.named_parameters() if name.startswith("a.") and name.endswith("bias"))
    bias.data[..., 1] = 50
    model.b.weight.data.normal_(generator=torch.Generator().manual_seed(0))
    return model


@pytest.mark.some(1)
@pytest.mark.usefixtures("trace_once")
@pytest.mark.parametrize("spec", [LAYERS, IN_SCAN, pytest.param(BY_CHOICE, marks=pytest.mark.slow)])
def test_a_module_that_no_example_reaches_is_reached_with_modules_in_another_order(tmp_path: Path, spec: str) -> None:
    model = lopsided(spec)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    report = modgraph.export(model, tmp_path / "m.onnx")
    assert report.verified.permuted["first"] == [0, 2]
    assert report.verified.unreached == {"first": [], "second": []}
    assert "3 of 3 modules reached, 2 of them with the router's modules in another order" in str(report)
    assert not report.warnings
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


@pytest.mark.slow
@pytest.mark.usefixtures("trace_once")
def test_what_differs_in_a_module_that_no_example_reaches_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = lopsided(LAYERS)
    plain = export_stage.trace

    def wrong(inference: Model, examples: Examples) -> Traced:
        """A bundle in which one weight of an idle module is another."""
        traced = plain(inference, examples)
        (tensor,) = (each for each in traced.proto.graph.initializer if each.name == "first.2.linear.bias")
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) + 1, tensor.name))
        return traced

    monkeypatch.setattr(export_stage, "trace", wrong)
    with pytest.raises(modgraph.ModgraphError, match=r"differs|chooses other modules"):
        modgraph.export(model, tmp_path / "m.onnx")


@pytest.mark.usefixtures("discrete", "trace_once")
def test_records_are_outputs_only_when_asked_for(tmp_path: Path) -> None:
    modgraph.export(routed(), tmp_path / "plain.onnx")
    modgraph.export(routed(), tmp_path / "routing.onnx", routing=True)
    assert [each.name for each in onnx.load(tmp_path / "plain.onnx").graph.output] == ["y"]
    routing = Bundle(tmp_path / "routing.onnx")
    assert list(routing.routing) == ["p.selected", "p.scores"]
    x = np.random.default_rng(0).normal(size=(2, 5, 4))
    assert routing.run({"x": x}, routing=True)["p.selected"].sum() == 10
    np.testing.assert_allclose(routing.run({"x": x})["y"], Bundle(tmp_path / "plain.onnx").run({"x": x})["y"])


@pytest.mark.usefixtures("discrete")
def test_other_decisions_are_reported_before_other_numbers() -> None:
    inference = export_stage.deterministic(routed())
    traced = trace(inference, Examples(inference.graph))
    with torch.no_grad():
        inference.get_parameter("r.weight").neg_()
    with pytest.raises(modgraph.ModgraphError, match="chooses other modules") as caught:
        verify(inference, traced, Examples(inference.graph))
    assert {each.code for each in caught.value.diagnostics} == {"MG708"}


def test_the_gap_is_that_of_the_closest_decision() -> None:
    scores = torch.tensor([[[4.0, 1.0, 2.0], [0.5, 0.0, 0.25]], [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]])
    choice = torch.tensor([[[1, 0, 0], [1, 0, 0]], [[1, 1, 0], [1, 1, 1]]])
    assert gap(choice, scores).tolist() == [0.25 / 4, 0.0], "by the largest score"
    assert gap(choice, scores / 8).tolist() == [0.25 / 8, 0.0], "small scores are taken as they are"


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ROUTER_EXAMPLES)
def test_every_lowering_that_export_may_choose_can_be_exported(name: str, trace_once: Trace) -> None:
    """The definition by message passing is not one of them, where a router has others."""
    inference = export_stage.deterministic(modgraph.loads(ROUTER_EXAMPLES[name]).build())
    graph = inference.graph
    (route,) = graph.nodes_of(RouteNode)
    router = graph.router_of(route).router
    lowerings = router.lowerings(facts_of(graph.pool_of(route)))
    for lowering in [
        lowering for lowering in lowerings if lowering.exportable and lowering != router.reference_lowering
    ] or lowerings:
        lowered = Model(graph, Moved(Lower(lowering.name)(graph))).eval()
        lowered.load_state_dict(inference.state_dict())
        examples = Examples(lowered.graph)
        assert verify(lowered, trace_once(lowered, examples), examples).worst < 1e-5


def spoil(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    """Let an export's trace go wrong."""
    plain = export_stage.trace

    def spoiled(*arguments: Any) -> Traced:
        traced = plain(*arguments)
        change(traced.proto.graph)
        return traced

    monkeypatch.setattr(export_stage, "trace", spoiled)


def other_weights(graph: onnx.GraphProto) -> None:
    for weight in graph.initializer:
        if weight.name.endswith(".bias"):
            values = onnx.numpy_helper.to_array(weight) + np.float32(0.01)
            weight.CopyFrom(onnx.numpy_helper.from_array(values, weight.name))


def mean_over_batch(graph: onnx.GraphProto) -> None:
    name = graph.output[0].name
    for node in graph.node:
        node.output[:] = ["before" if each == name else each for each in node.output]
    graph.node.append(onnx.helper.make_node("ReduceMean", ["before"], ["mean"], keepdims=1))
    graph.node.append(onnx.helper.make_node("Sub", ["before", "mean"], [name]))


def no_such_op(graph: onnx.GraphProto) -> None:
    graph.node[0].op_type = "NoSuchOp"


@pytest.mark.usefixtures("trace_once")
@pytest.mark.parametrize(
    ("change", "code"), [(other_weights, "MG702"), (mean_over_batch, "MG703"), (no_such_op, "MG704")]
)
def test_an_export_that_fails_leaves_what_was_there(
    change: Any, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = modgraph.loads(SMALL).build()
    modgraph.export(model, tmp_path / "m.onnx")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(before) == {"m.onnx", "m.json"}
    spoil(monkeypatch, change)
    with pytest.raises(modgraph.ModgraphError) as caught:
        modgraph.export(model, tmp_path / "m.onnx")
    assert code in {each.code for each in caught.value.diagnostics}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_is_not_finite_agrees_where_both_are_the_same() -> None:
    theirs = np.array([1.0, np.nan, np.inf])
    assert relative_errors({"y": theirs}, {"y": theirs}) == {"y": 0.0}
    assert relative_errors({"y": theirs}, {"y": np.array([1.0, np.nan, -np.inf])}) == {"y": np.inf}
    assert relative_errors({"y": np.zeros(3)}, {"y": np.zeros(4)}) == {"y": np.inf}
    assert relative_errors({"y": np.array([2.0])}, {"y": np.array([np.nan])})["y"] != 0
    with pytest.raises(modgraph.ModgraphError, match="infinite or NaN"):
        relative_errors({"y": np.array([np.nan])}, {"y": np.array([np.nan])})


def test_weights_that_diverged_are_reported_by_name(tmp_path: Path) -> None:
    model = modgraph.loads(SMALL).build()
    with torch.no_grad():
        model.get_parameter("y.linear.bias")[1] = torch.nan
    with pytest.raises(modgraph.ModgraphError, match=r'MG709.*"y\.linear\.bias"'):
        modgraph.export(model, tmp_path / "m.onnx")


def test_an_output_over_the_whole_batch_is_refused(tmp_path: Path) -> None:
    text = """model m() { input x: float[5, 4] pool p[3] = linear(4) router r = agreement(1)
      y = (x -> p by r -> mean) * importance(r) output y }"""
    with pytest.raises(modgraph.ModgraphError, match="MG707"):
        modgraph.export(modgraph.loads(text).build(), tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("examples", "words"),
    [
        ({}, "is missing"),
        ({"words": np.zeros((3, 4))}, "needs int64"),
        ({"words": np.full((3, 4), 20)}, "allows 0 to 19"),
        ({"words": np.zeros((0, 4), int)}, "no examples"),
        ({"words": np.zeros((3, 4), int), "time_length": np.array([1, 2, 5])}, "between 0 and 4"),
    ],
)
def test_examples_that_do_not_fit_are_reported(examples: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(modgraph.ModgraphError, match=words) as caught:
        modgraph.export(modgraph.loads(SEQUENCE).build(), tmp_path / "m.onnx", examples=examples)
    assert caught.value.diagnostics[0].code == "MG710"


def test_class_names_that_do_not_fit_are_reported(tmp_path: Path) -> None:
    names = {"classes": {"label": ["only one"]}}
    with pytest.raises(modgraph.ModgraphError, match=r"names 1 classes of \"label\", which is class\[3\]"):
        modgraph.export(modgraph.loads(SEQUENCE).build(), tmp_path / "m.onnx", description=names)


def test_examples_are_cut_to_a_second_length(tmp_path: Path) -> None:
    words = np.random.default_rng(0).integers(0, 20, (7, 9))
    given = {"words": words, "time_length": np.arange(1, 8), "label": np.zeros(7, int)}
    text = """model m() { input words: token[time, 20] target label: class[3]
      y = words -> embedding(4) -> mean -> linear(3) output y loss cross_entropy(y, label) }"""
    report = modgraph.export(modgraph.loads(text).build(), tmp_path / "m.onnx", examples=given)
    assert report.verified.lengths == ({"time": 5}, {"time": 9})
    assert report.verified.worst < 1e-5


def test_an_export_is_a_function_of_the_model(tmp_path: Path) -> None:
    state = torch.random.get_rng_state()
    model = modgraph.load("specs/smn.mod", iterations=1).build(seed=2).train()
    for name in ("a", "b"):
        modgraph.export(model, tmp_path / f"{name}.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    assert torch.equal(torch.random.get_rng_state(), state)
    assert model.training


@pytest.mark.slow
def test_an_array_next_to_a_router_is_converted_as_torch_converts_it(tmp_path: Path) -> None:
    text = """model m() { input x: float[5, 4] pool p[4] = linear(4) router r = noisy_top_k(k=1)
      weight w: float[5, p] = normal(0.5) y = x -> p by r u = (x, w -> unit) -> contract output y output u }"""
    report = modgraph.export(modgraph.loads(text).build(), tmp_path / "m.onnx")
    assert {tensor.name for tensor in onnx.load(tmp_path / "m.onnx").graph.initializer} >= {"w"}
    assert report.verified.worst < 1e-5
