"""Which form a route gets: the fastest in training, one that can be exported for inference."""

from __future__ import annotations

from pathlib import Path

import pytest

import modgraph
from modgraph.cli import main
from modgraph.ir import Graph, RouteNode, facts_of
from modgraph.passes import INFERENCE, TRAINING, Lower, NoSuchLowering, apply_passes, list_routes_by_path
from tests.examples import ROUTER_EXAMPLES


def lowerings_of(graph: Graph) -> set[str]:
    return {route.lowering for _, route in list_routes_by_path(graph).values()}


def test_sparse_routes_are_grouped_in_training_and_per_module_for_export() -> None:
    graph = modgraph.load("specs/gmoe_digits.mod").ir
    assert lowerings_of(apply_passes(graph, TRAINING)) == {"grouped"}
    assert lowerings_of(apply_passes(graph, INFERENCE)) == {"per_module"}
    assert lowerings_of(apply_passes(apply_passes(graph, TRAINING), INFERENCE)) == {"per_module"}


def test_a_lowering_that_cannot_be_exported_is_not_given_for_it() -> None:
    graph = modgraph.load("specs/gmoe_digits.mod").ir
    assert lowerings_of(Lower("grouped")(graph)) == {"grouped"}
    with pytest.raises(NoSuchLowering, match="per_module, message_passing"):
        Lower("grouped", exportable=True)(graph)


def test_unknown_lowerings_are_refused_with_those_of_every_route(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "specs/mt_rmn.mod", "--lowering", "groupd"]) == 1
    printed = capsys.readouterr().err
    graph = modgraph.load("specs/mt_rmn.mod").ir
    for part in graph.parts():
        for route in part.graph.nodes_of(RouteNode):
            for lowering in part.graph.declaration_of(route).lowerings(part.facts_of(route)):
                assert lowering.name in printed, f"{lowering.name} of {route.name} is not listed"
    assert main(["compile", "specs/smn.mod", "--lowering", "factorized"]) == 1
    assert 'help: did you mean "factorised"?' in capsys.readouterr().err


def test_a_lowering_is_refused_of_a_model_without_routes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "m.mod"
    spec.write_text("model m() { input x: float[4] y = x -> linear(2) output y }")
    assert main(["compile", str(spec), "--lowering", "groupd"]) == 1, "it compiles as if no form were asked for"
    assert 'error[MG112]: no route of this model has the lowering "groupd"' in capsys.readouterr().err
    assert main(["compile", str(spec), "--lowering", "message_passing"]) == 0, (
        "the definition may be asked of any graph"
    )


@pytest.mark.parametrize("name", ROUTER_EXAMPLES)
def test_every_router_has_a_lowering_for_training_and_one_for_export(name: str) -> None:
    graph = modgraph.loads(ROUTER_EXAMPLES[name]).ir
    (route,) = graph.nodes_of(RouteNode)
    offered = graph.declaration_of(route).lowerings(facts_of(graph.pool_of(route)))
    best = next(lowering for lowering in offered if lowering.exportable)
    assert lowerings_of(apply_passes(graph, INFERENCE)) == {best.name}
    assert lowerings_of(apply_passes(graph, TRAINING)) == {offered[0].name}
