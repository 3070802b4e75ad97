"""Show what the routers of a run do on real data."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from modgraph_runtime.provenance import SUMMARY_KEYS

from modgraph.cli.common import add_force, add_overrides, overrides
from modgraph.diagnostics import ModgraphError
from modgraph.files import refuse_foreign, write_output
from modgraph.store.records import json_text
from modgraph.trace.errors import NotAPicture, UnknownTraceSuffix

if TYPE_CHECKING:
    from modgraph.trace.trace import Trace

LEAST_MEASURED = 512
PICTURES = (".png", ".svg", ".pdf")
SUFFIXES = (".npz", ".json", *PICTURES)


@dataclass(frozen=True)
class View:
    """A way to draw a trace: the function of a module that does, imported when it is asked for.

    `statistic` says that it is drawn of all examples, not of the first few.
    """

    module: str
    function: str
    statistic: bool = True


VIEWS = {
    "places": View("modgraph.trace.picture", "picture_of", statistic=False),
    "groups": View("modgraph.trace.shares_picture", "groups_picture"),
    "training": View("modgraph.trace.shares_picture", "training_picture"),
    "controllers": View("modgraph.trace.controllers_picture", "controllers_picture"),
    "paths": View("modgraph.trace.paths_picture", "paths_picture"),
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directory", metavar="RUN")
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
    parser.add_argument("--split", metavar="NAME", help="which data (the first split that was not learnt from)")
    parser.add_argument("--route", metavar="NAME", help="this route alone")
    parser.add_argument(
        "--examples",
        type=_count,
        default=4,
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
    trace = _trace(options)
    from modgraph.trace.summary import as_json, as_table

    if suffix is not None:
        write_output(options.output, _content(trace, suffix, options), options.force, SUMMARY_KEYS)
    print(json_text(as_json(trace)) if options.json else as_table(trace))
    return 0


def _trace(options: argparse.Namespace) -> Trace:
    from modgraph.trace.trace import trace_run
    from modgraph.training.run import data_overrides, load_run, threads

    run = load_run(options.run_directory, **data_overrides(overrides(options)))
    with threads(run.recipe.train.threads):
        return trace_run(run, options.split, options.route, max(LEAST_MEASURED, options.examples))


def _content(trace: Trace, suffix: str, options: argparse.Namespace) -> bytes:
    """What a file of this suffix holds."""
    if suffix == ".json":
        from modgraph.trace.summary import as_json

        return (json_text(as_json(trace), indent=2) + "\n").encode()
    if suffix == ".npz":
        from modgraph.trace.arrays import npz_of

        return npz_of(trace.first(options.examples))
    view = VIEWS[options.view or "places"]
    draw: Callable[[Trace, str], bytes] = getattr(import_module(view.module), view.function)
    return draw(trace if view.statistic else trace.first(options.examples), suffix)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise argparse.ArgumentTypeError(f"a whole number from 1, not {text}")
    return int(text)
