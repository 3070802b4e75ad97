"""Sweeps, as Python programs begin them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modgraph.api.errors import NeedsSpecFile
from modgraph.diagnostics import ModgraphError, render_all
from modgraph.log import log, printing_progress
from modgraph.program import Program, load
from modgraph.study.execute import run_sweep
from modgraph.study.file import read_sweep_file
from modgraph.study.options import Settings, apply_settings
from modgraph.study.states import FILES, plan_sweeps
from modgraph.study.sweep import Sweep

if TYPE_CHECKING:
    from modgraph.api.runs import Runs


def sweep(
    program: Program | str | Path,
    space: Mapping[str, Any] | None = None,
    *,
    seeds: int | None = None,
    out: str | Path | None = None,
    recipe: str | Path | Mapping[str, Any] | None = None,
    overrides: Mapping[str, Any] | None = None,
    random: int | Mapping[str, Any] | None = None,
    optuna: Mapping[str, Any] | None = None,
    iso: Mapping[str, Any] | None = None,
    jobs: int = 1,
    retry: bool = False,
    quiet: bool = False,
) -> Runs:
    """Train a spec many times, each time as `modgraph.train` does: what `modgraph sweep` does.

    `space` has what is tried of each dotted key of the recipe and each parameter of the spec: a list of alternatives,
    or a range, `{"log": [1e-4, 1e-2]}`, `{"uniform": [0, 0.5]}`, `{"integers": [8, 64]}`. Every combination is trained,
    with each of so many `seeds`; `random` samples so many points, and `optuna` (`{"trials": 30, "metric":
    "validation.total_loss", "prune": True}`) lets Optuna propose them. `overrides` hold for all. `iso` (`{"macs": 1e6,
    "vary": "width"}`) adapts a parameter so that all points cost the same. `program` may be the path of a sweep file
    too.

    Runs are written below `out`, `runs/NAME-sweep` by default, `jobs` at the same time in processes of their own. The
    same call goes on after an interruption; it trains nothing twice. `retry` tries again what failed before.

    Returns the runs, failed ones too. Raises `ModgraphError` for every mistake that shows before anything trains, and
    `TypeError` for a value of another kind.
    """
    if not isinstance(program, Program | str | Path):
        wanted = "the path of a spec or of a sweep file, or a Program (modgraph.load)"
        raise TypeError(f"sweep takes {wanted}, not {type(program).__name__}")
    path, settings = _find_spec(program)
    settings |= overrides or {}
    given = {"random": random, "optuna": optuna, "iso": iso, "recipe": recipe}
    given = {name: value for name, value in given.items() if value is not None}
    tables: Mapping[str, Any] = {}
    folder = Path(f"runs/{path.stem}-sweep")
    if path.suffix.lower() in FILES:
        if given:
            raise TypeError(f"a sweep file has {', '.join(given)} of its own")
        file = read_sweep_file(path)
        mine = _read_sweep({"spec": str(path), "grid": dict(space or {}), "set": settings})
        sweeps = [apply_settings(each, Settings(mine.settings, mine.grid), seeds) for each in file.sweeps]
        folder, tables = file.out or folder, {name: each.plain() for name, each in file.tables.items()}
    else:
        plain = {name: dict(each) if isinstance(each, Mapping) else each for name, each in given.items()}
        plain |= {"grid": dict(space or {}), "set": settings, **({} if seeds is None else {"seeds": seeds})}
        plain["recipe"] = str(recipe) if isinstance(recipe, str | Path) else None
        found = _read_sweep({"spec": str(path), **plain})
        sweeps = [replace(found, recipe=recipe) if isinstance(recipe, Mapping) else found]
    from modgraph.api.runs import runs

    with printing_progress(quiet):
        plan = plan_sweeps(sweeps, Path(out or folder), tables)
        if plan.warnings:
            log.warning(render_all(plan.warnings))
        outcome = run_sweep(plan, f"modgraph.sweep({str(path)!r}, …)", jobs, retry)
        for name, failure in outcome.failures.items():
            log.warning(f"failed: {name}: {failure}")
        log.info(f"the runs are in {plan.out}")
    return runs(plan.out)


def _find_spec(program: Program | str | Path) -> tuple[Path, dict[str, Any]]:
    """Return the file of a spec, and the parameters with which a program was read from it. Raises `ModgraphError`."""
    if not isinstance(program, Program):
        return Path(program), {}
    path = None if program.source is None else Path(program.source.name)
    if path is None or not path.is_file():
        raise ModgraphError([NeedsSpecFile(name=program.ir.name)])
    default = load(path).ir.parameters
    return path, {name: value for name, value in program.ir.parameters.items() if value != default[name]}


def _read_sweep(given: Mapping[str, Any]) -> Sweep:
    """Read a sweep from plain values. Raises `ModgraphError`."""
    (found,) = read_sweep_file({name: value for name, value in given.items() if value is not None}).sweeps
    return found
