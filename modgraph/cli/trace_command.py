"""Show what the routers of a run, or of a bundle, do on real data."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modgraph_runtime.provenance import SUMMARY_KEYS

from modgraph.cli.common import add_force, add_overrides, overrides
from modgraph.diagnostics import ModgraphError, render_all
from modgraph.files import CannotWrite, refuse_foreign, write_output
from modgraph.store.records import json_text
from modgraph.trace.errors import NoData, NotAPicture, NotForThisTrace, NotKept, UnknownTraceSuffix
from modgraph.trace.views import EXAMPLES, VIEWS, pictures_of

if TYPE_CHECKING:
    from modgraph.data import Arrays
    from modgraph.store.run_directory import RunDirectory
    from modgraph.trace.of_bundle import TraceableBundle
    from modgraph.trace.trace import Trace

LEAST_MEASURED = 512
PICTURES = (".png", ".svg", ".pdf")
SUFFIXES = (".npz", ".json", *PICTURES)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="RUN|BUNDLE")
    add_overrides(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="arrays (.npz), summary (.json), a view (.png .svg .pdf)"
    )
    parser.add_argument(
        "--view",
        choices=VIEWS,
        help="modules over the image (places, the default), by class and group of the data, over the training; "
        "entropies of controllers over the training, paths from route to route",
    )
    parser.add_argument("--recipe", metavar="FILE", help="of a bundle: trace it on the data of this recipe")
    parser.add_argument(
        "--input", metavar="x.npz", help="of a bundle: trace it on arrays named as its inputs and targets"
    )
    parser.add_argument("--split", metavar="NAME", help="which data (the first split that was not learnt from)")
    parser.add_argument("--route", metavar="NAME", help="this route alone")
    parser.add_argument(
        "--examples",
        type=_count,
        default=EXAMPLES,
        metavar="N",
        help=f"examples in a file of arrays or places (4); statistics are over {LEAST_MEASURED}, or N if that is more",
    )
    parser.add_argument("--json", action="store_true", help="the summary as one JSON object on stdout")
    add_force(parser)


def run(options: argparse.Namespace) -> int:
    suffix = Path(options.output).suffix.lower() if options.output else None
    if suffix not in (None, *SUFFIXES):
        raise ModgraphError([UnknownTraceSuffix(path=options.output)])
    if options.view is not None and suffix not in PICTURES:
        raise ModgraphError([NotAPicture(view=options.view)])
    if suffix is not None:
        refuse_foreign(options.output, force=options.force, keys=SUMMARY_KEYS)
    from modgraph.store.opened import Kind, kind_of

    trace, run = _of_bundle(options) if kind_of(options.path) is Kind.BUNDLE else _of_run(options)
    from modgraph.trace.summary import as_json, as_table

    summary = as_json(trace)
    if suffix is not None:
        write_output(options.output, _content(trace, summary, suffix, options), options.force, SUMMARY_KEYS)
    if run is not None and options.route is None and not options.set:
        _keep(run, trace, summary, options.force)
    print(json_text(summary) if options.json else as_table(trace))
    return 0


def _of_run(options: argparse.Namespace) -> tuple[Trace, RunDirectory]:
    """The trace of a run, and the run that is to keep it."""
    from modgraph.trace.of_run import trace_run
    from modgraph.training.run import data_overrides, load_run, threads

    for option, value in (("--recipe", options.recipe), ("--input", options.input)):
        if value is not None:
            instead = "other data of its kind: -s data.test=FILE"
            raise ModgraphError([NotForThisTrace(option=option, what="a run, which has its data", instead=instead)])
    run = load_run(options.path, **data_overrides(overrides(options)))
    refuse_foreign(run.directory.trace, force=options.force, keys=SUMMARY_KEYS)
    with threads(run.recipe.train.threads):
        trace = trace_run(run, options.split, options.route, max(LEAST_MEASURED, options.examples))
    return trace, run.directory


def _of_bundle(options: argparse.Namespace) -> tuple[Trace, None]:
    """The trace of a bundle, which keeps nothing."""
    from modgraph.trace.of_bundle import TraceableBundle, trace_bundle

    traceable = TraceableBundle.read(options.path)
    splits = _splits_for(traceable, options)
    return trace_bundle(traceable, splits, options.split, options.route, max(LEAST_MEASURED, options.examples)), None


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


def _keep(run: RunDirectory, trace: Trace, summary: dict[str, Any], force: bool) -> None:
    """Leave the trace of a run's own data in the run, unless it is there; one that cannot be written to is told of."""
    from modgraph.store.stored_trace import keep_trace, keeps

    if keeps(run, summary):
        return
    try:
        keep_trace(run, summary, pictures_of(trace), force)
    except ModgraphError as error:
        reasons = [each.reason for each in error.diagnostics if isinstance(each, CannotWrite)]
        if not reasons:
            raise
        print(render_all([NotKept(path=str(run.path), reason=reasons[0])]), file=sys.stderr)


def _content(trace: Trace, summary: dict[str, Any], suffix: str, options: argparse.Namespace) -> bytes:
    """What a file of this suffix holds."""
    if suffix == ".json":
        return (json_text(summary, indent=2) + "\n").encode()
    if suffix == ".npz":
        from modgraph.trace.arrays import npz_of

        return npz_of(trace.first(options.examples))
    return VIEWS[options.view or "places"].draw(trace, suffix, options.examples)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise argparse.ArgumentTypeError(f"a whole number from 1, not {text}")
    return int(text)
