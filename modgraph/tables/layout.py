"""What a table of runs contains: its rows, its columns, and how they print."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from modgraph.declare import setting
from modgraph.diagnostics import ModgraphError, Report
from modgraph.recipes.schema import Section, read_section
from modgraph.recipes.yaml_tree import Branch, Leaf


class TableLayout(Section):
    """A table of runs, as a sweep file and `modgraph runs` describe it.

    Keys are settings (`train.optimizer.lr`, parameters of the model by plain name), metrics (`test.accuracy`), costs
    (`parameters`, `active_macs`, `seconds`), facts of a point, or `run`, `model`, `sweep`, `point`, `runs`.
    """

    of: str | tuple[str, ...] | None = setting(None, doc="the sweep or sweeps of the file whose runs it has; all")
    title: str = setting("", doc="what stands above it")
    rows: str | tuple[str, ...] | None = setting(
        None, doc="keys that make the rows; by default what differs between the runs, but for seeds"
    )
    across: str | None = setting(None, doc="a key whose values make columns")
    columns: Mapping[str, str] | str | tuple[str, ...] | None = setting(
        None, doc="what it has of each row: metrics, costs, facts; by heading or as a list; the main metrics by default"
    )
    where: str | tuple[str, ...] | None = setting(None, doc="conditions on its runs, such as test.accuracy>0.9")
    sort: str | None = setting(None, doc="the key by which rows are sorted; -KEY for the largest first")
    choose: str | None = setting(None, doc="a metric: of the runs of each row only the best one by it counts")
    choose_each: str | tuple[str, ...] | None = setting(
        None, doc="keys, such as train.seed: choose takes a run for each of their values, not one for the row"
    )
    over: str | tuple[str, ...] | None = setting(
        None, doc="keys over whose values the runs of each seed are averaged first"
    )
    percent: bool | tuple[str, ...] = setting(
        False, doc="print accuracies as percentages: all of them, or those with these headings"
    )
    digits: int | Mapping[str, int] | None = setting(
        None, min=0, max=12, doc="digits after the point: of all columns, or by heading"
    )
    against: str | None = setting(None, doc="the row that the others are tested against; the best one by default")
    test: bool = setting(True, doc="test the differences from the best row, by Welch's t-test")
    best: bool = setting(True, doc="mark the best of each metric")
    lengths: Mapping[str, int] | None = setting(
        None, min=1, doc="the length for which costs count an axis of any length"
    )


def make_layout(**given: Any) -> TableLayout:
    """Make a layout from Python values, lists and mappings among them. Raises `ModgraphError` for keys and values that
    it does not have."""
    report = Report()
    layout = read_section(
        TableLayout, Branch({key: _make_item(value) for key, value in given.items()}), "table", report
    )
    if layout is None:
        raise ModgraphError(report.list_diagnostics())
    return layout


def _make_item(value: Any) -> Leaf | Branch:
    if isinstance(value, Mapping):
        return Branch({str(key): _make_item(each) for key, each in value.items()})
    return Leaf(tuple(value) if isinstance(value, list) else value)


def agree_on_lengths(layouts: Iterable[TableLayout]) -> dict[str, int]:
    """Return the lengths by axis that no two layouts give differently."""
    given = dict[str, set[int]]()
    for layout in layouts:
        for axis, length in (layout.lengths or {}).items():
            given.setdefault(axis, set()).add(length)
    return {axis: length for axis, (length, *others) in given.items() if not others}
