"""Show what the routers of a run, or of a bundle, do on real data."""

from __future__ import annotations

import argparse
from dataclasses import replace

from modgraph_runtime.provenance import SUMMARY_KEYS

from modgraph.cli.common import add_force, add_json, add_overrides, is_count
from modgraph.cli.trace_outputs import PAGE, PICTURES, SUFFIXES, Outputs, suffix_of
from modgraph.cli.trace_sources import traced
from modgraph.diagnostics import ModgraphError
from modgraph.files import refuse_foreign, write_output
from modgraph.store.records import json_text
from modgraph.trace.errors import NotAPicture, UnknownTraceSuffix
from modgraph.trace.views import EXAMPLES, VIEWS

LEAST_MEASURED = 512


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="RUN|BUNDLE")
    add_overrides(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="arrays (.npz), summary (.json), a page (.html), a view (.png .svg .pdf)"
    )
    parser.add_argument("--html", metavar="FILE", help="a page with the graph and all that was traced, as -o x.html")
    parser.add_argument(
        "--view",
        choices=VIEWS,
        help="modules over the image (places, the default), by class and group of the data, over the training; "
        "entropies of controllers over the training, paths from route to route, "
        "what each task has active at each step, what was added to the model",
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
    parser.add_argument(
        "--steps", type=_count, metavar="N", help="steps of a time axis that are told, the first ones (12)"
    )
    add_json(parser, "the summary as one JSON object")
    add_force(parser)


def run(options: argparse.Namespace) -> int:
    files = [path for path in (options.output, options.html) if path is not None]
    _check(options, files)
    trace, kept_by = traced(options, LEAST_MEASURED)
    trace = trace if options.steps is None else replace(trace, steps=options.steps)
    from modgraph.trace.summary import as_json, as_table

    outputs = Outputs(trace, as_json(trace), options)
    for path in files:
        write_output(path, outputs.content(path), options.force, SUMMARY_KEYS)
    if kept_by is not None:
        outputs.keep_in(kept_by)
    print(json_text(outputs.summary) if options.json else as_table(trace))
    return 0


def _check(options: argparse.Namespace, files: list[str]) -> None:
    """Raises `ModgraphError` for files that are not to be written so, before all work."""
    for path in files:
        if suffix_of(path) not in SUFFIXES:
            raise ModgraphError([UnknownTraceSuffix(path=path)])
    if options.html is not None and suffix_of(options.html) != PAGE:
        raise ModgraphError([UnknownTraceSuffix(path=options.html)])
    if options.view is not None and not any(suffix_of(path) in PICTURES for path in files):
        raise ModgraphError([NotAPicture(view=options.view)])
    refuse_foreign(*files, force=options.force, keys=SUMMARY_KEYS)


def _count(text: str) -> int:
    if not is_count(text):
        raise argparse.ArgumentTypeError(f"a whole number from 1, not {text}")
    return int(text)
