"""The program of a graph: it gives the graph again, in memory, as text and as JSON, and no call is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modgraph.ir import outline
from modgraph.prelude import routers
from modgraph.program import load, loads
from tests.assault.programs import program
from tests.examples import (
    GRU,
    NOVEL,
    OP_EXAMPLES,
    ROUTER_EXAMPLES,
    SEQUENCE,
    TRANSFORMER,
    TWO_SCANS,
    routers_in_one_scan,
)
from tests.ir.same import assert_kept
from tests.ir.structures import STRUCTURES

SPECS = [*Path("specs").glob("*.mod"), *Path("specs/zoo").glob("*.mod"), *Path("tests/papers").glob("*.mod")]
EXAMPLES = {**OP_EXAMPLES, **ROUTER_EXAMPLES}
LARGER = [GRU, NOVEL, SEQUENCE, TRANSFORMER, TWO_SCANS, routers_in_one_scan()]
ROUTED_TWICE = """block sends(p, g) { input x: float[t, d] y = x -> p by g output y }
model m {
  input x: float[time, 6]
  pool p[3] = linear(6)
  router r = ROUTER
  repeat b[i] in 0..2 { h[i] = x -> linear(6) -> p by r }
  s = x -> sends(p, r)
  output s
  output last = h[1]
}"""


@pytest.mark.some(8)
@pytest.mark.parametrize("path", sorted(SPECS), ids=lambda path: path.stem)
def test_specs_are_kept(path: Path) -> None:
    assert assert_kept(load(str(path)).ir).body.name


@pytest.mark.some(11)
@pytest.mark.parametrize("name", STRUCTURES)
def test_structures_are_kept(name: str) -> None:
    assert assert_kept(loads(STRUCTURES[name]).ir).definitions


@pytest.mark.some(40)
@pytest.mark.parametrize("text", [*EXAMPLES.values(), *LARGER], ids=[*EXAMPLES, *map(str, range(len(LARGER)))])
def test_examples_are_kept(text: str) -> None:
    assert_kept(loads(text).ir)


@pytest.mark.parametrize("name", routers())
def test_routers_of_the_prelude_are_kept_and_defined_once(name: str) -> None:
    program = assert_kept(loads(ROUTED_TWICE.replace("ROUTER", name)).ir)
    assert {name, "sends", "b"} <= {each.author for each in program.definitions}


@given(st.integers(0, 10_000))
@settings(max_examples=8, deadline=None)
def test_programs_are_kept(n: int) -> None:
    assert_kept(program(n).program.ir)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_programs_are_kept(part: int) -> None:
    for n in range(1000 * part, 1000 * (part + 1)):
        assert_kept(program(n).program.ir)


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        ("gmoe", {"blocks": 2, "ffn": 2, "cosine": 1, "normal_cdf": 1, "k_by_softmax": 1, "patches": 1}),
        ("smn", {"agreement": 1, "round": 2, "glimpses": 1}),
        ("mt_rmn", {"layer": 3, "connected": 3, "connection": 3, "mlp": 1, "policy_network": 1, "mt_rmn": 1}),
        ("sema", {"blocks": 2, "mixed": 1, "familiar": 1, "gating": 1, "bottleneck": 1, "autoencoder": 1}),
    ],
)
def test_equal_uses_are_one_definition(spec: str, counts: dict[str, int]) -> None:
    authors = [each.author for each in outline(load(f"specs/{spec}.mod").ir).definitions]
    assert {name: authors.count(name) for name in counts} == counts


def test_a_definition_stands_after_those_that_it_calls_and_once() -> None:
    for text in (*LARGER, *STRUCTURES.values()):
        defined = outline(loads(text).ir).definitions
        names = [each.name for each in defined]
        assert len({*names}) == len(names)
        for at, each in enumerate(defined):
            called = {node.definition.name for node in each.graph if node.kind == "call"}  # type: ignore[attr-defined]
            assert called <= {*names[:at]}
