"""Reads two runs, and compares their recipes, data, metrics, seconds and routing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modgraph.diagnostics import ModgraphError
from modgraph.inspect.diff.runs_diff import (
    RouteChange,
    RunsCompared,
    compare_controllers,
    compare_keys,
    compare_metrics,
    compare_splits,
    compare_traces,
)
from modgraph.store.run_directory import RunDirectory
from modgraph.store.seconds import read_seconds
from modgraph.store.stored_trace import read_trace
from modgraph.tables.collect import read_run
from modgraph.tables.facts import DAMAGED, RunFacts

Pair = tuple[RunDirectory, RunDirectory]


def compare_runs(runs: Pair) -> tuple[RunsCompared | None, tuple[str, ...]]:
    """Compare two runs, with notes on what they do not have; notes name no folder above a run's. None if the files of
    one are damaged. Raises `ModgraphError`."""
    before, after = facts = [read_run(run.path) for run in runs]
    if damaged := [each for each in facts if each.state == DAMAGED]:
        return None, tuple(
            f"{each.path.name}: {each.reason}, so only the architectures are compared" for each in damaged
        )
    ended = before.is_finished and after.is_finished
    old, new = (each.metrics if ended else {**each.latest, **each.metrics} for each in facts)
    routing, notes = _compare_routing(runs, (old, new))
    data = [run.read_data_record()["splits"] for run in runs]
    seconds = [found[-1][1] for run in runs if (found := read_seconds(run))]
    compared = RunsCompared(
        compare_keys(before.settings, after.settings),
        compare_splits(*data),
        compare_metrics(old, new),
        (seconds[0], seconds[1]) if len(seconds) == len(runs) else None,
        routing,
        compare_keys(before.settings, after.settings, same=True),
        compare_splits(data[0], data[1], same=True),
    )
    return compared, (*(_describe_progress(each) for each in facts if not each.is_finished), *notes)


def _describe_progress(run: RunFacts) -> str:
    epochs, steps = (run.latest.get(name) for name in ("epochs", "steps"))
    so_far = f"its metrics are those of epoch {epochs}, step {steps}" if epochs else "no epoch has ended"
    return f"{run.path.name} is unfinished: {so_far}"


def _compare_routing(runs: Pair, metrics: tuple[Mapping[str, Any], ...]) -> tuple[tuple[RouteChange, ...], list[str]]:
    """Compare by traces where both runs have one of their model, else by their metrics."""
    traces, notes = [], list[str]()
    for run in runs:
        try:
            found = read_trace(run)
        except ModgraphError:
            found = None
            notes.append(f"{run.path.name}/{run.trace.name} is damaged, so routing is compared by metrics")
        if found is not None and found.stale:
            notes.append(f"{run.path.name}/{run.trace.name} is of an earlier model, so routing is compared by metrics")
        traces += [] if found is None or found.stale else [found.content]
    if len(traces) < len(runs):
        return compare_controllers(*metrics), notes
    data = [f"{each['examples']} examples of {each['split']}" for each in traces]
    if data[0] != data[1]:
        notes.append(f"the traces are of {data[0]} and of {data[1]}")
    return compare_traces(*traces), notes
