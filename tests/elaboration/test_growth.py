"""`grow POOL by ROUTER when … where …`: what it puts into a graph, who reads that, what is told of mistakes."""

from __future__ import annotations

import pytest

from modgraph.diagnostics import ModgraphError
from modgraph.inspect.cost import compute_cost
from modgraph.inspect.diff import apply_diff, compare
from modgraph.inspect.scene import scene_of
from modgraph.ir import Graph, GrowthNode, UnreadableGraph, flat_to_json, from_json, to_json
from modgraph.ir.text.parse import parse_text
from modgraph.passes import INFERENCE, apply_passes
from modgraph.program import loads
from tests.examples import NOVEL
from tests.ir.flat import flat_from_json

CONDITION = "(r.distance -> batch_mean -> min(axis=-1)) > 2"


def graph_of(text: str = NOVEL, **parameters: object) -> Graph:
    return loads(text, **parameters).ir


def test_a_growth_is_a_node_of_its_pool_and_router() -> None:
    graph = graph_of(first=0)
    assert [node.name for node in graph.growths()] == ["blocks.0.adapter.growth", "blocks.1.adapter.growth"]
    for at, node in enumerate(graph.growths()):
        assert graph.pool_of(node).name == f"blocks.{at}.adapter"
        assert graph.router_of(node).name == f"blocks.{at}.r"
        assert str(graph.type_of(graph.inputs(node.name)["when"])) == "float over batch"
    assert "adapter.growth = growth adapter by r (grow_adapter.greater)" in str(graph)


def test_where_the_constant_is_false_no_node_is_put() -> None:
    assert [node.name for node in graph_of(first=1).growths()] == ["blocks.1.adapter.growth"]
    assert graph_of(first=2) == graph_of(NOVEL.replace(f"grow adapter by r when {CONDITION} where i >= first", ""))


@pytest.mark.parametrize("read", [lambda graph: from_json(to_json(graph)), lambda graph: parse_text(str(graph))])
def test_text_and_json_read_back(read: object) -> None:
    graph = graph_of(first=0)
    assert read(graph) == graph  # type: ignore[operator]
    assert graph != graph_of(NOVEL.replace("> 2", "> 1"), first=0)


def test_growths_are_in_the_order_of_the_spec_however_they_are_called() -> None:
    graph = graph_of(first=1, sizes=[1] * 12)
    layers = [f"blocks.{at}.adapter.growth" for at in range(1, 12)]
    assert (
        [node.name for node in graph.growths()] == [node.name for node in from_json(to_json(graph)).growths()] == layers
    )


def test_inference_and_cost_know_nothing_of_growth() -> None:
    grows, stays = graph_of(first=0), graph_of(first=2)
    exported = apply_passes(grows, INFERENCE)
    assert exported.hash() == apply_passes(stays, INFERENCE).hash()
    assert not exported.growths()
    assert compute_cost(grows) == compute_cost(stays)


def test_pictures_and_differences_show_growth() -> None:
    boxes = {box.id: box for box in scene_of(graph_of()).walk()}
    assert boxes["blocks.1.adapter.growth"].detail == "blocks.1.adapter by blocks.1.r"
    before, after = graph_of(first=1), graph_of(first=0)
    found = compare(before, after)
    assert "blocks.0.adapter.growth" in [each.place for each in found.added]
    assert apply_diff(found, before) == after


def test_it_stands_in_blocks_and_branches() -> None:
    block = """
    block layer(inner) {
      input x: float[tokens, dim]
      pool   expert[2] = inner(3)
      router r = soft_top
      y = x -> expert by r
      if true { grow expert by r when (r.gates -> mean(axis=-2) -> batch_mean -> max(axis=-1)) > 0.9 }
      output y
    }
    """
    text = f"""
    router soft_top() for p {{
      input x: float[tokens, dim]
      gates = x -> linear(p) -> softmax
      record gates
      y = x -> p by gates
      output y
    }}
    {block}
    model m() {{ input x: float[5, 4] y = x -> layer(linear) -> layer(linear) output y }}
    """
    assert len(loads(text).ir.growths()) == 2


HEAD = "input x: float[5, 4] pool p[2] = linear(4) router r = agreement(1) "
ROUTED = f"{HEAD} y = x -> p by r -> mean c = y -> mean(axis=-1) -> batch_mean "
MISTAKES = {
    f"{ROUTED} grow q by r when c > 1": ("MG201", "the pools here: p"),
    f"{ROUTED} grow p by s when c > 1": ("MG201", "the routers here: r"),
    f"{ROUTED} grow y by r when c > 1": ("MG218", "expected a pool"),
    f"{ROUTED} grow p by p when c > 1": ("MG218", "expected a router"),
    f"{ROUTED} router s = agreement(1) grow p by s when c > 1": ("MG252", "x -> p by s"),
    f"{HEAD} y = x -> mean grow p by r when (x -> batch_mean -> mean(axis=-1)) > 1": ("MG252", "routes nothing"),
    f"{ROUTED} grow p by r when y -> mean(axis=-1)": ("MG251", "-> batch_mean"),
    f"{ROUTED} grow p by r when y -> batch_mean": ("MG251", "-> min(axis=-1)"),
    f"{ROUTED} grow p by r when 2 > 1": ("MG251", "the constant true"),
    f"{ROUTED} grow p by r when linear(4)": ("MG251", "without operands"),
    f"{ROUTED} grow p by r when c > 1 where c": ("MG213", "the condition"),
    f"{ROUTED} grow p by r when c > 1 where 3": ("MG215", "true or false"),
    f"{ROUTED} grow p by r when c > 1 grow p by r when c > 2": ("MG256", "two conditions"),
    f"{ROUTED} for k in 0..2 {{ grow p by r when c > k }}": ("MG256", "two conditions"),
    f"{ROUTED} pool q[p] = linear(4) z = x -> q by r -> mean grow p by r when c > 1 grow q by r when c > 2": (
        "MG256",
        "q",
    ),
    "input x: float[5, 4] pool p = [linear(4), relu -> linear(4)] router r = agreement(1) y = x -> p by r -> mean "
    "grow p by r when (y -> batch_mean -> mean(axis=-1)) > 1": ("MG228", "differ"),
    f"{ROUTED} repeat b[i] in 0..2 {{ pool s[2] = linear(4) router t = agreement(1) y = y + (x -> s by t -> mean) }} "
    "grow s by t when c > 1": ("MG218", "in the same loop"),
    f"{ROUTED} scan x as v {{ yield v grow p by r when c > 1 }} as z": ("MG233", "after the scan"),
}


@pytest.mark.parametrize("body", MISTAKES)
def test_growth_that_cannot_be_is_reported_with_a_way_out(body: str) -> None:
    code, words = MISTAKES[body]
    with pytest.raises(ModgraphError) as caught:
        loads(f'model m() {{ {body} output y loss importance(r, over="example") }}')
    assert {each.code for each in caught.value.diagnostics} == {code}
    assert words in str(caught.value)


def test_a_router_and_a_module_do_not_grow_by_their_own_text() -> None:
    text = (
        "router s() for p { input x: float[tokens, dim] gates = x -> linear(p) -> softmax y = x -> p by gates "
        "grow p by r when (x -> batch_mean -> mean(axis=-1)) > 1 output y } "
        "model m() { input x: float[5, 4] pool p[2] = linear(4) router r = s y = x -> p by r output y }"
    )
    with pytest.raises(ModgraphError, match="the body of a model or block"):
        loads(text)


def test_a_pool_of_one_module_is_no_weakness_where_it_may_grow() -> None:
    assert not loads(NOVEL).warnings
    assert [
        each.code for each in loads(NOVEL.replace("grow adapter by r when " + CONDITION, "if true {} #")).warnings
    ] == ["MG405"]


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("uses", {"pool": "blocks.1.adapter"}, "a growth uses a pool and a router"),
        ("uses", {"pool": "blocks.1.r", "router": "blocks.1.r"}, "is no pool"),
        ("uses", {"pool": "blocks.0.adapter", "router": "blocks.1.r"}, "routes nothing through"),
        ("inputs", [["x", "blocks.1.grow_adapter.greater", 0]], "in the slot when"),
        ("inputs", [["when", "logits.linear", 0]], "a number for the batch"),
        ("types", [{"dtype": "float", "shape": []}], "it has no value"),
    ],
)
def test_a_stored_growth_that_lies_is_refused(field: str, value: object, reason: str) -> None:
    record = flat_to_json(graph_of())
    (entry,) = (node for node in record["nodes"] if node["kind"] == GrowthNode.kind)
    entry[field] = value
    record["nodes"].sort(key=lambda node: node["kind"] == GrowthNode.kind)  # behind whatever it reads
    with pytest.raises(UnreadableGraph, match=reason):
        flat_from_json(record)
