"""Train a spec many times, with alternatives of its keys; the last line of stdout is one JSON object."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modgraph.cli.common import add_options, is_count, read_lengths, split_overrides, warn
from modgraph.cli.surroundings import INTERRUPTED
from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.log import log
from modgraph.store.records import json_text

if TYPE_CHECKING:
    from modgraph.study.options import Settings
    from modgraph.study.plan import Plan
    from modgraph.study.sweep import Sweep


class BadSweepOption(Diagnostic, code="MG151"):
    """An option of `sweep` needs another one, cannot stand next to another, or has a value of another kind."""

    message = "{problem}"
    help = "{way_out}"


USAGE = (
    "modgraph sweep mine.mod -s experts=[2,4,8] -s train.optimizer.lr=[1e-3,3e-4] --seeds 3 --out runs/experts",
    "modgraph sweep mine.mod -s train.optimizer.lr='log(1e-4, 1e-2)' --random 20",
    "modgraph sweep mine.mod -s experts=[4,16] --iso macs=1000000 --vary width --dry-run",
    "modgraph sweep study.yaml --jobs 2",
)
OF_SPECS = ("recipe", "random", "optuna", "iso")  # options that a sweep file has as keys


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC|FILE", help="a spec (.mod), or a sweep file (.yaml)")
    what = (
        "a parameter of the model or a key of the recipe: a value, alternatives k=[2,4], or a range k='log(1e-4,1e-2)'"
    )
    parser.add_argument("-s", "--set", action="append", default=[], metavar="NAME=VALUE", help=what)
    parser.add_argument("--seeds", type=_count, metavar="N", help="train each point with the seeds 0 to N-1")
    parser.add_argument("--out", metavar="DIR", help="folder for the runs (runs/SPEC-sweep)")
    parser.add_argument("--recipe", metavar="FILE", help="the recipe (the YAML file next to the spec)")
    parser.add_argument("--random", type=_count, metavar="N", help="N random points instead of all combinations")
    what = "N points that Optuna proposes one after another, to improve --metric"
    parser.add_argument("--optuna", type=_count, metavar="N", help=what)
    parser.add_argument("--search-seed", type=int, default=0, metavar="N", help="seed of --random or --optuna (0)")
    what = "what --optuna improves, and what lines of progress have, such as validation.total_loss"
    parser.add_argument("--metric", metavar="NAME", help=what)
    what = "with --optuna: stop a training whose metric is worse than the median after as many epochs"
    parser.add_argument("--prune", action="store_true", help=what)
    what = "adapt --vary so that every point has the same active MACs, or parameters, to within 2 %%"
    parser.add_argument("--iso", metavar="macs=N|parameters=N", help=what)
    parser.add_argument("--vary", metavar="NAME", help="the parameter of the spec that --iso adapts, such as width")
    add_options(parser, "length")
    parser.add_argument("--jobs", type=_count, default=1, metavar="N", help="trainings at the same time (1)")
    parser.add_argument("--retry", action="store_true", help="try again what failed before")
    what = "print the points, what they cost and which have finished; train nothing"
    parser.add_argument("--dry-run", action="store_true", help=what)


def run(options: argparse.Namespace) -> int:
    from modgraph.study.execute import run_sweep
    from modgraph.study.states import plan_sweeps

    sweeps, out, tables = _read_sweeps(options)
    plan = plan_sweeps(sweeps, out, tables)
    warn(plan)
    if options.dry_run:
        return _print_plan(plan)
    command = _write_command(options)
    try:
        outcome = run_sweep(plan, command, options.jobs, options.retry, options.metric)
    except KeyboardInterrupt:
        print(f"interrupted: what is trained is kept; go on: {command}", file=sys.stderr)
        return INTERRUPTED
    for name, failure in outcome.failures.items():
        log.warning(f"failed: {name}: {failure}")
    if outcome.failures:
        log.warning(f"help: try again what failed: {command} --retry")
    log.info(f"the runs are in {out}")
    print(json_text(outcome.as_json()))
    return 1 if outcome.failures else 0


def _count(text: str) -> int:
    if not is_count(text):
        raise argparse.ArgumentTypeError(f'must be a whole number from 1, not "{text}"')
    return int(text)


def _write_command(options: argparse.Namespace) -> str:
    """Return the command line that goes on with this sweep."""
    words = ["modgraph", "sweep", options.spec]
    for action in options.parser._actions:
        value = getattr(options, action.dest, action.default)
        if action.option_strings and value != action.default and action.dest not in ("retry", "quiet", "verbose"):
            flag = action.option_strings[0]
            words += [flag] if value is True else [word for each in _to_list(value) for word in (flag, str(each))]
    return shlex.join(words)


def _to_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


# ---------------------------------------------------------------- what is asked for


def _read_sweeps(options: argparse.Namespace) -> tuple[list[Sweep], Path, Mapping[str, Any]]:
    """Return the sweeps that are asked for, their folder, and their tables. Raises `ModgraphError`."""
    from modgraph.study.file import read_sweep_file
    from modgraph.study.options import apply_settings, read_settings
    from modgraph.study.states import FILES

    path = Path(options.spec)
    settings = read_settings(split_overrides(options.set))
    out = Path(options.out or f"runs/{path.stem}-sweep")
    if path.suffix.lower() not in FILES:
        return [_build_sweep(options, settings)], out, {}
    given = [f"--{name}" for name in OF_SPECS if getattr(options, name) is not None]
    if given:
        way_out = f"write the key {given[0].removeprefix('--')} in {path}"
        raise ModgraphError([BadSweepOption(problem=f"a sweep file has {given[0]} of its own", way_out=way_out)])
    file = read_sweep_file(path)
    sweeps = [apply_settings(each, settings, options.seeds) for each in file.sweeps]
    tables = {name: each.plain() for name, each in file.tables.items()}
    return sweeps, out if options.out or file.out is None else file.out, tables


def _build_sweep(options: argparse.Namespace, given: Settings) -> Sweep:
    """Return the sweep of a command without a file. Raises `ModgraphError`."""
    from modgraph.study.options import read_iso
    from modgraph.study.sweep import SEED, Optuna, Random, Seeds, Sweep

    _refuse_contradictions(options)
    optuna, lengths = None, read_lengths(options.length)
    if options.optuna is not None:
        optuna = Optuna(trials=options.optuna, metric=options.metric, prune=options.prune, seed=options.search_seed)
    return Sweep(
        spec=Path(options.spec),
        recipe=None if options.recipe is None else Path(options.recipe),
        settings=given.fixed,
        grid=given.grid,
        seeds=None if options.seeds is None else Seeds(count=options.seeds, keys=(SEED,)),
        random=None if options.random is None else Random(count=options.random, seed=options.search_seed),
        optuna=optuna,
        iso=None if options.iso is None else read_iso(options.iso, options.vary, lengths),
        places=given.places,
    )


def _refuse_contradictions(options: argparse.Namespace) -> None:
    found = []
    if options.random is not None and options.optuna is not None:
        found.append(("--random and --optuna both choose points", "leave out one of them"))
    if options.optuna is not None and options.metric is None:
        found.append(("--optuna needs --metric", "name what to improve: --metric validation.total_loss"))
    if options.prune and options.optuna is None:
        found.append(("--prune needs --optuna", "for example: --optuna 20 --metric validation.total_loss --prune"))
    if options.iso is None and (options.vary is not None or options.length):
        found.append(("--vary and --length need --iso", "name what is equal: --iso macs=1000000"))
    if found:
        raise ModgraphError([BadSweepOption(problem=problem, way_out=way_out) for problem, way_out in found])


# ---------------------------------------------------------------- the plan


def _print_plan(plan: Plan) -> int:
    """Print the points of a plan, and the counts as the last line."""
    from modgraph.study.states import count_states, list_states

    states = list_states(plan)
    rows = [("run", "parameters", "active MACs", "state")]
    for point in plan.points:
        parameters, active = (
            f"{point.cost[name]:,}" if name in point.cost else "" for name in ("parameters", "active_macs")
        )
        rows.append((point.run, parameters, active, states[point.run]))
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    for row in rows:
        print(f"{row[0]:{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}".rstrip())
    for search in plan.searches:
        assert search.sweep.optuna is not None, "it is a search"
        print(f"and {search.sweep.optuna.trials} trials that Optuna proposes")
    print(json_text(count_states(plan, states)))
    return 0
