"""Print the program of a spec, a run, a checkpoint or a bundle."""

from __future__ import annotations

import argparse
import json

from modgraph.cli.common import ARCHITECTURE, add_options, open_architecture
from modgraph.diagnostics import Diagnostic, ModgraphError, did_you_mean
from modgraph.inspect.reads import find_reads, format_reads
from modgraph.ir import to_json
from modgraph.passes import EVERY_PIPELINE, apply_passes, cut_pipeline


class UnknownPass(Diagnostic, code="MG150"):
    """`show --after` stops after a pass of a pipeline: `training` runs before a model is trained, `inference` before
    one is exported. A pass without a pipeline belongs to `inference`."""

    message = 'unknown pass "{name}"'
    help = "{suggestion}"


USAGE = ("modgraph show mine.mod", "modgraph show mine.mod --after training.lower")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "architecture",
        metavar="SPEC|RUN|CHECKPOINT|BUNDLE",
        help=ARCHITECTURE,
    )
    add_options(parser, "set")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="the format (text)")
    parser.add_argument("--reads", action="store_true", help="which tokens and examples each output reads")
    parser.add_argument("--after", metavar="PASS", help=f"print after a pass: {', '.join(_names())}")


def run(options: argparse.Namespace) -> int:
    try:
        passes = () if options.after is None else cut_pipeline(options.after)
    except KeyError as error:
        suggestion = did_you_mean(options.after, _names(), f"the passes are: {', '.join(_names())}")
        raise ModgraphError([UnknownPass(name=options.after, suggestion=suggestion)]) from error
    graph = apply_passes(open_architecture(options.architecture, options).graph, passes)
    if options.reads:
        print(json.dumps(find_reads(graph), indent=2) if options.format == "json" else format_reads(graph))
    else:
        print(json.dumps(to_json(graph), indent=2) if options.format == "json" else graph)
    return 0


def _names() -> list[str]:
    return [f"{pipeline}.{each.name}" for pipeline, passes in EVERY_PIPELINE.items() for each in passes]
