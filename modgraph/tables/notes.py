"""What stands below a table: what is left out, and what its keys and costs mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from modgraph.diagnostics import list_names
from modgraph.tables.columns import RUNS
from modgraph.tables.facts import FINISHED, RunFacts
from modgraph.tables.keys import is_determined, shorten_keys
from modgraph.tables.layout import TableLayout
from modgraph.tables.metrics import is_larger_better, rank_metrics
from modgraph.tables.table import Column, as_tuple

MOST_REASONS = 5  # of runs that failed or are damaged, below a table


def list_keys(layout: TableLayout) -> list[str]:
    """List the keys that a layout names."""
    columns = layout.columns.values() if isinstance(layout.columns, Mapping) else as_tuple(layout.columns)
    single = [key for key in (layout.across, layout.choose) if key is not None]
    several = (layout.rows, layout.over, layout.choose_each)
    keys = [*columns, *single, *(key for each in several for key in as_tuple(each))]
    return [key for key in keys if key != RUNS]


def note_keys(
    runs: Sequence[RunFacts], keys: tuple[str, ...], differing: Sequence[str], layout: TableLayout
) -> list[str]:
    """Write which keys are abbreviated, which differ with the rows, and in which the runs of a row differ."""
    short = shorten_keys(keys)
    found = [f"{short[key]}: {key}" for key in keys if short[key] != key]
    others = [key for key in differing if key not in keys]
    mixed = [key for key in others if not is_determined(runs, key, keys) and key not in as_tuple(layout.over)]
    also = [key for key in others if key not in mixed]
    said = [", ".join(found)] if found else []
    said += [f"rows also differ in {list_names(also)} (--rows KEYS)"] if also else []
    if layout.choose is not None:
        direction = "largest" if is_larger_better(layout.choose) else "smallest"
        each = f" of each {' and '.join(as_tuple(layout.choose_each))}" if layout.choose_each else ""
        said.append(f"of the runs of a row, the one with the {direction} {layout.choose}{each} counts")
    elif mixed:
        said.append(f"runs of a row differ in {list_names(mixed)}")
    if layout.over is not None:
        said.append(f"averaged over {' and '.join(as_tuple(layout.over))} first")
    return said


def note_left_out(runs: Sequence[RunFacts], columns: Sequence[Column]) -> list[str]:
    """Write which metrics have no column."""
    taken = {column.key for column in columns}
    at_end = [name for name in rank_metrics(runs) if name not in taken and any(name in run.metrics for run in runs)]
    return [f"further metrics: {list_names(at_end)} (--columns METRICS)"] if at_end else []


def note_lengths(runs: Sequence[RunFacts], columns: Sequence[Column]) -> list[str]:
    """Write for which axes MACs count a length of 1."""
    axes = dict.fromkeys(axis for run in runs for axis in run.axes)
    if not axes or not any(column.key in ("macs", "active_macs") for column in columns):
        return []
    return [f"MACs count {' and '.join(axes)} with length 1 (--length {next(iter(axes))}=N)"]


def note_states(runs: Sequence[RunFacts]) -> list[str]:
    """Write how many runs are left out because they are not finished, and why some are not."""
    counts = Counter(run.state for run in runs if run.state != FINISHED)
    said = [f"left out: {', '.join(f'{count} {state}' for state, count in counts.items())} (--list)"] if counts else []
    return [*said, *note_reasons(runs)[:MOST_REASONS]]


def note_reasons(runs: Sequence[RunFacts]) -> list[str]:
    """Write why runs failed or are damaged."""
    return [f"{run.state}: {run.name}: {run.reason}" for run in runs if run.reason]
