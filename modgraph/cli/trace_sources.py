"""What `trace` traces: a run on its data, or a bundle on those of a recipe or of a file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from modgraph_runtime.provenance import SUMMARY_KEYS

from modgraph.cli.common import overrides
from modgraph.diagnostics import ModgraphError
from modgraph.files import refuse_foreign
from modgraph.trace.errors import NoData, NotForThisTrace

if TYPE_CHECKING:
    from modgraph.data import Arrays
    from modgraph.store.run_directory import RunDirectory
    from modgraph.trace.of_bundle import TraceableBundle
    from modgraph.trace.trace import Trace


def traced(options: argparse.Namespace, least: int) -> tuple[Trace, RunDirectory | None]:
    """The trace of `least` examples, or of more if they are asked for, and the run that is to keep it.

    Raises `ModgraphError`.
    """
    from modgraph.store.opened import Kind, kind_of

    of = _of_bundle if kind_of(options.path) is Kind.BUNDLE else _of_run
    return of(options, max(least, options.examples))


def _of_run(options: argparse.Namespace, examples: int) -> tuple[Trace, RunDirectory | None]:
    """The trace of a run, which keeps it if it is of all routes, on the run's own data."""
    from modgraph.trace.of_run import trace_run
    from modgraph.training.run import threads
    from modgraph.training.stored_run import data_overrides, load_run

    for option, value in (("--recipe", options.recipe), ("--input", options.input)):
        if value is not None:
            instead = "other data of its kind: -s data.test=FILE"
            raise ModgraphError([NotForThisTrace(option=option, what="a run, which has its data", instead=instead)])
    run = load_run(options.path, **data_overrides(overrides(options)))
    refuse_foreign(run.directory.trace, force=options.force, keys=SUMMARY_KEYS)
    with threads(run.recipe.train.threads):
        trace = trace_run(run, options.split, options.route, examples)
    whole = options.route is None and not options.set
    return trace, run.directory if whole else None


def _of_bundle(options: argparse.Namespace, examples: int) -> tuple[Trace, None]:
    """The trace of a bundle, which keeps nothing."""
    from modgraph.trace.of_bundle import TraceableBundle, trace_bundle

    traceable = TraceableBundle.read(options.path)
    splits = _splits_for(traceable, options)
    return trace_bundle(traceable, splits, options.split, options.route, examples), None


def _splits_for(traceable: TraceableBundle, options: argparse.Namespace) -> dict[str, Arrays]:
    """The data of a bundle: of a recipe, or in a file. Raises `ModgraphError`."""
    if options.recipe is None and options.input is None:
        raise ModgraphError([NoData(path=options.path)])
    if options.input is None:
        return traceable.splits_of_recipe(options.recipe, overrides(options))
    for option, value in (("--recipe", options.recipe), ("-s", options.set)):
        if value:
            instead = "--input alone has all that is traced"
            raise ModgraphError([NotForThisTrace(option=option, what="data from a file", instead=instead)])
    return traceable.splits_of_file(options.input)
