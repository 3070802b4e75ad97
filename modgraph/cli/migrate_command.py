"""Continue a run with a changed spec: weights and the state of their optimizer are carried over."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modgraph.cli.common import add_options, read_overrides, warn
from modgraph.diagnostics import Diagnostic, ModgraphError, Report, did_you_mean
from modgraph.differences import differences
from modgraph.files import exists
from modgraph.inspect.diff import Weight, as_json, text_of
from modgraph.log import log
from modgraph.program import load
from modgraph.store.architecture import Architecture, Kind, kind_of, read_architecture
from modgraph.store.records import json_text
from modgraph.store.run_directory import RunDirectory
from modgraph.syntax import parse, read

if TYPE_CHECKING:
    from modgraph.training.recipe import Recipe

MORE = "give it more, -s train.epochs=N, or begin anew with the weights only, --restart"


class NotToMigrate(Diagnostic, code="MG833"):
    """`migrate` takes a run's folder, and goes on with it as a spec says."""

    message = '"{path}" is a {found}, and {wanted} is needed'
    help = "for example: modgraph migrate runs/net --to wider.mod --out runs/wider"


class NothingToCarry(Diagnostic, code="MG834"):
    """The spec has no weight that the run has: nothing of what it learnt would be left."""

    message = 'no weight of "{run}" is one of "{spec}"'
    help = "say in the spec what is called otherwise (moved OLD -> NEW), or begin anew: modgraph train {spec}"


class NoSuchWeight(Diagnostic, code="MG844"):
    """`migrate --fresh` names weights of the new spec that are to begin anew, or modules and blocks of them."""

    message = '"{spec}" has no weight called "{name}", and none of anything called so'
    help = "{suggestion}"


USAGE = ("modgraph migrate runs/mine --to mine.mod --out runs/longer -s train.epochs=40",)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folder", metavar="RUN", help="a run's folder")
    parser.add_argument("--to", metavar="SPEC", required=True, help="the spec to go on with")
    parser.add_argument("--out", metavar="DIR", required=True, help="folder for the new run")
    parser.add_argument("--recipe", metavar="FILE", help="another recipe than the run's")
    what = "weights that are not carried over, or what they are of; * stands for anything"
    parser.add_argument("--fresh", nargs="+", action="extend", default=[], metavar="NAME", help=what)
    parser.add_argument("--restart", action="store_true", help="begin at epoch 0, with the weights only")
    add_options(parser, "set")
    parser.add_argument("--json", action="store_true", help="the plan as one JSON object on stdout")


def run(options: argparse.Namespace) -> int:
    for path, wanted in ((options.run_folder, Kind.RUN), (options.to, Kind.SPEC)):
        if exists(path) and kind_of(path) is not wanted:
            raise ModgraphError([NotToMigrate(path=path, found=kind_of(path), wanted=f"a {wanted}")])
    given = read_overrides(options.set)
    from modgraph.training.run import migrate_run
    from modgraph.training.stored_run import load_run

    RunDirectory(Path(options.out)).refuse_existing()
    old = load_run(options.run_folder)
    checkpoint, recipe = old.checkpoint(best=False), _recipe(options.recipe or old.directory.recipe, options.to, given)
    before = replace(read_architecture(options.run_folder), graph=checkpoint.graph)
    program = load(options.to, **recipe.model)
    after = Architecture(Path(options.to), Kind.SPEC, program.ir, program.source, moved=program.moved)
    plan = differences(before, after)
    plan = replace(plan, weights=_renew_weights(plan.weights, options.fresh, options.to))
    if not any(each.before and each.after for each in plan.weights):
        raise ModgraphError([NothingToCarry(run=options.run_folder, spec=options.to)])
    warn(program)
    print(json_text(as_json(plan), indent=2) if options.json else text_of(plan), flush=True)
    with migrate_run(old, checkpoint, recipe, program, plan, options.out, options.restart) as engine:
        at = f"epoch {engine.progress.epoch}, step {engine.progress.step}"
        engine.say(f"{options.out} stands at {at}; go on: modgraph train --resume {options.out}")
        if recipe.train.algorithm.one_phase and engine.progress.epoch_of_phase >= engine.phase.epochs:
            engine.say(f"note: those are all its epochs: {MORE}")
    return 0


def _renew_weights(weights: Sequence[Weight], patterns: Sequence[str], spec: str) -> tuple[Weight, ...]:
    """The weights, where those that a pattern means are dropped and begin anew. Raises `ModgraphError`."""

    def is_fresh(name: str, *patterns: str) -> bool:
        return any(fnmatchcase(name, each) or fnmatchcase(name, f"{each}.*") for each in patterns)

    names = [each.after.name for each in weights if each.after]
    unknown = [each for each in patterns if not any(is_fresh(name, each) for name in names)]
    if unknown:
        words = (name.split(".") for name in names)
        owners = dict.fromkeys(".".join(each[:at]) for each in words for at in range(1, len(each)))
        raise ModgraphError(
            NoSuchWeight(spec=spec, name=each, suggestion=did_you_mean(each, [*owners, *names])) for each in unknown
        )
    found: list[Weight] = []
    for each in weights:
        is_renewed = each.before and each.after and is_fresh(each.after.name, *patterns)
        found += [Weight(each.before, None), Weight(None, each.after)] if is_renewed else [each]
    return tuple(found)


def _recipe(path: str | Path, spec: str, given: Mapping[str, Any]) -> Recipe:
    """A recipe under overrides, its parameters those that a spec has."""
    from modgraph.training.recipe import key_overrides, read_recipe

    keys = key_overrides(given)
    recipe = read_recipe(path, keys)
    source = read(spec, Report())
    file = None if source is None else parse(source, Report())
    known = set() if file is None else {each.name for model in file.models for each in model.parameters}
    lost = [name for name in recipe.model if name not in known and f"model.{name}" not in keys]
    for name in lost:
        left_out = f"{name}={recipe.model[name]} of the recipe is left out"
        log.info(f"note: {left_out}: {spec} has no such parameter")
    return replace(recipe, model={name: value for name, value in recipe.model.items() if name not in lost}, start=None)
