"""Continues a run under another spec: plans what carries over, and begins a new run with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from modgraph.diagnostics import ModgraphError, Report
from modgraph.differences import differences
from modgraph.files import exists
from modgraph.inspect.diff import Comparison, Weight
from modgraph.log import log
from modgraph.program import Program, load
from modgraph.store.architecture import Architecture, Kind, find_kind, read_architecture
from modgraph.store.checkpoint import Checkpoint
from modgraph.store.run_directory import RunDirectory
from modgraph.syntax import parse, read
from modgraph.training.engine import Engine
from modgraph.training.recipe import OPTION, Recipe, RecipeOrPath, key_overrides, read_recipe
from modgraph.training.run import migrate_run
from modgraph.training.start.errors import NothingToCarry, NotToMigrate
from modgraph.training.start.fresh import find_unknown_fresh, is_fresh
from modgraph.training.stored_run import StoredRun, load_run

MORE = "give it more, -s train.epochs=N, or restart with only the weights, --restart"


@dataclass(frozen=True)
class Migration:
    """A run, its newest checkpoint, and that checkpoint for another program under a recipe."""

    run: StoredRun
    checkpoint: Checkpoint
    recipe: Recipe
    program: Program
    plan: Comparison

    def begin(self, out: str | Path, restart: bool = False) -> AbstractContextManager[Engine]:
        """Begin the new run in its folder, at the step of the old one, or with `restart` at epoch 0. Raises
        `ModgraphError`."""
        return migrate_run(self.run, self.checkpoint, self.recipe, self.program, self.plan, str(out), restart)

    def announce(self, engine: Engine) -> None:
        """Report where the new run begins, and how to resume it."""
        path = engine.directory.path
        at = f"epoch {engine.progress.epoch}, step {engine.progress.step}"
        engine.say(f"{path} is at {at}; resume it: modgraph train --resume {path}")
        if self.recipe.train.algorithm.one_phase and engine.progress.epoch_of_phase >= engine.phase.epochs:
            engine.say(f"note: all its epochs are done: {MORE}")


def plan_migration(
    run: str | Path,
    to: str | Path,
    out: str | Path,
    recipe: RecipeOrPath | None = None,
    overrides: Mapping[str, Any] | None = None,
    fresh: Sequence[str] = (),
    overrides_name: str = OPTION,
) -> Migration:
    """Plan what a run carries over to a spec; `fresh` are patterns of weights to initialise anew.

    Raises `ModgraphError`, also if `out` contains another run.
    """
    for path, wanted in ((run, Kind.RUN), (to, Kind.SPEC)):
        if exists(path) and find_kind(path) is not wanted:
            raise ModgraphError([NotToMigrate(path=str(path), found=find_kind(path), wanted=f"a {wanted}")])
    RunDirectory(Path(out)).refuse_existing()
    old = load_run(run)
    checkpoint = old.checkpoint(best=False)
    settled = _recipe(old.directory.recipe if recipe is None else recipe, str(to), overrides or {}, overrides_name)
    before = replace(read_architecture(run), graph=checkpoint.graph)
    program = load(to, **settled.model)
    after = Architecture(Path(to), Kind.SPEC, program.ir, program.source, moved=program.moved)
    plan = differences(before, after)
    plan = replace(plan, weights=_renew_weights(plan.weights, fresh, str(to)))
    if not any(each.before and each.after for each in plan.weights):
        raise ModgraphError([NothingToCarry(run=str(run), spec=str(to))])
    return Migration(old, checkpoint, settled, program, plan)


def _renew_weights(weights: Sequence[Weight], patterns: Sequence[str], spec: str) -> tuple[Weight, ...]:
    """Drop the weights that match a pattern, so that they are initialised anew. Raises `ModgraphError`."""
    names = [each.after.name for each in weights if each.after]
    unknown = list(find_unknown_fresh(names, patterns, spec))
    if unknown:
        raise ModgraphError(unknown)
    found: list[Weight] = []
    for each in weights:
        is_renewed = each.before and each.after and is_fresh(each.after.name, patterns)
        found += [Weight(each.before, None), Weight(None, each.after)] if is_renewed else [each]
    return tuple(found)


def _recipe(path: RecipeOrPath, spec: str, given: Mapping[str, Any], overrides_name: str) -> Recipe:
    """Apply overrides to a recipe, with the parameters that the spec has."""
    keys = key_overrides(given)
    recipe = read_recipe(path, keys, overrides_name)
    source = read(spec, Report())
    file = None if source is None else parse(source, Report())
    known = set() if file is None else {each.name for model in file.models for each in model.parameters}
    lost = [name for name in recipe.model if name not in known and f"model.{name}" not in keys]
    for name in lost:
        left_out = f"{name}={recipe.model[name]} of the recipe is left out"
        log.info(f"note: {left_out}: {spec} has no such parameter")
    return replace(recipe, model={name: value for name, value in recipe.model.items() if name not in lost}, start=None)
