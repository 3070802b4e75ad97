"""Tables: rows by what differs but for seeds, means and deviations, the best marked, and what is left out is said."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from statistics import mean, stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modgraph.diagnostics import ModgraphError
from modgraph.tables.facts import RunFacts
from modgraph.tables.group import make_list, make_table
from modgraph.tables.keys import choose_keys, find_differences, shorten_keys, split_by
from modgraph.tables.layout import make_layout
from modgraph.tables.significance import compute_p
from modgraph.tables.table import Table
from tests.ordinary_run import some_examples
from tests.tables.runs_for_tables import make_seeds

TWO, FOUR, EIGHT = [0.80, 0.82, 0.84], [0.90, 0.92, 0.91], [0.905, 0.915, 0.91]
RUNS = [
    *make_seeds("two", TWO, experts=2),
    *make_seeds("four", FOUR, experts=4),
    *make_seeds("eight", EIGHT, experts=8),
]


def cells_of(table: Table, heading: str = "test.accuracy") -> dict[Any, Any]:
    """The cells of a column by the values of their row."""
    at = [column.heading for column in table.columns].index(heading)
    return {row.values if len(row.values) > 1 else row.values[0]: row.cells[at] for row in table}


def test_rows_are_what_differs_but_for_seeds() -> None:
    table = make_table(RUNS)
    assert table.keys == ("experts",)
    cells = cells_of(table)
    for experts, values in ((2, TWO), (4, FOUR), (8, EIGHT)):
        assert cells[experts].mean == pytest.approx(mean(values)), experts
        assert cells[experts].deviation == pytest.approx(stdev(values)), "n - 1"
        assert cells[experts].count == 3


def test_the_best_is_marked_by_the_direction_of_its_metric() -> None:
    best = {experts for experts, cell in cells_of(make_table(RUNS)).items() if cell.is_best}
    assert best == {4, 8}, "both have the largest mean, 0.91"
    losses = [*make_seeds("a", [0.5], "test.total_loss", lr=0.1), *make_seeds("b", [0.4], "test.total_loss", lr=0.2)]
    assert [cell.is_best for cell in cells_of(make_table(losses), "test.total_loss").values()] == [False, True]
    entropies = [*make_seeds("a", [0.5], "test.H_a", lr=0.1), *make_seeds("b", [0.4], "test.H_a", lr=0.2)]
    cells = cells_of(make_table(entropies, make_layout(columns="test.H_a")), "test.H_a")
    assert not any(cell.is_best for cell in cells.values()), "no entropy is better than another"


def test_a_row_not_significantly_worse_is_close_to_the_best() -> None:
    runs = [*make_seeds("a", [0.90, 0.92], lr=1), *make_seeds("b", [0.89, 0.92], lr=2), *make_seeds("c", TWO, lr=3)]
    cells = cells_of(make_table(runs))
    assert [cells[lr].is_best for lr in (1, 2, 3)] == [True, False, False]
    assert [cells[lr].is_close for lr in (1, 2, 3)] == [False, True, False]
    assert cells[1].p is None and cells[2].p >= 0.05 > cells[3].p


def test_the_test_may_be_against_another_row() -> None:
    table = make_table(RUNS, make_layout(against="2"))
    cells = cells_of(table)
    assert cells[2].p is None and cells[4].p < 0.05 and cells[4].is_best
    assert any('against the row "2"' in note for note in table.notes), table.notes
    with pytest.raises(ModgraphError) as caught:
        make_table(RUNS, make_layout(against="3"))
    assert caught.value.diagnostics[0].advice() == "its rows are: 2, 4, 8"


def test_the_key_across_makes_columns() -> None:
    runs = [replace(run, settings={**run.settings, "over": over}) for run in RUNS for over in ("x", "y")]
    table = make_table(runs, make_layout(across="over", columns="test.accuracy"))
    assert [column.heading for column in table.columns] == ["x", "y"]
    assert all(cell.count == 3 for row in table for cell in row.cells)
    several = make_table(runs, make_layout(across="over", columns={"acc": "test.accuracy", "n": "runs"}))
    assert [column.heading for column in several.columns] == ["x acc", "x n", "y acc", "y n"]


def test_of_each_row_the_best_run_may_count() -> None:
    runs = [*make_seeds("a", [0.5, 0.3, 0.4], "train.total_loss", data_seed=1)]
    runs = [replace(run, metrics={**run.metrics, "test.mse": 10 * run.metrics["train.total_loss"]}) for run in runs]
    layout = make_layout(rows=["data_seed"], choose="train.total_loss", columns=["test.mse", "runs"])
    (row,) = make_table(runs, layout)
    assert [cell.mean for cell in row.cells] == [3.0, 1.0], "that with the smallest loss"


def test_of_each_seed_the_best_run_may_count() -> None:
    slow, fast = make_seeds("slow", [0.5, 0.9], lr=0.1), make_seeds("fast", [0.7, 0.6], lr=0.2)
    layout = make_layout(rows=[], choose="test.accuracy", choose_each="train.seed", columns="test.accuracy")
    (row,) = make_table([*slow, *fast], layout)
    assert row.cells[0].values == (0.7, 0.9)


def test_runs_are_averaged_over_a_key_within_each_seed_first() -> None:
    parts = {"x": [0.2, 0.4], "y": [0.6, 1.0]}
    runs = [run for name, values in parts.items() for run in make_seeds(name, values, held=name)]
    layout = make_layout(rows=[], over="held", columns="test.accuracy")
    (row,) = make_table(runs, layout)
    assert row.cells[0].values == pytest.approx((0.4, 0.7)), "the means of the seeds 0 and 1"
    (row,) = make_table(runs[:-1], layout)
    assert row.cells[0].values == pytest.approx((0.4,)) and "1 of 2" in row.cells[0].text, "seed 1 lacks y"


def test_a_missing_number_is_counted_and_not_averaged_away() -> None:
    runs = [*RUNS, *(replace(run, metrics={"test.accuracy": None}) for run in make_seeds("x", [0], experts=2))]
    assert "(3 of 4)" in cells_of(make_table(runs))[2].text


def test_what_is_not_finished_is_left_out_and_listed() -> None:
    failed = replace(RUNS[0], name="bad", state="failed", reason="MG720 it diverged")
    table = make_table([*RUNS[1:], failed])
    assert cells_of(table)[2].count == 2
    assert "left out: 1 failed (--list)" in table.notes and "failed: bad: MG720 it diverged" in table.notes
    states = {row.values[:2] for row in make_list([*RUNS[1:], failed])}
    assert ("bad", "failed") in states and len(states) == 9


def test_runs_of_one_row_that_differ_are_said() -> None:
    table = make_table(RUNS, make_layout(rows=[]))
    assert "runs of a row differ in experts" in table.notes


def test_a_key_that_follows_from_others_is_named_below() -> None:
    runs = [replace(run, settings={**run.settings, "width": 16 * run.settings["experts"]}) for run in RUNS]
    assert make_table(runs).keys == ("experts",)
    assert "rows also differ in width (--rows KEYS)" in make_table(runs).notes
    varied = [replace(run, values={"experts": run.find("experts"), "width": run.find("width")}) for run in runs]
    assert make_table(varied).keys == ("experts", "width"), "what a sweep varies has a column"


def test_runs_of_equal_settings_but_other_graphs_are_other_rows() -> None:
    runs = [*make_seeds("a", [0.5]), *make_seeds("b", [0.7])]
    runs = [replace(run, graph=graph) for run, graph in zip(runs, ("1f", "2e"), strict=True)]
    assert make_table(runs).keys == ("graph",)


def test_a_table_without_given_columns_fits_a_terminal() -> None:
    names = [f"split_{n}.accuracy" for n in range(30)]
    runs = [replace(run, metrics={name: at / 1000 * n for n, name in enumerate(names)}) for at, run in enumerate(RUNS)]
    table = make_table(runs)
    lines = str(table).split("\n\n")[0].splitlines()
    assert 60 < max(map(len, lines)) <= 100, max(map(len, lines))
    assert any(note.startswith("further metrics: split_") for note in table.notes), table.notes


def test_a_metric_that_equals_another_in_every_run_has_no_column() -> None:
    runs = [
        replace(run, metrics={"test.mse": 0.5 + at, "test.total_loss": 0.50000001 + at}) for at, run in enumerate(RUNS)
    ]
    assert [column.key for column in make_table(runs).columns] == ["test.mse"]


def test_accuracies_print_as_percentages_and_facts_do_not() -> None:
    runs = [replace(run, about={"paper": 0.5}) for run in RUNS]
    table = make_table(runs, make_layout(columns=["test.accuracy", "paper"], percent=True, digits=1))
    assert [cell.text for cell in table.rows[0].cells] == ["82.0 ± 2.0", "0.5"]
    assert table.rows[0].cells[0].mean == pytest.approx(0.82), "the number stays"
    runs = [replace(run, metrics={"task_incremental_accuracy": 0.5, "forgetting": 0.25}) for run in RUNS]
    table = make_table(runs, make_layout(columns=["task_incremental_accuracy", "forgetting"], percent=True, digits=0))
    assert [cell.text for cell in table.rows[0].cells] == ["50 ± 0", "25 ± 0"], "shares of a continual training too"


def test_digits_of_a_heading_hold_for_deviations_of_whole_numbers_too() -> None:
    runs = [replace(run, costs={"parameters": 1000 + at}) for at, run in enumerate(RUNS[:2])]
    for digits, text in (
        (None, "1,000.5 ± 0.7"),
        ({"parameters": 0}, "1,000 ± 1"),
        ({"parameters": 2}, "1,000.50 ± 0.71"),
    ):
        layout = make_layout(rows=["experts"], columns=["parameters"], digits=digits)
        assert make_table(runs, layout).rows[0].cells[0].text == text, digits


@pytest.mark.parametrize(
    ("given", "code", "advice"),
    [
        ({"columns": "acuracy"}, "MG922", 'did you mean "test.accuracy"?'),
        ({"columns": "accuracy"}, "MG922", 'did you mean "test.accuracy"?'),
        ({"rows": ["expert"]}, "MG922", 'did you mean "experts"?'),
        ({"where": "experts"}, "MG923", "for example: --where experts=4 --where 'test.accuracy>0.9'"),
        ({"where": "experts>many"}, "MG924", "compare with a number, experts>0.5, or with = and !="),
        ({"where": "experts=3"}, "MG927", "leave out a condition, or list the runs: modgraph runs --list"),
        ({"sort": "-expert"}, "MG922", 'did you mean "experts"?'),
        ({"of": "nets"}, "MG922", "none are known here"),
    ],
)
def test_mistakes_have_codes_and_ways_out(given: dict[str, Any], code: str, advice: str) -> None:
    with pytest.raises(ModgraphError) as caught:
        make_table(RUNS, make_layout(**given))
    (found,) = caught.value.diagnostics
    assert (found.code, found.advice()) == (code, advice), found


def test_headings_are_short_where_they_stay_apart() -> None:
    keys = ["train.optimizer.lr", "train.optimizer.name", "data.seed", "train.seed", "experts", "train.experts"]
    wanted = {"train.optimizer.lr": "lr", "train.optimizer.name": "optimizer.name", "data.seed": "data.seed"}
    assert shorten_keys(keys) == {
        **wanted,
        "train.seed": "seed",
        "experts": "experts",
        "train.experts": "train.experts",
    }


VALUES = st.sampled_from([1, 2, True, 1.5, "a", None, [1, 2], [], "1"])
SETTINGS = st.fixed_dictionaries(
    {}, optional={"a": VALUES, "b": VALUES, "train.c": VALUES, "train.seed": st.integers(0, 3)}
)
SOME = st.lists(st.tuples(SETTINGS, st.floats(0, 1)), min_size=1, max_size=12)


def as_runs(some: list[tuple[dict[str, Any], float]]) -> list[RunFacts]:
    return [
        replace(RUNS[0], name=str(at), settings=known, metrics={"test.accuracy": value})
        for at, (known, value) in enumerate(some)
    ]


@some_examples(100)
@given(SOME)
def test_rows_partition_the_runs_by_all_that_differs(some: list[tuple[dict[str, Any], float]]) -> None:
    runs = as_runs(some)
    differing = find_differences(runs)
    parts = split_by(runs, choose_keys(runs, differing)).values()
    assert Counter(run.name for part in parts for run in part) == Counter(run.name for run in runs), "each once"
    assert len(parts) == len(split_by(runs, differing)), "no key too few"
    plain = {
        tuple(sorted((key, repr(value)) for key, value in known.items() if key != "train.seed")) for known, _ in some
    }
    missing_is_none = {tuple(each for each in known if each[1] != "None") for known in plain}
    assert len(parts) == len(missing_is_none), "the settings but for the seed"


@some_examples(50)
@given(SOME, st.randoms(use_true_random=False))
def test_the_order_of_runs_does_not_matter(some: list[tuple[dict[str, Any], float]], rng: random.Random) -> None:
    runs = as_runs(some)
    shuffled = runs[:]
    rng.shuffle(shuffled)

    def summarise(table: Table) -> dict[str, Any]:
        return {
            repr(row.values): (cell.text, cell.count, cell.is_best, cell.p and round(cell.p, 9))
            for row in table
            for cell in row.cells
        }

    layout = make_layout(rows=["a", "b", "train.c"], columns="test.accuracy")
    known = [replace(run, settings={"a": None, "b": None, "train.c": None, **run.settings}) for run in runs]
    again = [replace(run, settings={"a": None, "b": None, "train.c": None, **run.settings}) for run in shuffled]
    assert summarise(make_table(known, layout)) == summarise(make_table(again, layout))


def test_equal_rows_are_tested_against_one_whatever_the_order_of_runs() -> None:
    runs = as_runs(
        [({"a": 1}, 1.0), ({"a": 2}, 1.0), ({"a": 1}, math.nextafter(1, 0)), ({"a": 3}, 0.5), ({"a": 3}, 0.6)]
    )
    layout = make_layout(rows=["a"], columns="test.accuracy")
    for each in (runs, runs[::-1]):
        cells = {row.values: row.cells[0] for row in make_table(each, layout)}
        assert [cells[(a,)].is_best for a in (1, 2, 3)] == [True, True, False]
        assert [cells[(a,)].p for a in (1, 2)] == [None, None], "what is best is not tested"
        assert cells[(3,)].p == compute_p((0.5, 0.6), (1.0, math.nextafter(1, 0))), "the base is that of two runs"
