"""Pools inside the modules of pools: names, axes, what is refused, and what the graph's readers make of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.inspect.diff import Fate, apply_diff, compare, list_weights_after
from modgraph.inspect.scene import scene_of
from modgraph.ir import (
    Freeze,
    Graph,
    Grow,
    UnreadableGraph,
    find_module_axes,
    flat_to_json,
    from_json,
    grow,
    replay_edits,
    to_json,
    verify,
    weights_of,
)
from modgraph.ir.text.parse import parse_text
from modgraph.program import loads
from tests.ir.flat import flat_from_json
from tests.nested_pools import ADAPTERS, MORE, SPECS, THREE_LEVELS, TWO_LEVELS

TASK = "target t: class[3] loss (y -> mean(axis=-2) -> linear(3), t) -> cross_entropy"


def graph_of(text: str) -> Graph:
    return loads(text).ir


def names_of(graph: Graph) -> set[str]:
    return {weight.name for weight in weights_of(graph)}


def diagnose(block: str, of: str = "unit", before: str = "", after: str = "") -> list[Diagnostic]:
    """The messages of a model whose pool is made of a block."""
    text = f"""{block} model m() {{ input x: float[5, 4] {before} pool outer[2] = {of}
        y = x -> outer by (x -> linear(outer) -> softmax) output y {after} }}"""
    try:
        return list(loads(text).warnings)
    except ModgraphError as error:
        return list(error.diagnostics)


def unit(body: str, parameters: str = "") -> str:
    return f"block unit({parameters}) {{ input x: float[dim] {body} output y }}"


@pytest.mark.parametrize("text", [*SPECS.values(), *MORE.values()], ids=[*SPECS, *MORE])
def test_text_and_json_read_back(text: str) -> None:
    graph = graph_of(text)
    verify(graph)
    assert parse_text(str(graph)) == graph
    assert from_json(json.loads(json.dumps(to_json(graph)))) == graph


def test_each_module_has_inner_modules_and_a_router_of_its_own() -> None:
    names = names_of(graph_of(TWO_LEVELS))
    inner = {
        f"outer.{i}.expert.inner.{j}.linear.{each}" for i in range(4) for j in range(3) for each in ("weight", "bias")
    }
    gates = {f"outer.{i}.expert.gate.weight" for i in range(4)}
    assert {name for name in names if name.startswith("outer.")} == inner | gates


def test_the_axis_of_inner_modules_is_none_of_the_same_word_outside() -> None:
    block = unit("pool inner[2] = linear(4) y = x -> inner")
    outside = 'v = x -> unit(name="unit") output v'  # whose axis is called unit.inner
    assert not diagnose(block, after=outside)
    (message,) = diagnose(block, after=f"{outside} w = y + v output w")
    assert message.code == "MG301", "the axes of two pools are added as if they were one"
    weights = {weight.name: weight for weight in weights_of(graph_of(TWO_LEVELS))}
    assert weights["outer.1.expert.gate.weight"].axes[0].name == "outer.expert.inner"


def test_unlike_modules_have_pools_of_other_sizes() -> None:
    block = unit("pool inner[n] = linear(4) y = x -> inner -> mean(axis=inner)", "n")
    assert not diagnose(block, of="[unit(2), unit(3)]")
    graph = graph_of(f"{block} model m() {{ input x: float[4] pool p = [unit(2), unit(3)] y = x -> p output y }}")
    assert [region.graph.pools()["unit.inner"].axis.name for region in graph.pools()["p"].regions] == [
        "p.0.unit.inner",
        "p.1.unit.inner",
    ]


def test_pools_inside_share_an_axis_with_each_other() -> None:
    body = """pool inner[2] = linear(4) pool also[inner] = tanh -> linear(4) w = x -> linear(inner) -> softmax
        y = (x -> inner by w) + (x -> also by w)"""
    assert not diagnose(unit(body))


ROUTED = "pool inner[2] = linear(4) router gate = linear(1) y = x -> inner by gate"
SHARED = "declare it in the block of the pool's modules, so that each has its own"
REFUSED: dict[str, tuple[dict[str, str], str, str]] = {
    "pool": (
        {"block": unit("y = x -> p -> mean(axis=p)", "p"), "of": "unit(q)", "before": "pool q[2] = linear(4)"},
        'the shared pool "q"',
        SHARED,
    ),
    "router": (
        {
            "block": unit("pool inner[2] = linear(4) y = x -> inner by r", "r"),
            "of": "unit(q)",
            "before": "router q = linear(1)",
        },
        'the shared router "q"',
        SHARED,
    ),
    "module": (
        {"block": unit("module own = linear(4) pool inner[2] = own y = x -> inner -> mean(axis=inner)")},
        'the shared module "unit.own"',
        SHARED,
    ),
    "axis": (
        {
            "block": unit("pool inner[p] = linear(4) y = x -> inner -> mean(axis=inner)", "p"),
            "of": "unit(q)",
            "before": "pool q[2] = linear(4)",
        },
        'a pool along the axis "q"',
        "give it a size: pool inner[len(p)] = …",
    ),
    "record": (
        {"block": unit(f"{ROUTED} z = gate.gates")},
        'a record of the router "unit.gate"',
        "compute the weights in the module: w = x -> linear(POOL) -> softmax y = x -> POOL by w",
    ),
    "statistic": (
        {"block": unit(f"{ROUTED} z = importance(gate)")},
        'a record of the router "unit.gate"',
        "compute the weights in the module: w = x -> linear(POOL) -> softmax y = x -> POOL by w",
    ),
    "loss": ({"block": unit(f"{ROUTED} loss importance(gate)")}, "a loss", "move it outside of the pool"),
    "growth": (
        {"block": unit(f"{ROUTED} grow inner by gate when (x -> mean) > 2")},
        "growth",
        "move it outside of the pool",
    ),
    "added": (
        {"block": unit(ROUTED.replace("router", "grow inner[1] router"))},
        "growth",
        "move it outside of the pool",
    ),
    "draw": (
        {"block": unit(ROUTED.replace("linear(1)", "categorical"))},
        'the sampling router "unit.gate"',
        "let a router of the model sample, and choose by linear(k=1) in its modules",
    ),
    "scan": (
        {"block": unit(f"{ROUTED} z = x -> inner scan z as v with h: float[4] {{ h = v + h yield h }} as w")},
        "a scan",
        "move it outside of the pool",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_module_can_have_is_refused_with_a_way_out(name: str) -> None:
    given, what, way_out = REFUSED[name]
    (message,) = diagnose(**given)
    facts: Any = message
    assert (message.code, facts.what, facts.way_out) == ("MG226", what, way_out)
    assert message.span is not None


def test_a_router_inside_that_no_gradient_reaches_is_reported() -> None:
    (caution,) = diagnose(unit(ROUTED.replace("linear(1)", "noisy_top_k(1)")), after=TASK)
    facts: Any = caution
    assert (caution.code, facts.what) == ("MG413", 'router "outer.unit.gate"')
    assert not diagnose(unit(ROUTED), after=TASK)


def test_modules_of_modules_are_counted_against_the_limit() -> None:
    nested = "block a() { input x: float[4] pool p[512] = linear(4) y = x -> p -> mean(axis=p) output y }"
    assert [each.code for each in diagnose(nested, of="a", before="pool big[400] = a v = x -> big")] == ["MG216"]


def test_pools_inside_pools_are_as_deep_as_a_stored_graph_can_be() -> None:
    def nested(levels: int) -> str:
        text = "block b0() { input x: float[4] y = x -> linear(4) output y }\n"
        body = "pool p[1] = b{} y = x -> p -> mean(axis=p) output y }}\n"
        for i in range(1, levels):
            text += f"block b{i}() {{ input x: float[4] {body.format(i - 1)}"
        return f"{text} model m() {{ input x: float[4] {body.format(levels - 1)}"

    graph = graph_of(nested(16))
    assert from_json(json.loads(json.dumps(to_json(graph)))) == graph
    assert parse_text(str(graph)) == graph
    with pytest.raises(ModgraphError) as caught:
        loads(nested(17))
    assert [each.code for each in caught.value.diagnostics] == ["MG216"]


# ---------------------------------------------------------------- readers of the graph


def test_growing_the_outer_pool_gives_inner_pools_and_routers_for_each_new_module() -> None:
    small, large = graph_of(TWO_LEVELS), graph_of(TWO_LEVELS.replace("outer[4]", "outer[6]"))
    grown = grow(small, "outer", 2)
    verify(grown)
    assert names_of(grown) == names_of(large)
    assert {name: each.axis for name, each in find_module_axes(grown).items()} == {"r.weight": 0}
    assert replay_edits(grown, [*Grow("outer", 2).invert(small)]) == small


def test_inner_modules_are_frozen_by_pattern_and_new_outer_ones_learn() -> None:
    graph = graph_of(TWO_LEVELS)
    frozen = Freeze(but=("outer.*.expert.gate.*",)).apply(graph)
    fixed = {weight.name for weight in weights_of(frozen) if weight.frozen}
    assert fixed == {name for name in names_of(graph) if ".gate." not in name}
    assert replay_edits(frozen, Freeze().invert(graph)) == graph
    later = replay_edits(graph, [Freeze(), Grow("outer")])
    learns = {weight.name for weight in weights_of(later) if not weight.frozen}
    assert learns == names_of(later) - names_of(graph)


def test_the_cost_is_that_of_the_modules_that_run() -> None:
    cost = loads(TWO_LEVELS).cost()
    inner, gate = 3 * (16 * 16 + 16), 3 * 16
    assert cost.nodes["outer"].parameters == 4 * (inner + gate)
    assert cost.nodes["outer"].macs == 5 * 4 * (3 * 16 * 16 + gate)
    assert cost.nodes["outer"].active_macs == 5 * (16 * 16 + gate)
    adapters = loads(ADAPTERS).cost().nodes["outer"]
    assert adapters.parameters == 4 * (8 * 8 + 8 + 3 * (2 * 8 + 2 + 8 * 2 + 8) + 3 * 8 + 3)
    assert adapters.active_macs == 5 * 2 * (8 * 8 + 3 * 8 + 2 * 3 * 2 * 8 * 2)  # both routes run every adapter


def test_a_scene_nests_boxes_and_counts_each_number_once() -> None:
    scene = scene_of(graph_of(THREE_LEVELS))
    boxes, waiting = [], [*scene.boxes]
    while waiting:
        box = waiting.pop()
        boxes.append(box)
        waiting += box.children
    ids = [box.id for box in boxes]
    assert len(ids) == len({*ids}), "two boxes have one id"
    assert "branches/branch.twigs/0/twig.leaves/leaf.y.linear" in ids
    assert {end for edge in scene.edges for end in (edge.source, edge.target)} <= {*ids}
    assert sum(box.cost.parameters for box in boxes if box.kind not in ("block", "route")) == scene.cost.parameters


def test_a_diff_knows_what_becomes_of_weights_of_inner_modules() -> None:
    before, larger = graph_of(TWO_LEVELS), graph_of(TWO_LEVELS.replace("inner[3]", "inner[4]"))
    found = list_weights_after(compare(before, larger), before, larger)
    fates = {(each.after or each.before).name: each.fate for each in found}  # type: ignore[union-attr]
    assert {name for name, fate in fates.items() if fate is Fate.RESHAPED} == {
        f"outer.{j}.expert.gate.weight" for j in range(4)
    }
    new = {f"outer.{j}.expert.inner.3.linear.{each}" for j in range(4) for each in ("weight", "bias")}
    assert {name for name, fate in fates.items() if fate is Fate.NEW} == new
    assert apply_diff(compare(before, larger), before) == larger


def test_a_diff_follows_an_inner_pool_to_its_new_name() -> None:
    before, after = graph_of(TWO_LEVELS), graph_of(TWO_LEVELS.replace("inner", "core"))
    found = list_weights_after(compare(before, after), before, after)
    moved = {each.before.name: each.after.name for each in found if each.before and each.after}
    assert moved["outer.2.expert.inner.1.linear.weight"] == "outer.2.expert.core.1.linear.weight"
    assert len(moved) == len(weights_of(before)), "a weight is lost"
    assert apply_diff(compare(before, after), before) == after
    for old, new in (("branches", "tops"), ("twigs", "limbs"), ("leaves", "needles")):
        deep, other = graph_of(THREE_LEVELS), graph_of(THREE_LEVELS.replace(old, new))
        found = compare(deep, other)
        assert not found.changed, [str(each) for each in found.changed]
        assert apply_diff(found, deep) == other


def test_a_stored_graph_whose_axes_lie_is_unreadable() -> None:
    record = flat_to_json(graph_of(TWO_LEVELS))
    (pool,) = (node for node in record["nodes"] if node["name"] == "outer")
    (inner,) = (node for node in pool["regions"][0]["nodes"] if node["kind"] == "pool")
    with pytest.raises(UnreadableGraph, match="inside"):
        inner["inside"] = "other"
        flat_from_json(record)
    with pytest.raises(UnreadableGraph, match="inside"):
        inner["inside"], pool["inside"] = "outer", "outer"
        flat_from_json(record)
