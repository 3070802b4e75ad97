"""Plans sweeps into a folder, and lists what of them is done already. Trains nothing and writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from modgraph.data import TRAIN, VALIDATION
from modgraph.diagnostics import Diagnostic, ModgraphError, did_you_mean
from modgraph.extras import require
from modgraph.ops.measures import MEASURES, TOTAL, is_larger_better
from modgraph.study import errors
from modgraph.study.folder import SweepFolder
from modgraph.study.plan import Plan, make_plan
from modgraph.study.specs import Specs
from modgraph.study.sweep import Sweep
from modgraph.tables.sweep_folder import read_failures

FILES = (".yaml", ".yml")  # of sweeps
FINISHED, FAILED, BEGUN, PLANNED = "finished", "failed", "unfinished", ""


def plan_sweeps(sweeps: Sequence[Sweep], out: Path, tables: Mapping[str, Any] | None = None) -> Plan:
    """Plan sweeps into a folder, where equal points keep their runs. Raises `ModgraphError` with every mistake, and
    where the folder cannot be that of a sweep."""
    searches = [each for each in sweeps if each.optuna is not None]
    if searches:
        require("search", "an adaptive search", "try points at random: --random N")
    mistakes = [found for each in searches for found in find_bad_metrics(each)]
    if mistakes:
        raise ModgraphError(mistakes)
    folder, specs = SweepFolder(out), Specs()
    folder.refuse_foreign()
    return make_plan(sweeps, out, tables, folder.find_runs(specs), specs)


def find_bad_metrics(sweep: Sweep) -> Iterator[Diagnostic]:
    """Yield an error where a search cannot improve its metric, or cannot prune by it."""
    assert sweep.optuna is not None, "it is a search"
    metric, place = sweep.optuna.metric, sweep.places.get("optuna.metric")
    split, _, name = metric.partition(".")
    if is_larger_better(metric) is None:
        known = [f"{split}.{each}" for each in (TOTAL, *(measure.name for measure in MEASURES))]
        suggestion = did_you_mean(metric, known, "for example: validation.total_loss, test.accuracy")
        yield errors.CannotImprove(span=place, metric=metric, suggestion=suggestion)
    elif sweep.optuna.prune and split not in (TRAIN, VALIDATION):
        yield errors.CannotPrune(span=place, metric=metric, name=name)


def list_states(plan: Plan) -> dict[str, str]:
    """Return the state of each point of a plan by its run. Raises `ModgraphError`."""
    folder = SweepFolder(plan.out)
    failures, found = read_failures(plan.out), folder.find_runs()
    states = dict[str, str]()
    for point in plan.points:
        run = found.get(point.identity)
        state = PLANNED if run is None else BEGUN if folder.read_metrics(run) is None else FINISHED
        states[point.run] = FAILED if state != FINISHED and point.identity in failures else state
    return states | {run: f"repeats {of}" for run, of in plan.repeats.items()}


def count_states(plan: Plan, states: Mapping[str, str]) -> dict[str, int]:
    """Count the points of a plan and their states."""
    counts = Counter(states.values())
    return {
        "points": len(plan.points),
        "finished": counts[FINISHED],
        "failed": counts[FAILED],
        "repeated": len(plan.repeats),
    }
