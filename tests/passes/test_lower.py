"""Which form a route gets: the fastest in training, one that can be exported for inference."""

from __future__ import annotations

import pytest

import modgraph
from modgraph.ir import Graph, RouteNode, facts_of
from modgraph.passes import INFERENCE, TRAINING, Lower, NoSuchLowering, apply_passes
from tests.examples import ROUTER_EXAMPLES


def forms(graph: Graph) -> set[str]:
    return {route.lowering for route in graph.of_kind(RouteNode)} - {"as_defined"}


def test_sparse_routes_are_grouped_in_training_and_per_module_for_export() -> None:
    graph = modgraph.load("specs/gmoe_digits.mod").ir
    assert forms(apply_passes(graph, TRAINING)) == {"grouped"}
    assert forms(apply_passes(graph, INFERENCE)) == {"per_module"}
    assert forms(apply_passes(apply_passes(graph, TRAINING), INFERENCE)) == {"per_module"}


def test_a_form_that_cannot_be_exported_is_not_given_for_it() -> None:
    graph = modgraph.load("specs/gmoe_digits.mod").ir
    assert forms(Lower("grouped")(graph)) == {"grouped"}
    with pytest.raises(NoSuchLowering, match="it has: per_module, message_passing"):
        Lower("grouped", exportable=True)(graph)


@pytest.mark.parametrize("name", ROUTER_EXAMPLES)
def test_every_router_has_a_form_for_training_and_one_for_export(name: str) -> None:
    graph = modgraph.loads(ROUTER_EXAMPLES[name]).ir
    (route,) = graph.of_kind(RouteNode)
    offered = graph.router_of(route).router.lowerings(facts_of(graph.pool_of(route)))
    best = next(form for form in offered if form.exportable)
    assert forms(apply_passes(graph, INFERENCE)) == {best.form}
    assert forms(apply_passes(graph, TRAINING)) == {offered[0].form}
