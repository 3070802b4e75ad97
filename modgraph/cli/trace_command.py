"""Show what the routers of a run, or of a bundle, do on real data."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from modgraph_runtime.provenance import SUMMARY_KEYS

from modgraph.cli.common import add_force, add_json, add_overrides, is_count, overrides
from modgraph.cli.trace_outputs import PAGE, PICTURES, SUFFIXES, Outputs, suffix_of
from modgraph.diagnostics import ModgraphError
from modgraph.files import refuse_foreign, write_output
from modgraph.store.records import json_text
from modgraph.trace.errors import NoData, NotAPicture, NotForThisTrace, UnknownTraceSuffix
from modgraph.trace.views import EXAMPLES, VIEWS

if TYPE_CHECKING:
    from modgraph.data import Arrays
    from modgraph.store.run_directory import RunDirectory
    from modgraph.trace.of_bundle import TraceableBundle
    from modgraph.trace.trace import Trace

LEAST_MEASURED = 512


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="RUN|BUNDLE")
    add_overrides(parser)
    what = "arrays (.npz), summary (.json), a page (.html), a view (.png .svg .pdf)"
    parser.add_argument("-o", "--output", metavar="FILE", help=what)
    parser.add_argument("--html", metavar="FILE", help="a page with the graph and all that was traced, as -o x.html")
    what = "modules over the image (places, the default), by class and group of the data, over the training; "
    what += "entropies of controllers over the training, paths from route to route, "
    what += "what each task has active at each step, what was added to the model"
    parser.add_argument("--view", choices=VIEWS, help=what)
    parser.add_argument("--recipe", metavar="FILE", help="of a bundle: trace it on the data of this recipe")
    what = "of a bundle: trace it on arrays named as its inputs and targets"
    parser.add_argument("--input", metavar="x.npz", help=what)
    parser.add_argument("--split", metavar="NAME", help="which data (the first split that was not learnt from)")
    parser.add_argument("--route", metavar="NAME", help="this route alone")
    what = f"examples in a file of arrays or places (4); statistics are over {LEAST_MEASURED}, or N if that is more"
    parser.add_argument("--examples", type=_count, default=EXAMPLES, metavar="N", help=what)
    what = "steps of a time axis that are told, the first ones (12)"
    parser.add_argument("--steps", type=_count, metavar="N", help=what)
    add_json(parser, "the summary as one JSON object")
    add_force(parser)


def _count(text: str) -> int:
    if not is_count(text):
        raise argparse.ArgumentTypeError(f"a whole number from 1, not {text}")
    return int(text)


def run(options: argparse.Namespace) -> int:
    files = [path for path in (options.output, options.html) if path is not None]
    unknown = next((path for path in files if suffix_of(path) not in SUFFIXES), None)
    if unknown is None and options.html is not None and suffix_of(options.html) != PAGE:
        unknown = options.html
    if unknown is not None:
        raise ModgraphError([UnknownTraceSuffix(path=unknown)])
    if options.view is not None and not any(suffix_of(path) in PICTURES for path in files):
        raise ModgraphError([NotAPicture(view=options.view)])
    refuse_foreign(*files, force=options.force, keys=SUMMARY_KEYS)
    from modgraph.store.opened import Kind, kind_of

    trace_it = _trace_bundle if kind_of(options.path) is Kind.BUNDLE else _trace_run
    trace, kept_by = trace_it(options, max(LEAST_MEASURED, options.examples))
    trace = trace if options.steps is None else replace(trace, steps=options.steps)
    from modgraph.trace.summary import as_json, as_table

    outputs = Outputs(trace, as_json(trace), options)
    for path in files:
        write_output(path, outputs.content(path), options.force, SUMMARY_KEYS)
    if kept_by is not None:
        outputs.keep_in(kept_by)
    print(json_text(outputs.summary) if options.json else as_table(trace))
    return 0


def _trace_run(options: argparse.Namespace, examples: int) -> tuple[Trace, RunDirectory | None]:
    """The trace of a run, and the run if it is to keep the trace: one of all routes, on the run's own data."""
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
    return trace, run.directory if options.route is None and not options.set else None


def _trace_bundle(options: argparse.Namespace, examples: int) -> tuple[Trace, RunDirectory | None]:
    """The trace of a bundle, which keeps nothing, on the data of a recipe or in a file."""
    from modgraph.trace.of_bundle import TraceableBundle, trace_bundle

    traceable = TraceableBundle.read(options.path)
    splits = _splits_for(traceable, options)
    return trace_bundle(traceable, splits, options.split, options.route, examples), None


def _splits_for(traceable: TraceableBundle, options: argparse.Namespace) -> dict[str, Arrays]:
    if options.recipe is None and options.input is None:
        raise ModgraphError([NoData(path=options.path)])
    if options.input is None:
        return traceable.splits_of_recipe(options.recipe, overrides(options))
    for option, value in (("--recipe", options.recipe), ("-s", options.set)):
        if value:
            instead = "--input alone has all that is traced"
            raise ModgraphError([NotForThisTrace(option=option, what="data from a file", instead=instead)])
    return traceable.splits_of_file(options.input)
