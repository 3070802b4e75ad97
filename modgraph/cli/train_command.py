"""Train a spec by its recipe; the last line of stdout is one JSON object of final metrics."""

from __future__ import annotations

import argparse
import shlex
import sys
from functools import partial
from pathlib import Path

from modgraph.cli.common import add_options, read_overrides
from modgraph.cli.surroundings import INTERRUPTED, imports_frozen
from modgraph.diagnostics import Diagnostic, ModgraphError


class SpecOrResume(Diagnostic, code="MG114"):
    """`train` starts a run from a spec, or resumes one."""

    message = "{problem}"
    help = "start one, modgraph train SPEC [--out DIR], or resume one: modgraph train --resume DIR"


USAGE = (
    "modgraph train mine.mod",
    "modgraph train mine.mod -s train.epochs=3 --out runs/short",
    "modgraph train --resume runs/mine",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC", nargs="?", help="a spec (.mod)")
    add_options(parser, "set")
    parser.add_argument("--recipe", metavar="FILE", help="the recipe (the YAML file next to the spec)")
    parser.add_argument("--out", metavar="DIR", help="folder for the run (runs/SPEC)")
    parser.add_argument("--resume", metavar="DIR", help="resume a run with its spec and recipe")


def run(options: argparse.Namespace) -> int:
    with imports_frozen():
        values = read_overrides(options.set, options.spec)
    if options.resume is None and options.spec is None:
        raise ModgraphError([SpecOrResume(problem="train needs a spec")])
    with imports_frozen():
        from modgraph.training.sections import DIVISION

    if options.resume is not None and (values.keys() - {*DIVISION} or options.recipe or options.out):
        problem = f"--resume keeps the run's recipe but for {' and '.join(DIVISION)}: leave out -s, --recipe and --out"
        raise ModgraphError([SpecOrResume(problem=problem)])
    with imports_frozen():
        from modgraph.training.run import finish, print_metrics, resume_run, start_run

    begun = (options.spec, options.recipe, values, options.out)
    folder = Path(options.resume or options.out or f"runs/{Path(options.spec).stem}")
    try:
        resumed = partial(resume_run, options.resume, overrides=values)
        with start_run(*begun) if options.resume is None else resumed() as engine:
            if options.resume is not None:
                engine.say(f"{options.resume} goes on after epoch {engine.progress.epoch}, step {engine.progress.step}")
            print_metrics(engine, finish(engine))
    except KeyboardInterrupt:
        print(_describe_interrupt(folder), file=sys.stderr)
        return INTERRUPTED
    return 0


def _describe_interrupt(folder: Path) -> str:
    """What an interrupted training has kept, and the command that goes on."""
    from modgraph.store.checkpoint_record import read_newest_record
    from modgraph.store.run_directory import STARTING, RunDirectory

    run = RunDirectory(folder)
    try:
        is_begun = run.record.exists() and run.read_record()["status"] != STARTING
        kept = read_newest_record(run.checkpoints, run.origin(), best=False) if is_begun else None
    except ModgraphError:
        is_begun, kept = False, None
    if not is_begun:
        return "interrupted before the first step: nothing is kept"
    what = "no step is kept yet" if kept is None else f"the run is kept up to step {kept.step} (epoch {kept.epoch})"
    return f"interrupted: {what}; go on: modgraph train --resume {shlex.quote(str(folder))}"
