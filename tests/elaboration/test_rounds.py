"""Rounds that are copied from the one before: they are what elaboration would have given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from modgraph.diagnostics import ModgraphError
from modgraph.elaboration.rounds import Rounds
from modgraph.ir import Graph, flat_to_json, weights_of
from modgraph.program import load, loads
from tests.assault.programs import program

SPECS = sorted([*Path("specs").glob("*.mod"), *Path("specs/zoo").glob("*.mod"), *Path("tests/papers").glob("*.mod")])
BODY = "x = x + (x -> layer_norm -> linear(8) -> relu)"
TEXT = "block single() { input x: float[8] y = x -> linear(8) -> mean(axis=-1) output y } "
TEXT += "block nest() { input x: float[8] pool inner[2] = linear(8) g = x -> linear(inner) -> softmax "
TEXT += "y = x -> inner by g over inner output y } "
TEXT += "model m(n=6) { input x: float[4, 8] target t: class[8] FIRST repeat b[i] in 0..n { BODY } y = x -> mean LAST }"
LAST = "output y loss cross_entropy(y, t)"


@contextmanager
def counting(monkeypatch: pytest.MonkeyPatch, copies: bool = True) -> Iterator[list[str]]:
    """The paths of the rounds that are elaborated; all are where none may be copied."""
    elaborated: list[str] = []
    before, elaborate = Rounds.__init__, Rounds._elaborate

    def init(self: Rounds, *given: Any) -> None:
        before(self, *given)
        self.possible = self.possible and copies

    def count(self: Rounds, call: Any, scope: Any) -> None:
        elaborated.append(call.path)
        elaborate(self, call, scope)

    with monkeypatch.context() as patch:
        patch.setattr(Rounds, "__init__", init)
        patch.setattr(Rounds, "_elaborate", count)
        yield elaborated


def facts_of(graph: Graph) -> tuple[Any, ...]:
    calls = [
        (node.name, node.span, [(c.kind, c.definition, c.path, c.weights, c.key) for c in node.within.chain()])
        for node in graph
        if node.within is not None
    ]
    return json.dumps(flat_to_json(graph)), [weight.name for weight in weights_of(graph)], calls, str(graph)


def filled(body: str, first: str = "", last: str = LAST) -> str:
    return TEXT.replace("FIRST", first).replace("BODY", body).replace("LAST", last)


SAME = {
    "ops": (BODY, ""),
    "a pool": ("pool p[3] = linear(8) g = x -> linear(p) -> softmax x = x -> p by g over p", ""),
    "a chosen module": (
        "pool p[3] = linear(8) s = x -> linear(p) g = (s -> softmax) * (s -> top_k(1)) x = x -> p by g",
        "",
    ),
    "a pool outside": ("g = x -> linear(p) -> softmax x = x + (x -> p by g over p)", "pool p[3] = linear(8)"),
    "a block in the loss of each": (f"{BODY} loss size[i] = x -> mean -> single", ""),
    "a loss of each": (f"{BODY} loss size[i] = 0.1 * (x -> mean -> mean(axis=-1))", ""),
    "a weight": ("weight w: float[8] = ones x = x * w", ""),
    "a branch": ("if n > 3 { x = x -> linear(8) } else { x = x -> relu }", ""),
    "a branch that the key chooses": ("if i in [2, 4] { x = x + (x -> linear(8)) } else { x = x + (x -> relu) }", ""),
    "a pool that the key chooses": (
        "if i == 3 { pool p[3] = linear(8) g = x -> linear(p) -> softmax x = x -> p by g over p } else "
        "{ x = x -> linear(8) -> linear(8) }",
        "",
    ),
    "two values": ("x, z = ((x, z) -> add -> linear(8), x -> tanh)", "z = x -> sigmoid"),
}


@pytest.mark.parametrize("case", SAME)
def test_a_copy_of_a_round_is_what_elaboration_gives(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = filled(*SAME[case])
    with counting(monkeypatch) as elaborated:
        found = loads(text).ir
    with counting(monkeypatch, copies=False):
        assert facts_of(found) == facts_of(loads(text).ir)
    assert len(elaborated) < 6, f"all rounds were elaborated: {elaborated}"


DIFFERENT = {
    "the key is read": ("x = x -> linear(8 * (i - i + 1))", ""),
    "a size by round": ("if i == 4 { x = x -> relu } x = x -> linear(8)", ""),
    "a branch by a name of the round": ("k = i > 3 if k { x = x -> relu } x = x -> linear(8)", ""),
    "a branch in a branch": ("if n > 3 { if i > 3 { x = x -> relu } } x = x -> linear(8)", ""),
    "a branch by the value of another round": ("if i > last { x = x -> relu } last = i x = x -> linear(8)", "last = 0"),
    "a pool in the modules of a pool": ("pool p[3] = nest g = x -> linear(p) -> softmax x = x -> p by g over p", ""),
    "values that swap": ("k = x x = z -> linear(8) z = k", "z = x -> tanh"),
    "weights that choose at first": (
        "x = x -> p by w over p w = w",
        "pool p[3] = linear(8) w = x -> linear(p) -> top_k(1)",
    ),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_a_round_that_differs_is_elaborated(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = filled(*DIFFERENT[case])
    found = loads(text).ir
    with counting(monkeypatch, copies=False):
        assert facts_of(found) == facts_of(loads(text).ir)


@pytest.mark.some(10)
@pytest.mark.parametrize("path", SPECS, ids=str)
def test_no_spec_changes_by_copying(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = load(path).ir
    with counting(monkeypatch, copies=False):
        assert facts_of(found) == facts_of(load(path).ir)


def test_ninety_six_layers_are_elaborated_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    with counting(monkeypatch) as elaborated:
        graph = load("specs/zoo/mixtral.mod", num_hidden_layers=96).ir
    assert elaborated == ["layers.0", "layers.1"]
    assert "layers.95.router" in graph


@pytest.mark.parametrize(
    "body", ["x = x -> linear(8) -> nothing", "if i + 1 { x = x -> relu }", "if i > nothing { x = x -> relu }"]
)
def test_a_mistake_in_a_round_is_reported_as_without_copies(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = filled(body)
    messages = []
    for copies in (True, False):
        with counting(monkeypatch, copies), pytest.raises(ModgraphError) as caught:
            loads(text)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.some(5)
@pytest.mark.parametrize("number", range(0, 400, 10))
def test_no_random_program_changes_by_copying(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = program(number).text
    found = loads(text).ir
    with counting(monkeypatch, copies=False):
        assert facts_of(found) == facts_of(loads(text).ir)
