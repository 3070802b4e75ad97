"""Two groups of runs against each other: what differs, by how much, and whether by chance."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from modgraph.diagnostics import ModgraphError
from modgraph.tables.compare import GroupsCompared, compare_groups
from modgraph.tables.compare_text import as_json, render_comparison
from modgraph.tables.facts import RunFacts
from tests.tables.runs_for_tables import make_seeds

GOLDEN = Path(__file__).parent / "golden/compare.txt"
SMALL, LARGE = (0.81, 0.84, 0.8, 0.86), (0.88, 0.87, 0.85, 0.92)


def group(name: str, values: tuple[float, ...] = SMALL, **settings: Any) -> list[RunFacts]:
    """Runs of one setting and several seeds, with costs, losses and the metrics of a router."""
    more = {"test.H_a": 0.5, "test.use.0": 0.75, "test.loss.a.b": 1.0, "epochs": 3}
    costs = {"parameters": 1000 * len(name), "seconds": 2.5}
    found = make_seeds(name, values, **settings)
    return [
        replace(
            run,
            metrics={**run.metrics, **more, "test.total_loss": 2 - run.metrics["test.accuracy"] ** 2},  # type: ignore[operator]
            costs={**costs, "seconds": 2.5 + 0.1 * at},
        )
        for at, run in enumerate(found)
    ]


def compare(first: list[RunFacts], second: list[RunFacts]) -> GroupsCompared:
    return compare_groups(first, second, ("small", "larger"))


def metric(found: GroupsCompared, name: str = "test.accuracy") -> dict[str, Any]:
    (each,) = (each for each in as_json(found)["metrics"] if each["metric"] == name)
    return dict(each)


def test_runs_of_equal_seeds_are_tested_in_pairs() -> None:
    shuffled = group("larger", LARGE, experts=4)[::-1]
    found = compare(group("small", experts=2), shuffled)
    assert (found.test, found.paired_by) == ("paired t-test", ("train.seed",))
    expected = stats.ttest_rel(SMALL, LARGE).pvalue
    each = metric(found)
    assert each["p"] == pytest.approx(expected), "pairs are not those of equal seeds"
    assert each["difference"] == pytest.approx(sum(LARGE) / 4 - sum(SMALL) / 4)
    assert each["better"] == "after" and metric(found, "test.total_loss")["better"] == "after"
    assert each["before"]["deviation"] == pytest.approx(stats.tstd(SMALL))


def test_runs_of_other_seeds_are_tested_by_welch() -> None:
    found = compare(group("small", experts=2), group("larger", LARGE, experts=4)[:3])
    assert (found.test, found.paired_by) == ("Welch's t-test", ())
    assert metric(found)["p"] == pytest.approx(stats.ttest_ind(SMALL, LARGE[:3], equal_var=False).pvalue)


def test_keys_that_both_groups_vary_equally_pair_too() -> None:
    first, second = (
        [
            *group(name, values[:2], width=width, **{"data.held_out": "a"}),
            *group(name, values[2:], width=width, **{"data.held_out": "b"}),
        ]
        for name, values, width in (("small", SMALL, 2), ("larger", LARGE, 4))
    )
    found = compare(first, second)
    assert found.paired_by == ("data.held_out", "train.seed")
    assert metric(found)["p"] == pytest.approx(stats.ttest_rel(SMALL, LARGE).pvalue)
    assert [each.key for each in found.settings] == ["width"]


def test_seeds_against_each_other_are_paired_by_what_else_varies() -> None:
    runs = [*group("small", SMALL[:2], width=2), *group("small", SMALL[2:], width=4)]
    first, second = ([run for run in runs if run.find("train.seed") == seed] for seed in (0, 1))
    found = compare(first, second)
    assert [(each.key, each.before, each.after) for each in found.settings] == [("train.seed", (0,), (1,))]
    assert found.paired_by == ("width",)
    assert metric(found)["p"] == pytest.approx(stats.ttest_rel(SMALL[::2], SMALL[1::2]).pvalue)


def test_settings_are_those_that_differ_between_the_groups() -> None:
    first = [*group("small", experts=2, lr=0.1), *group("small", experts=2, lr=0.2)]
    second = [*group("larger", experts=4, lr=0.1), *group("larger", experts=4, lr=0.3)]
    settings = as_json(compare(first, second))["settings"]
    assert settings == [
        {"key": "experts", "before": [2], "after": [4]},
        {"key": "lr", "before": [0.1, 0.2], "after": [0.1, 0.3]},
    ]


def test_single_runs_have_a_difference_and_no_test() -> None:
    found = compare(group("small")[:1], group("larger", LARGE)[:1])
    assert found.test is None and metric(found)["p"] is None
    assert "no test: it needs two runs of each" in render_comparison(found)
    assert "the settings are the same" in render_comparison(found)


def test_equal_groups_differ_in_nothing() -> None:
    found = compare(group("small"), group("small"))
    assert metric(found)["difference"] == 0 and metric(found)["better"] is None and metric(found)["p"] is None


def test_runs_that_failed_do_not_count_and_unfinished_ones_only_if_none_is_finished() -> None:
    runs = group("small")
    first = [*runs[:2], replace(runs[2], state="failed"), replace(runs[3], state="unfinished")]
    found = as_json(compare(first, group("larger", LARGE)))
    assert found["before"]["runs"] == ["small0", "small1"]
    assert found["before"]["left_out"] == {"failed": 1, "unfinished": 1}
    begun = [replace(runs[0], state="unfinished", metrics={}, latest={"validation.accuracy": 0.5})]
    other = [replace(run, latest={"validation.accuracy": 0.75}) for run in runs]
    unfinished = compare(begun, other)
    assert metric(unfinished, "validation.accuracy")["difference"] == 0.25
    assert "small is unfinished: metrics are those so far" in render_comparison(unfinished)
    with pytest.raises(ModgraphError, match=r'MG929.*"larger" has no run to compare: 1 failed'):
        compare(runs, [replace(runs[0], state="failed")])


def test_the_tables_read_as_text_markdown_csv_and_json() -> None:
    found = compare(group("small", experts=2), group("larger", LARGE, experts=4, **{"train.lr": 0.01}))
    text = "\n\n====\n\n".join(render_comparison(found, kind) for kind in ("text", "markdown", "csv")) + "\n"
    assert text == GOLDEN.read_text(), f"if this is better, it is the new golden file:\n{text}"
    assert json.loads(render_comparison(found, "json")) == json.loads(json.dumps(as_json(found)))


def test_long_names_head_columns_as_a_and_b() -> None:
    names = ("runs/sweep/train.optimizer.lr=0.001", "runs/sweep/train.optimizer.lr=0.003")
    text = render_comparison(compare_groups(group("small"), group("larger", LARGE), names))
    assert f"A: {names[0]} (4 runs) → B: {names[1]} (4 runs)" in text
