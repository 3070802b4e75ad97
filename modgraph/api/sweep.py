"""Sweeps, as Python programs begin them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yaml.representer import RepresenterError

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
    if type(jobs) is not int or jobs < 1:
        raise TypeError(f"jobs is a number of processes from 1, not {jobs!r}")
    from modgraph.api.runs import runs

    path, own = _find_spec(program)
    asked = {"recipe": recipe, "random": random, "optuna": optuna, "iso": iso}
    sweeps, tables, folder = _read(path, {"grid": space or {}, "set": {**own, **(overrides or {})}}, asked, seeds)
    with printing_progress(quiet):
        plan = plan_sweeps(sweeps, Path(out or folder or f"runs/{path.stem}-sweep"), tables)
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


def _read(
    path: Path, space: Mapping[str, Any], asked: Mapping[str, Any], seeds: int | None
) -> tuple[list[Sweep], Mapping[str, Any], Path | None]:
    """Return the sweeps of a spec or of a file, with the tables and the folder that a file names. Raises
    `ModgraphError`, and `TypeError` for what a file has of its own."""
    given = {name: value for name, value in asked.items() if value is not None}
    if path.suffix.lower() not in FILES:
        recipe = given.pop("recipe", None)
        by_path = {} if isinstance(recipe, Mapping) else {"recipe": recipe}
        found = _read_sweep({"spec": path, "seeds": seeds, **space, **given, **by_path})
        return [found if by_path else replace(found, recipe=recipe)], {}, None
    if given:
        raise TypeError(f"a sweep file has {', '.join(given)} of its own")
    file, mine = read_sweep_file(path), _read_sweep({"spec": path, **space})
    sweeps = [apply_settings(each, Settings(mine.settings, mine.grid), seeds) for each in file.sweeps]
    return sweeps, {name: each.plain() for name, each in file.tables.items()}, file.out


def _read_sweep(given: Mapping[str, Any]) -> Sweep:
    """Read a sweep from values. Raises `ModgraphError`, and `TypeError` for values that no recipe can have."""
    plain = {name: _to_plain(value) for name, value in given.items() if value is not None}
    try:
        (found,) = read_sweep_file(plain).sweeps
    except RepresenterError as error:
        value = error.args[-1]
        raise TypeError(f"a sweep must contain plain values, not {type(value).__name__}: {value!r}") from error
    return found


def _to_plain(value: Any) -> Any:
    match value:
        case Mapping():
            return {key: _to_plain(each) for key, each in value.items()}
        case list() | tuple() | range():
            return [*map(_to_plain, value)]
        case Path():
            return str(value)
        case _:
            return value
