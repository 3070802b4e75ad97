"""Show what the routers of a run do on real data."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from modgraph.cli.common import add_overrides, overrides
from modgraph.diagnostics import ModgraphError
from modgraph.files import write_atomically
from modgraph.tools.trace.errors import UnknownTraceSuffix

if TYPE_CHECKING:
    from modgraph.tools.trace.trace import Trace

LEAST_MEASURED = 512
SUFFIXES = (".npz", ".json", ".png", ".svg", ".pdf")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directory", metavar="RUN")
    add_overrides(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="arrays (.npz), summary (.json), maps (.png .svg .pdf)")
    parser.add_argument("--split", metavar="NAME", help="which data (the first split that was not learnt from)")
    parser.add_argument("--route", metavar="NAME", help="this route alone")
    parser.add_argument(
        "--examples",
        type=_count,
        default=4,
        metavar="N",
        help=f"examples in a file of maps or arrays (4); statistics are over {LEAST_MEASURED}, or N if that is more",
    )
    parser.add_argument("--json", action="store_true", help="the summary as one JSON object on stdout")


def run(options: argparse.Namespace) -> int:
    suffix = Path(options.output).suffix.lower() if options.output else None
    if suffix not in (None, *SUFFIXES):
        raise ModgraphError([UnknownTraceSuffix(path=options.output)])
    trace = _trace(options)
    from modgraph.tools.trace.summary import as_json, as_table

    if suffix is not None:
        write_atomically(options.output, _content(trace, suffix, options.examples))
    print(json.dumps(as_json(trace)) if options.json else as_table(trace))
    return 0


def _trace(options: argparse.Namespace) -> Trace:
    from modgraph.tools.trace.trace import trace_run
    from modgraph.training.run import data_overrides, load_run, threads

    run = load_run(options.run_directory, **data_overrides(overrides(options)))
    with threads(run.recipe.train.threads):
        return trace_run(run, options.split, options.route, max(LEAST_MEASURED, options.examples))


def _content(trace: Trace, suffix: str, examples: int) -> bytes:
    """What a file of this suffix holds."""
    if suffix == ".json":
        from modgraph.tools.trace.summary import as_json

        return (json.dumps(as_json(trace), indent=2) + "\n").encode()
    if suffix == ".npz":
        from modgraph.tools.trace.arrays import npz_of

        return npz_of(trace.first(examples))
    from modgraph.tools.trace.picture import picture_of

    return picture_of(trace.first(examples), suffix)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise argparse.ArgumentTypeError(f"a whole number from 1, not {text}")
    return int(text)
