"""What a trace says of load, importance, entropies and co-activation, held against loops in numpy over the records."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from sklearn.metrics import mutual_info_score, normalized_mutual_info_score

from modgraph.data import Arrays
from modgraph.declare import Role
from modgraph.ir import Graph, comparisons
from modgraph.program import loads
from modgraph.trace.statistics import (
    compute_coactivations,
    compute_cv2,
    compute_statistics,
    find_groupings,
    joint,
    mutual_information,
    pair_shares,
    successive,
    use_by_group,
)
from modgraph.trace.steps import positions_of, tasks_of, use_by_task
from modgraph.trace.summary import as_json, as_table
from modgraph.trace.trace import RouteTrace, Trace, list_routes_with_gates, name_classes
from tests.trace.test_trace import TRANSFORMER

RNG = np.random.default_rng(7)
B, N, M = 6, 7, 4
TASKS = """
model two(k=1) {
  input  words: token[time, 20]
  target kind: class[3]
  target tone: class[2]
  pool   expert[4] = linear(8)
  router shared = noisy_top_k(k)
  router own = noisy_top_k(k)
  x = words -> embedding(8)
  x = x + (x -> expert by shared)
  kind_logits = (x -> expert by own) -> mean -> linear(3)
  tone_logits = x -> mean -> linear(2)
  output kind_logits
  output tone_logits
  loss cross_entropy(kind_logits, kind)
  loss cross_entropy(tone_logits, tone)
}
"""


def routed(shape: tuple[int, ...], k: int = 1, padding: float = 0.0) -> dict[str, NDArray[Any]]:
    """Records such as a router with `k` choices makes, [1, *shape, M], by role; some senders are padding."""
    scores = RNG.normal(size=(1, *shape, M))
    choice = np.zeros_like(scores)
    np.put_along_axis(choice, np.argsort(-scores, -1)[..., :k], 1, -1)
    choice *= RNG.random((1, *shape, 1)) >= padding
    gates = choice * np.exp(scores)
    return {"gates": gates / np.maximum(gates.sum(-1, keepdims=True), 1e-9), "choice": choice, "scores": scores}


def traced(graph: Graph, routes: list[dict[str, NDArray[Any]]], **options: Any) -> Trace:
    """A trace of a graph whose routes recorded this, under whatever names their router has for it."""
    roles = {"gates": (Role.GATES,), "choice": (Role.CHOICE,), "scores": (Role.SCORES, Role.LOGITS, Role.PROBABILITIES)}
    found = []
    for route, values in zip(list_routes_with_gates(graph), routes, strict=True):
        records = route.declared
        name_classes = {record.name: values[what] for record in records for what in roles if record.role in roles[what]}
        found.append(RouteTrace(route, name_classes))
    return Trace(graph, "test", Arrays({"x": np.zeros(B), "words": np.zeros((B, N), int)}), tuple(found), **options)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return loads(TRANSFORMER).ir


# ---------------------------------------------------------------- a route


@pytest.mark.parametrize(("k", "padding"), [(1, 0.0), (2, 0.3), (4, 0.5)])
def test_importance_and_load_are_sums_over_tokens(graph: Graph, k: int, padding: float) -> None:
    values = routed((B, N), k, padding)
    route = traced(graph, [values, routed((B, N))]).routes[0]
    found = compute_statistics(route)
    importance, load = np.zeros(M), np.zeros(M)
    entropies, total = [], np.zeros(M)
    for b in range(B):
        for n in range(N):
            g = values["gates"][0, b, n]
            importance += g
            load += values["choice"][0, b, n]
            if g.sum() > 0:
                p = np.exp(values["scores"][0, b, n])
                entropies.append(-sum(each * math.log(each) for each in p / p.sum()))
                total += p / p.sum()
    np.testing.assert_allclose(found["importance"], importance)
    np.testing.assert_allclose(found["load"], load)
    assert found["importance_cv2"] == pytest.approx((np.std(importance) / np.mean(importance)) ** 2)
    assert found["load_cv2"] == pytest.approx((np.std(load) / np.mean(load)) ** 2)
    mean, use = total / total.sum(), load / load.sum()
    assert found["entropies"]["of_a_decision"] == pytest.approx(np.mean(entropies))
    assert found["entropies"]["of_the_mean"] == pytest.approx(-(mean * np.log(mean)).sum())
    assert found["entropies"]["of_use"] == pytest.approx(-(use * np.log(use)).sum())
    assert found["dead"] == []
    assert not found["collapsed"]


@pytest.mark.parametrize(("axis", "none_counts"), [("time", False), (str(N), True)])
def test_modules_of_a_token_are_counted_and_a_token_of_none_is_padding_on_an_axis_of_any_length(
    axis: str, none_counts: bool
) -> None:
    body = f"input x: float[{axis}, 8] pool p[{M}] = linear(8) router r = noisy_top_k(1) y = x -> p by r output y"
    choice = RNG.integers(0, 2, size=(1, B, N, M))
    choice[0, 0, 0] = 0
    trace = traced(loads(f"model m() {{ {body} }}").ir, [{"gates": choice * 0.5, "choice": choice, "scores": choice}])
    counts = [sum(token) for example in choice[0].tolist() for token in example if none_counts or sum(token)]
    route = as_json(trace)["routes"]["p"]
    assert route["modules_per_token"] == route["rounds"][0]["modules_per_token"] == pytest.approx(np.mean(counts))
    assert f"modules per token  {np.mean(counts):8.2f}" in as_table(trace, as_json(trace))


def test_a_module_that_no_choice_has_is_dead_and_few_that_take_all_are_a_collapse(graph: Graph) -> None:
    values = routed((B, N), 2)
    for name in ("gates", "choice"):
        values[name][..., 2] = 0
    one_example = {name: np.zeros((1, B, N, M)) for name in ("gates", "choice", "scores")}
    for name in ("gates", "choice"):
        one_example[name][..., 1] = 1
    trace = traced(graph, [values, one_example])
    first, second = map(compute_statistics, trace.routes)
    assert (first["dead"], first["collapsed"]) == ([2], False)
    assert (second["dead"], second["collapsed"]) == ([0, 2, 3], True)
    assert second["load_cv2"] == pytest.approx(M - 1)
    table = as_table(trace, as_json(trace))
    assert "dead: expert.2 (never chosen)" in table
    assert "dead: expert.0, 2, 3 (never chosen)" in table
    assert table.count("collapsed: the entropy of use is 0.000, less than half of log 4") == 1


@given(arrays(np.float64, 5, elements=st.floats(0, 100, allow_subnormal=False)), st.floats(0.1, 10))
def test_the_variation_is_that_of_shares(values: NDArray[np.float64], scale: float) -> None:
    found = compute_cv2(values)
    assert found >= 0
    assert compute_cv2(values * scale) == pytest.approx(found, abs=1e-9)
    assert compute_cv2(values[::-1]) == pytest.approx(found, abs=1e-9)


# ---------------------------------------------------------------- together


def test_two_routes_meet_as_often_as_counted(graph: Graph) -> None:
    values = [routed((B, N), 2, 0.2), routed((B, N), 2, 0.2)]
    (found,) = compute_coactivations(traced(graph, values))
    expected, decisions = np.zeros((M, M)), 0
    for b in range(B):
        for n in range(N):
            first, second = (np.flatnonzero(each["choice"][0, b, n]) for each in values)
            if len(first) and len(second):
                decisions += 1
                for i in first:
                    for j in second:
                        expected[i, j] += 1 / len(first) / len(second)
    assert found["decisions"] == decisions
    np.testing.assert_allclose(found["joint"], expected / decisions)
    assert found["routes"] == ("blocks.0.expert", "blocks.1.expert")


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=40))
def test_mutual_information_is_scikit_learns(pairs: list[tuple[int, int]]) -> None:
    first, second = zip(*pairs, strict=True)
    together_ML = joint(np.eye(3, dtype=bool)[list(first)], np.eye(4, dtype=bool)[list(second)])
    information, normalised = mutual_information(together_ML)
    assert information == pytest.approx(mutual_info_score(first, second), abs=1e-9)
    if len({*first}) > 1 and len({*second}) > 1:
        assert normalised == pytest.approx(normalized_mutual_info_score(first, second), abs=1e-9)
    else:
        assert normalised == 0


def test_of_one_route_the_choices_of_one_token_are_counted(graph: Graph) -> None:
    values = routed((B, N), 2, 0.3)
    route, other = traced(graph, [values, routed((B, N), 1)]).routes
    pairs: Counter[tuple[int, int]] = Counter()
    rows = [row for row in values["choice"][0].reshape(-1, M) if row.any()]
    for row in rows:
        pairs.update((i, j) for i in np.flatnonzero(row) for j in np.flatnonzero(row))
    expected = [[pairs[i, j] / len(rows) for j in range(M)] for i in range(M)]
    np.testing.assert_allclose(np.array(pair_shares(route)), expected)
    assert pair_shares(other) is None


def test_routes_of_unlike_axes_decide_for_unlike_tokens() -> None:
    """As many tokens by chance do not make them the same."""
    graph = loads(
        "model m() { input a: token[here, 9] input b: token[there, 9] pool p[4] = linear(4) router r = noisy_top_k() "
        "x = (a -> embedding(4)) -> p by r y = (b -> embedding(4)) -> p by r z = y -> p by r output x output z }"
    ).ir
    found = successive(traced(graph, [routed((B, N))] * 3))
    assert [[route.name for route in routes] for routes in found] == [["y.p", "z.p"]]


# ---------------------------------------------------------------- positions and tasks


def test_choice_by_position_is_counted(graph: Graph) -> None:
    trace = traced(graph, [routed((B, N), 2, 0.4), routed((B, N))])
    found = positions_of(trace)["blocks.0.expert"]
    picks = trace.routes[0].choice[0]
    for n in range(N):
        np.testing.assert_allclose(found["use"][n], picks[:, n].sum(0) / max(1, picks[:, n].sum()))
    assert (found["of"], found["rows"], found["columns"], found["in_front"]) == ("place", 2, 3, 1)


def test_choice_by_task_is_that_of_the_routes_that_serve_it() -> None:
    graph = loads(TASKS).ir
    predictions = {each.target: each.prediction for each in comparisons(graph)}
    labels = {"kind": list("abcabc"), "tone": list("xxyyxx")}
    trace = traced(graph, [routed((B, N)), routed((B, N))], predictions=predictions, labels=labels)
    shared, own = (route.name for route in trace.routes)
    assert tasks_of(trace) == {"kind": (shared, own), "tone": (shared,)}
    counts = [route.choice[0].reshape(-1, M).sum(0) for route in trace.routes]
    found = use_by_task(trace)["expert"]
    np.testing.assert_allclose(found["tone"], counts[0] / counts[0].sum())
    np.testing.assert_allclose(found["kind"], sum(counts) / (2 * B * N))
    assert list(find_groupings(trace)) == ["kind", "tone"]
    assert use_by_group(trace.routes[0], labels["tone"]) == as_json(trace)["routes"][shared]["by"]["tone"]


def test_a_label_that_is_no_class_keeps_its_number() -> None:
    assert name_classes(np.array([1, -1, 2, 0]), ["a", "b"]) == ("b", "-1", "2", "a")
    assert name_classes(np.array([1, -1]), None) == ("1", "-1")


def test_one_target_is_no_choice_of_tasks(graph: Graph) -> None:
    predictions = {each.target: each.prediction for each in comparisons(graph)}
    trace = traced(graph, [routed((B, N)), routed((B, N))], predictions=predictions)
    assert (tasks_of(trace), use_by_task(trace)) == ({}, {})
