"""The curves of many runs: their metrics over steps and seconds, with no more points than a page needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from modgraph.diagnostics import ModgraphError
from modgraph.store.journal import read_metrics
from modgraph.store.run_directory import RunDirectory
from modgraph.store.seconds import read_seconds
from modgraph.tables.facts import RunFacts

TAGS = ("step", "epoch", "split", "task", "phase")  # keys of a line of metrics besides these
NUMBERS = 400_000  # in the curves of a page, about
FEWEST, MOST = 20, 400  # points of a curve
Curves = dict[str, Any]


def read_curves(run: RunFacts) -> Curves:
    """Read the metrics of a run: of each split the `steps`, the `seconds` until each, and `values` by metric; none
    where they cannot be read."""
    found: Curves = {}
    directory = RunDirectory(run.path)
    try:
        lines = read_metrics(directory)
        seconds = dict(read_seconds(directory) or ())
    except ModgraphError:  # the list of runs says what is damaged
        return found
    for line in lines:
        part = found.setdefault(str(line["split"]), {"steps": [], "seconds": [], "values": {}})
        part["steps"].append(line["step"])
        part["seconds"].append(_shorten(seconds.get(line["step"])))
        for name, value in line.items():
            is_number = isinstance(value, int | float) and math.isfinite(value)
            if is_number and name not in TAGS and not name.rpartition(".")[2].isdecimal():
                column = part["values"].setdefault(name, [])
                column += [None] * (len(part["steps"]) - 1 - len(column))
                column.append(_shorten(value))
    return found


def _shorten(value: float | None) -> float | None:
    """Round a number of a curve to five significant digits, more than a screen has."""
    return None if value is None else float(f"{value:.5g}")


def thin_curves(curves: Sequence[Curves]) -> None:
    """Drop points where the curves of all runs have too many, the same ones of all of them, but the last of none."""
    parts = [part for run in curves for part in run.values()]
    width = sum(len(part["values"]) + 2 for part in parts)
    longest = max((len(part["steps"]) for part in parts), default=0)
    most = max(FEWEST, min(MOST, NUMBERS // max(1, width)))
    every = -(-longest // most)
    ends = {len(part["steps"]) - 1 for part in parts}
    kept = sorted({*range(every - 1, longest, every), *ends}) if every > 1 else range(longest)
    for part in parts if every > 1 else ():
        for values in (part["steps"], part["seconds"], *part["values"].values()):
            values[:] = [values[at] for at in kept if at < len(values)]
