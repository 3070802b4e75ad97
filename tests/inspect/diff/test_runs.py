"""What differs between two runs beyond their architectures: its numbers, its text, its section of a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from modgraph.inspect.diff import Comparison, Side, as_json, compare_sides, text_of
from modgraph.inspect.diff.html import write_html
from modgraph.inspect.diff.runs_diff import (
    RunsCompared,
    compare_controllers,
    compare_keys,
    compare_metrics,
    compare_splits,
    compare_traces,
)
from modgraph.program import loads

GOLDEN = Path(__file__).parents[1] / "golden/diff_runs.txt"
TEXT = "model m(width={width}) {{ input x: float[4] y = x -> linear(width) output y }}"
BEFORE = {
    "epochs": 8,
    "test.loss.cross_entropy": 0.25,
    "test.total_loss": 0.25,
    "test.accuracy": 0.925,
    "test.H_a": 1.0,
    "test.H_b": 1.25,
    "test.use.0": 0.5,
    "test.use.1": 0.5,
    "test.mse": None,
}
AFTER = {**BEFORE, "epochs": 1, "test.total_loss": 0.5, "test.accuracy": 0.95, "test.use.0": 0.75, "test.use.1": 0.25}
OPTIMIZERS: tuple[dict[str, Any], ...] = (
    {"train.optimizer.name": "adam", "train.optimizer.beta1": 0.9},
    {"train.optimizer.name": "sgd", "train.optimizer.nesterov": False},
)
RECIPES: tuple[dict[str, Any], dict[str, Any]] = (
    {"train.epochs": 8, **OPTIMIZERS[0], "data.sparse": [2, 3], "width": 4},
    {"train.epochs": 1, **OPTIMIZERS[1], "data.sparse": [], "width": 5},
)
SPLITS: tuple[dict[str, dict[str, Any]], ...] = (
    {"train": {"examples": 480, "sha256": "a"}, "test": {"examples": 120, "sha256": "b"}},
    {"train": {"examples": 480, "sha256": "c"}, "test": {"examples": 120, "sha256": "b"}, "held_out": {"examples": 7}},
)


def compared(routing: str = "metrics") -> Comparison:
    before, after = (Side(f"runs/{name}", "run", loads(TEXT.format(width=at)).ir) for name, at in (("a", 4), ("b", 5)))
    routes = {"layer.0": trace_of(9, 1), "layer.1": trace_of(1, 1)}, {"layer.0": trace_of(4, 6)}
    runs = RunsCompared(
        compare_keys(*RECIPES),
        compare_splits(*SPLITS),
        compare_metrics(BEFORE, AFTER),
        (12.5, 1.6),
        compare_traces(*({"routes": each} for each in routes))
        if routing == "trace"
        else compare_controllers(BEFORE, AFTER),
    )
    return replace(compare_sides(before, after, {}, {}), runs=runs)


def trace_of(*load: float) -> dict[str, Any]:
    return {"load": [*load], "entropies": {"of_a_decision": 0.5, "of_the_mean": 0.6, "of_use": 0.7}}


def test_the_text_is_short_and_begins_with_what_was_set() -> None:
    found = "\n\n====\n\n".join(text_of(compared(routing)) for routing in ("metrics", "trace")) + "\n"
    assert found == GOLDEN.read_text(), f"if this is better, it is the new golden file:\n{found}"


def test_json_has_every_metric_and_which_run_is_better() -> None:
    found = as_json(compared())
    metrics = {each["metric"]: each for each in found["metrics"]}
    assert metrics.keys() == BEFORE.keys(), "metrics that are equal are left out"
    assert metrics["test.accuracy"]["better"] == "after"
    assert metrics["test.total_loss"]["better"] == "before"
    assert metrics["epochs"] == {"metric": "epochs", "before": 8, "after": 1, "difference": -7, "better": None}
    assert metrics["test.mse"]["difference"] is None
    assert found["recipe"][0] == {"key": "train.epochs", "before": 8, "after": 1}
    assert {each["key"] for each in found["recipe"]} >= {"width", "train.optimizer.beta1", "train.optimizer.nesterov"}
    assert found["data"] == [
        {"split": "train", "before": 480, "after": 480},
        {"split": "held_out", "before": None, "after": 7},
    ]
    assert [side["seconds"] for side in found["costs"].values()] == [12.5, 1.6]
    (route,) = found["routing"]
    assert route["source"] == "metrics" and route["before"]["shares"] == [0.5, 0.5] and route["distance"] == 0.25


def test_the_distance_of_routes_is_the_share_of_the_load_that_is_elsewhere() -> None:
    (route,) = compared("trace").runs.routing  # type: ignore[union-attr]
    assert route.distance == pytest.approx(0.5), "0.9 and 0.1 against 0.4 and 0.6"
    (other,) = compare_traces({"routes": {"a": trace_of(1, 1)}}, {"routes": {"a": trace_of(1, 1, 1)}})
    assert other.distance is None, "loads of another number of modules have no distance"
    (none,) = compare_traces({"routes": {"a": trace_of(0, 0)}}, {"routes": {"a": trace_of(0, 0)}})
    assert none.distance == 0


@pytest.mark.parametrize("subject", ["recipe", "data", "metrics"])
def test_runs_differ_if_a_recipe_data_or_a_metric_does(subject: str) -> None:
    equal = RunsCompared(seconds=(1, 2), metrics=compare_metrics(BEFORE, BEFORE))
    assert not equal.is_different, "the seconds of a repetition differ"
    assert replace(equal, **{subject: getattr(compared().runs, subject)}).is_different


def test_a_page_has_a_section_of_runs() -> None:
    page = write_html(compared(), (None, None))
    assert '"title": "Runs"' in page or '"title":"Runs"' in page
    assert "train.optimizer.nesterov" in page and "seconds of training" in page
