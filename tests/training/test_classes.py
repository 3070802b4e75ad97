"""Classes that are an axis: they grow in mid-training as a pool's modules do, and labels beyond them are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from modgraph.backends.onnx.manifest import describe
from modgraph.backends.torch import build
from modgraph.data import Arrays
from modgraph.data.declaration import check, refuse_labels_beyond
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Freeze, Grow, Shrink, comparisons, find_module_axes, replay_edits
from modgraph.metrics.metrics import measure
from modgraph.program import loads
from modgraph.store.checkpoint import Checkpoint
from modgraph.training.run import start_run
from modgraph.training.stages import cut_weights, take_weights
from modgraph.types import Misfit
from tests.elaboration.test_named_axes import ALONG, graph_of
from tests.small_runs import change_graph
from tests.training.test_state import stop_before, written

SPEC = """
model small(classes=3) {
  input  x: float[4]
  target y: class[kind=classes]
  z = x -> linear(6) -> relu -> linear(kind)
  output z
  loss cross_entropy(z, y)
}
"""


def test_weights_along_classes_in_shards_are_the_whole_ones() -> None:
    graph = graph_of()
    grown = Grow("kind", 2).apply(Freeze().apply(graph))
    plain, parts = build(grown, 1), build(grown, 1)
    cut = cut_weights(
        parts, grown, Checkpoint(0, 0, dict(build(graph, 1).state_dict()), {}, graph=graph, origin=graph.hash())
    )
    assert cut.keys() == ALONG.keys() - {"seen.value"}
    weights = {name: torch.randn(each.shape) for name, each in plain.state_dict().items()}
    plain.load_state_dict(weights)
    take_weights(parts, cut, weights)
    x = torch.randn(2, 5, 6)
    found = parts(x)
    assert all(value.equal(found[name]) for name, value in plain(x).items())
    for each in cut.values():
        assert [part.requires_grad for part in each.parts] == [False, True]


def test_of_a_frozen_model_only_the_rows_of_new_classes_learn(tmp_path: Path) -> None:
    with start_run(str(written(tmp_path, SPEC)), None, {}, str(tmp_path / "run")) as engine:
        stop_before(engine, 3)
        before = {name: each.clone() for name, each in engine.checkpoint().weights.items()}
        change_graph(engine, replay_edits(engine.state.graph, [Freeze(), Grow("kind")]))
        stop_before(engine, 6)
        after = engine.checkpoint().weights
        along = find_module_axes(engine.state.graph)
    assert along.keys() == {"z.linear2.weight", "z.linear2.bias"}
    for name, value in before.items():
        now = after[name][:3] if name in along else after[name]
        assert now.equal(value)
    assert after["z.linear2.weight"].shape == (4, 6)


def test_classes_that_are_added_count_as_much_as_any() -> None:
    graph = loads(SPEC.replace("(z, y)", "(z, y, class_weights=[2, 1, 3])")).ir
    grown = Grow("kind", 2).apply(graph)
    (compared,) = comparisons(grown)
    assert compared.class_weights == (2, 1, 3, 1, 1)
    assert replay_edits(grown, Grow("kind", 2).invert(graph)) == graph
    with pytest.raises(Misfit, match="would be lost"):
        Shrink("kind").apply(graph)


def arrays(labels: list[int]) -> Arrays:
    return Arrays({"x": torch.zeros(len(labels), 4).numpy(), "y": torch.tensor(labels).numpy()})


def test_data_may_hold_classes_that_are_still_to_come() -> None:
    graph = loads(SPEC).ir
    assert check(arrays([0, 7]), graph, "train").values["y"].max() == 7
    with pytest.raises(ModgraphError, match="allows 0 and more"):
        check(arrays([0, -1]), graph, "train")
    with pytest.raises(ModgraphError, match="allows 0 to 2"):
        check(arrays([0, 7]), loads(SPEC.replace("kind=classes", "classes").replace("(kind)", "(classes)")).ir, "train")


def test_labels_beyond_the_classes_of_a_model_are_refused(tmp_path: Path) -> None:
    graph = loads(SPEC).ir
    refuse_labels_beyond(arrays([0, 2]), graph)
    for refused in (
        lambda: refuse_labels_beyond(arrays([0, 5, 3]), graph),
        lambda: measure(build(graph), arrays([0, 3])),
        lambda: start_run(str(written(tmp_path, SPEC)), None, {"model.classes": 2}, str(tmp_path / "run")).__enter__(),
    ):
        with pytest.raises(ModgraphError) as caught:
            refused()
        assert [each.code for each in caught.value.diagnostics] == ["MG258"]
        assert "contains class" in str(caught.value)
    ignore_labels = SPEC.replace("(z, y)", "(z, y, ignore=9)")
    refuse_labels_beyond(arrays([0, 9]), loads(ignore_labels).ir)


def test_a_bundle_names_the_classes_that_the_model_has() -> None:
    graph, names = loads(SPEC).ir, ["one", "two", "three", "four"]
    assert describe({"classes": {"y": names}}, graph)["classes"] == {"y": names[:3]}
    grown = Grow("kind").apply(graph)
    assert describe({"classes": {"y": names}}, grown)["classes"] == {"y": names}
    with pytest.raises(ModgraphError, match="names 2 classes"):
        describe({"classes": {"y": names[:2]}}, graph)
