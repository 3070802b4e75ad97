"""Every pass of every pipeline: before and after as text (refresh with --refresh), and equal in numbers."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import torch

from modgraph.backends.torch import Model, build
from modgraph.ir import Graph
from modgraph.ir.text.parse import parse_text
from modgraph.passes import PIPELINES, Moved, Pass
from modgraph.program import loads
from modgraph.types import TensorType
from tests.examples import GRU, TRANSFORMER, TWO_SCANS
from tests.passes.test_scan import BODY

HOME = Path(__file__).parent / "golden"
PRODUCTS = """model m() { input x: float[time, 3] pool m[2] = linear(24) weight w: float[24, 3] = normal(1)
  key = (x, w) -> contract -> unit v = x -> mean(axis="time") -> m y = (key, v) -> contract output y }"""
AGREEMENT = "model m() { input x: float[5, 6] pool p[3] = linear(4) router a = agreement(2) y = x -> p by a output y }"
SOURCES = {"gru": GRU, "two_scans": TWO_SCANS, "transformer": TRANSFORMER, "dropped": BODY, "products": PRODUCTS}
ROUNDS = """model m() { input x: float[5, 6] weight w: float[6] = normal(1) y = x
  repeat layer[i] in 0..3 { y = y * (w -> exp) + (x -> tanh -> mean) } output y }"""
SHARED = """model m() { input x: float[time, 4] pool p[2] = linear(4) -> tanh pool q[2] = linear(4) -> dropout(0.5)
  y = x repeat layer[i] in 0..2 { a = x -> p by (y -> linear(p) -> softmax) b = x -> q by (y -> linear(q))
    y = y + a + b } output y }"""
STEPS = """model m() { input x: float[time, 4] input memory: float[4] weight w: float[4] = normal(1)
  pool p[3] = linear(4) scan x as v with h: float[4] { k = memory -> linear(4) -> tanh g = v -> linear(p) -> softmax
    h = h * (w -> exp) + (v -> p by (g * (g -> top_k(1)))) yield h + k } as s output s }"""
IDS = """model m() { input x: float[time, 4] input id: token[time, slot=2, 6] pool p[6] = linear(3) -> tanh
  g = x -> linear(2) -> unmerge([2], into=["slot"]) s = x -> linear(p)
  y = x -> p by (g * (id -> one_hot(p)) -> sum(axis="slot"))
  z = x -> p by ((s, s -> top_k(2)) -> masked_softmax) output y output z }"""
SOURCES |= {"ids": IDS, "agreement": AGREEMENT, "rounds": ROUNDS, "shared": SHARED, "steps": STEPS}
STAGES = [
    (f"{pipeline}.{each.name}", f"{pipeline}.{passes[at - 1].name}" if at else "source", each)
    for pipeline, passes in PIPELINES.items()
    for at, each in enumerate(passes)
]
EXAMPLES, TIME = 3, 4


def golden(source: str, stage: str, graph: Graph | None, refresh: bool) -> str:
    path = HOME / source / f"{stage}.txt"
    if refresh and graph is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{graph}\n")
    return path.read_text()


@pytest.mark.parametrize("source", SOURCES)
def test_a_spec_gives_its_graph(source: str, request: pytest.FixtureRequest) -> None:
    graph = loads(SOURCES[source]).ir
    assert golden(source, "source", graph, request.config.getoption("--refresh")) == f"{graph}\n"


@pytest.mark.some(45)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("stage", "before", "each"), STAGES)
def test_a_pass_gives_the_graph_after_it(
    source: str, stage: str, before: str, each: Pass, request: pytest.FixtureRequest
) -> None:
    refresh = request.config.getoption("--refresh")
    after = each(parse_text(golden(source, before, None, refresh)))
    assert golden(source, stage, after, refresh) == f"{after}\n"
    assert each(after) == after


@pytest.mark.some(45)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("stage", [stage for stage, _, _ in STAGES])
def test_a_pass_changes_no_number(source: str, stage: str) -> None:
    model, expected = reference(source)
    found = outputs(parse_text((HOME / source / f"{stage}.txt").read_text()), model)
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, atol=1e-6, rtol=0)


@cache
def reference(source: str) -> tuple[Model, dict[str, torch.Tensor]]:
    """A model with fresh weights, and what it computes with every route in the form of its definition."""
    graph = parse_text((HOME / source / "source.txt").read_text())
    model = build(graph)
    return model, outputs(graph, model)


def outputs(graph: Graph, trained: Model) -> dict[str, torch.Tensor]:
    """What a graph computes with the weights of another model; the batch is a function of the inputs' names."""
    with torch.device("meta"):
        model = Model(graph, Moved(graph))
    model.to_empty(device="cpu")
    weights = trained.state_dict()
    model.load_state_dict({name: weights[name] for name in model.state_dict()})
    batch = {name: given(name, type_) for name, type_ in graph.input_types.items()}
    with torch.no_grad():
        return model.eval().compute(batch, losses=False).outputs


def given(name: str, type_: TensorType) -> torch.Tensor:
    random = torch.Generator().manual_seed(sum(map(ord, name)))
    if type_.dtype == "length":
        return torch.tensor([TIME, 0, TIME - 1])[:EXAMPLES]
    shape = (EXAMPLES, *(each if isinstance(each, int) else TIME for each in type_.dimensions))
    if type_.size is not None:
        return torch.randint(0, type_.size, shape, generator=random)
    return torch.randn(shape, generator=random)
