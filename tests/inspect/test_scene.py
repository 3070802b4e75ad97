"""Scenes hold what graphs hold: every node once, every count once, equal calls in stacks."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modgraph.diagnostics import ModgraphError
from modgraph.inspect.cost import COUNTS, Cost
from modgraph.inspect.scene import Box, Scene, scene_of
from modgraph.ir import Freeze, Graph, from_json, to_json
from modgraph.program import load, loads
from tests.assault.sound import sound
from tests.examples import GRU, ROUTERS_IN_SCAN, TRANSFORMER, TWO_SCANS
from tests.ordinary_run import some_examples

SPECS = sorted(Path("specs").glob("*.mod"))
GROUPS = ("block", "repeat", "tokenizer")


def names_in(graph: Graph) -> set[str]:
    """Every node, by the id that it has in a scene: modules of pools stand below these."""
    found = {node.name for part in graph.parts() for node in part.graph}
    for pool in graph.pools().values():
        for module, region in enumerate(pool.regions):
            below = f"{pool.name}/" if pool.is_homogeneous else f"{pool.name}/{module}/"
            found |= {below + node.name for node in region.graph}
    return found


def check(scene: Scene, graph: Graph) -> None:
    ids = [box.id for box in scene.walk()]
    assert len(ids) == len(set(ids))
    names = names_in(graph)
    assert names <= set(ids)
    groups = [box for box in scene.walk() if box.id not in names]
    assert all(box.kind in GROUPS and box.children for box in groups)
    assert all(edge.source in names and edge.target in names for edge in scene.edges)
    assert sum((box.cost for box in scene.boxes), Cost()) == counts_of(scene.cost)
    for box in groups:
        assert box.cost == sum((child.cost for child in box.children), Cost())
    json.dumps(scene.as_json(), allow_nan=False)


def counts_of(cost: Cost) -> Cost:
    return Cost(*(getattr(cost, name) for name in COUNTS))


def found(scene: Scene, id: str) -> Box:
    return next(box for box in scene.walk() if box.id == id)


@pytest.mark.some(4)
@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_a_scene_of_each_spec_holds_each_node_and_count_once(path: Path) -> None:
    graph = load(path).ir
    check(scene_of(graph), graph)


@pytest.mark.parametrize("text", [GRU, TWO_SCANS, TRANSFORMER, *ROUTERS_IN_SCAN.values()])
def test_scans_and_their_pools_stand_in_it_once(text: str) -> None:
    graph = loads(text).ir
    check(scene_of(graph), graph)


@some_examples(40)
@given(st.integers(0, 1 << 32))
def test_a_scene_of_any_sound_spec_holds_each_node_and_count_once(seed: int) -> None:
    try:
        graph = loads(sound(Random(seed))).ir
        scene = scene_of(graph)
    except ModgraphError:
        return  # what no lengths fit has no cost
    check(scene, graph)


def test_a_scene_is_that_of_the_graph_however_it_was_read() -> None:
    graph = load("specs/modular_networks_lm.mod").ir
    again = scene_of(from_json(to_json(graph)))
    ids = [box.id for box in again.walk()]
    assert ids == [box.id for box in scene_of(graph).walk()]
    assert again.edges == scene_of(from_json(to_json(graph))).edges


def test_equal_repetitions_stand_in_one_repeat_and_know_what_they_equal() -> None:
    scene = scene_of(load("specs/gmoe.mod").ir)
    dense, mixed = (box for box in scene.boxes if box.kind == "repeat")
    assert [(box.id, box.count, box.period) for box in (dense, mixed)] == [("blocks.0-7", 8, 1), ("blocks.8-11", 2, 2)]
    assert [child.same_as for child in dense.children] == ["", *["blocks.0"] * 7]
    assert [child.same_as for child in mixed.children] == ["", "", "blocks.8", "blocks.9"]


def test_a_network_that_repeats_throughout_is_one_repeat() -> None:
    blocks = found(scene_of(load("specs/gmoe.mod", sparse=(1, 3, 5, 7, 9, 11)).ir), "blocks")
    assert (blocks.kind, blocks.count, blocks.period) == ("repeat", 6, 2)
    assert found(scene_of(load("specs/gmoe.mod", sparse=()).ir), "blocks").count == 12


def test_one_repetition_that_differs_in_a_setting_is_not_like_the_others() -> None:
    text = (
        "model m() { input x: float[8] y = x repeat b[i] in 0..6 { y = y -> linear(8, bias=i != 3) -> relu } output y }"
    )
    runs = [(box.id, box.count) for box in scene_of(loads(text).ir).boxes if box.id.startswith("b.")]
    assert runs == [("b.0-2", 3), ("b.3", 1), ("b.4-5", 2)]


def test_bindings_make_no_boxes_and_calls_of_blocks_stack_as_rounds_do() -> None:
    block = "block mlp() { input x: float[dim] y = x -> linear(8) -> relu output y } "
    body = "input x: float[8] x = x -> linear(8) -> relu x = x -> mlp x = x -> mlp x = x -> mlp output x"
    scene = scene_of(loads(f"{block} model m() {{ {body} }}").ir)
    assert [box.id for box in scene.boxes] == ["x", "x.linear", "x.relu", "x2.mlp-x4.mlp", "output.x"]
    stack = scene.boxes[3]
    assert (stack.label, stack.count, [box.same_as for box in stack.children]) == ("mlp", 3, ["", "x2.mlp", "x2.mlp"])


def test_calls_that_freeze_other_weights_stand_apart() -> None:
    text = "model m() { input x: float[8] repeat b[i] in 0..4 { x = x -> linear(8) -> relu } output x }"
    graph = Freeze(but=("b.3.*",)).apply(loads(text).ir)
    assert [box.id for box in scene_of(graph).boxes] == ["x", "b.0-2", "b.3", "output.x"]


def test_a_tokenizer_is_recognised_by_what_its_ops_do() -> None:
    smn = scene_of(load("specs/smn.mod").ir)
    assert found(smn, "logits.glimpses").kind == "tokenizer"
    assert found(scene_of(load("specs/gmoe.mod").ir), "x.patches").kind == "tokenizer"
    lm = scene_of(load("specs/modular_networks_lm.mod").ir)
    assert found(lm, "states.embedding").kind == "tokenizer"


def test_boxes_know_their_lines_in_the_files_that_they_come_from() -> None:
    path = Path("specs/gmoe_digits.mod")
    scene = scene_of(load(path).ir)
    head = found(scene, "head").lines
    assert head is not None
    text = path.read_text()
    assert text[head.start : head.end].startswith("linear(classes")
    assert text.splitlines()[head.first - 1].strip().startswith("logits =")
    imported = found(scene, "blocks.0.mlp.fc1").lines
    assert imported is not None
    assert imported.source.endswith("gmoe.mod")
    assert {Path(source.name).name for source in scene.sources} == {
        "gmoe.mod",
        "gmoe_digits.mod",
        "softmax_top_k.mod",
        "attention.mod",
    }
