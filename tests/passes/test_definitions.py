"""Every pass of every pipeline leaves the calls of its graph whole: definitions are printed after it, and read back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from modgraph.ir import Call, Graph, outline
from modgraph.ir.text.parse import parse_text
from modgraph.passes import PIPELINES, Pass
from modgraph.program import load, loads
from tests.examples import NOVEL, TWO_SCANS
from tests.ir.same import calls_of, count_calls, facts
from tests.ir.structures import STRUCTURES

SPECS = ("gmoe_digits", "modular_networks", "modular_networks_lm", "mt_rmn", "sema", "smn", "smn_parity")


def assert_calls_are_whole(graph: Graph, before: set[Call]) -> None:
    program = outline(graph)
    assert calls_of(graph) <= before
    assert count_calls(program) == len(calls_of(graph))
    assert facts(parse_text(str(graph))) == facts(graph)


def changes_by(pipeline: str, graph: Graph) -> Iterator[tuple[Pass, Graph]]:
    """A graph before a pipeline, and after each pass that gives another one."""
    yield PIPELINES[pipeline][0], graph
    for each in PIPELINES[pipeline]:
        before, graph = graph, each(graph)
        if graph is not before:
            yield each, graph


@pytest.mark.some(1)
@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("name", SPECS)
def test_passes_leave_the_calls_of_specs(name: str, pipeline: str) -> None:
    graph = load(str(Path("specs") / f"{name}.mod")).ir
    known = calls_of(graph)
    assert known
    for each, after in changes_by(pipeline, graph):
        assert_calls_are_whole(after, known)
        assert outline(after).definitions, f"no definition is left after {each.name}"


@pytest.mark.some(8)
@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("name", ["novel", "scans", *STRUCTURES])
def test_passes_leave_the_calls_of_structures(name: str, pipeline: str) -> None:
    graph = loads({"novel": NOVEL, "scans": TWO_SCANS, **STRUCTURES}[name]).ir
    known = calls_of(graph)
    for _, after in changes_by(pipeline, graph):
        assert_calls_are_whole(after, known)
