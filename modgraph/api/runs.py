"""Many runs, as Python programs use them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.extras import require
from modgraph.files import refuse_foreign, write_output
from modgraph.tables import errors
from modgraph.tables.collect import NamedLayout, collect, collect_tables
from modgraph.tables.facts import RunFacts
from modgraph.tables.group import make_list, make_table, select_runs
from modgraph.tables.layout import TableLayout, agree_on_lengths, make_layout
from modgraph.tables.metrics import is_larger_better
from modgraph.tables.select import Conditions, check_keys, select, sort
from modgraph.tables.table import Table

if TYPE_CHECKING:
    from pandas import DataFrame

    from modgraph.api.run import Run

FOLDER = "runs"  # where modgraph train writes by default


@dataclass(frozen=True, repr=False)
class Runs(Sequence[RunFacts]):
    """Runs below some folders: a sequence of `RunFacts`, which know settings, metrics and costs, but load no weights.

    Printed, and in a notebook, it is a table with a row for each run. `layouts` are the tables that their sweeps list.
    """

    facts: tuple[RunFacts, ...]
    layouts: tuple[NamedLayout, ...] = ()

    def __len__(self) -> int:
        return len(self.facts)

    @overload
    def __getitem__(self, at: int) -> RunFacts: ...

    @overload
    def __getitem__(self, at: slice) -> Runs: ...

    def __getitem__(self, at: int | slice) -> RunFacts | Runs:
        return Runs(self.facts[at], self.layouts) if isinstance(at, slice) else self.facts[at]

    def __iter__(self) -> Iterator[RunFacts]:
        return iter(self.facts)

    def __repr__(self) -> str:
        states = {run.state: sum(each.state == run.state for each in self.facts) for run in self.facts}
        return f"<Runs: {', '.join(f'{count} {state}' for state, count in states.items()) or 'none'}>"

    def __str__(self) -> str:
        return str(self.list()) if self.facts else repr(self)

    def _repr_html_(self) -> str:
        """Render a row for each run, for a notebook."""
        from modgraph.inspect.notebook import render
        from modgraph.tables.html import render_html

        return render(repr(self), render_html(self.list()) if self.facts else "")

    def where(self, *conditions: str, **values: Any) -> Runs:
        """The runs that meet every condition: `where("test.accuracy>0.9", experts=4)`. Raises `ModgraphError` for what
        is no condition, and for a key that no run has."""
        found = select(select(self.facts, conditions), values)
        return Runs(tuple(found), self.layouts)

    def sort(self, key: str) -> Runs:
        """The runs by a key, with `-KEY` from the largest. Raises `ModgraphError` for a key that no run has."""
        return Runs(tuple(sort(self.facts, key)), self.layouts)

    def best(self, metric: str) -> RunFacts:
        """The finished run that is best by a metric. Raises `ModgraphError` where none has a finite one."""
        check_keys(self.facts, [metric])
        found = [run for run in self.facts if run.is_finished and isinstance(run.find(metric), int | float)]
        if not found:
            way_out = "wait for them, or name another metric"
            raise ModgraphError([errors.NothingFits(count=len(self), problem=f"ended with {metric}", way_out=way_out)])
        return (max if is_larger_better(metric) else min)(found, key=lambda run: float(run.find(metric)))

    def table(self, name: str | None = None, /, **layout: Any) -> Table:
        """A table: the one that a sweep lists under a `name`, or one by what differs. Keywords are the keys of a table
        in a sweep file: `table(rows=["experts"], columns=["test.accuracy"])`. Raises `ModgraphError`."""
        if layout.get("lengths"):
            raise TypeError("a table takes no lengths: modgraph.runs(DIR, lengths={...}) counts costs with them")
        if name is None:
            return make_table(self.facts, make_layout(**layout))
        return make_table(self._find_layout(name).take_runs(self.facts), self._change_layout(name, layout), name)

    def list(self, **layout: Any) -> Table:
        """A table with a row for each run, whatever its state. Keywords are as for `table`. Raises `ModgraphError`."""
        return make_list(self.facts, make_layout(**layout))

    def tables(self) -> dict[str, Table]:
        """The tables that their sweeps list, by name; one without finished runs has a note in place of rows."""
        return {each.name: self._make_table(each) for each in self.layouts}

    def _make_table(self, named: NamedLayout) -> Table:
        among = named.take_runs(self.facts)
        if any(run.is_finished for run in select_runs(among, named.layout)):
            return make_table(among, named.layout, named.name)
        return Table(named.layout.title or named.name, (), (), (), (), ("none of its runs is finished",))

    def _find_layout(self, name: str) -> NamedLayout:
        """Return the layout that a sweep lists under a name. Raises `ModgraphError`."""
        known = {each.name: each for each in self.layouts}
        if name not in known:
            suggestion = did_you_mean(name, known, "its tables are: {known}")
            if not known:
                suggestion = "name rows and columns: --rows KEYS --columns METRICS"
            raise ModgraphError([errors.UnknownTable(name=name, suggestion=suggestion)])
        return known[name]

    def _change_layout(self, name: str, changes: Mapping[str, Any]) -> TableLayout:
        return make_layout(**{**self._find_layout(name).layout.plain(), **changes})

    def frame(self) -> DataFrame:
        """A data frame with a row for each run: its state, settings, costs and metrics. Raises `ModgraphError` without
        pandas."""
        require("tables", "a data frame")
        from pandas import DataFrame

        keys = dict.fromkeys(key for run in self.facts for key in run.list_keys() if not key.startswith("about."))
        return DataFrame([{key: run.find(key) for key in keys} for run in self.facts])

    def load(self, at: int) -> Run:
        """Open a run, with its weights. Raises `ModgraphError` where it is damaged."""
        from modgraph.api.run import load_run

        return load_run(self.facts[at].path)

    def write_page(self, path: str | Path, *tables: Table, title: str = "", force: bool = False) -> Path:
        """Write a page with tables, curves, and metrics against costs. By default, the tables are those that the sweeps
        list, or one by what differs. Raises `ModgraphError`, also for a file that modgraph did not write, unless
        `force` is true."""
        from modgraph.tables.page import write_page

        refuse_foreign(path, force=force)
        write_output(path, write_page(self.facts, tables or self._choose_tables(), title).encode(), force)
        return Path(path)

    def write_picture(self, path: str | Path, *tables: Table, force: bool = False) -> Path:
        """Draw the charts of a page as `.svg`, `.png` or `.pdf`: the curves of the tables' rows, and their main metric
        against a cost. Tables, errors and `force` are as for `write_page`; needs the extra `pictures`."""
        from modgraph.tables.picture import draw_charts

        refuse_foreign(path, force=force)
        suffix = Path(path).suffix.lower()
        write_output(path, draw_charts(self.facts, tables or self._choose_tables(), suffix), force)
        return Path(path)

    def _choose_tables(self) -> tuple[Table, ...]:
        return tuple(self.tables().values()) or (self.table(),)


def runs(*folders: str | Path, where: Conditions = (), lengths: Mapping[str, int] | None = None) -> Runs:
    """The runs in some folders and below them, `runs` by default, that meet conditions.

    `where` is a text such as `test.accuracy>0.9`, several, or values by key. Costs count axes of any length with their
    `lengths`, by default those on which the tables of the sweeps agree, or 1. A damaged run is listed with its reason.
    Raises `ModgraphError` where there are none.
    """
    wrong = next((each for each in folders if not isinstance(each, str | Path)), None)
    if wrong is not None:
        raise TypeError(f"runs takes paths of folders, not {type(wrong).__name__}")
    paths = folders or (FOLDER,)
    layouts = tuple(collect_tables(paths))
    found = collect(paths, lengths, agree_on_lengths(each.layout for each in layouts))
    if not found:
        raise ModgraphError(errors.NoRuns(path=str(path), way_out=errors.TRAIN_SOME) for path in paths)
    return Runs(tuple(select(found, where)), layouts)
