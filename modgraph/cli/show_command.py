"""Print the graph of a spec."""

from __future__ import annotations

import argparse
import json

from modgraph.cli.common import add_overrides, load_spec
from modgraph.ir import to_json
from modgraph.passes import INFERENCE, TRAINING, apply_passes

PASSES = {each.name: each for each in (*TRAINING, *INFERENCE)}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC")
    add_overrides(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text")
    names = ", ".join(each.name for each in INFERENCE)
    parser.add_argument(
        "--after", metavar="PASS", choices=PASSES, help=f"after the passes of inference up to one of: {names}"
    )


def run(options: argparse.Namespace) -> int:
    graph = load_spec(options.spec, options).ir
    if options.after is not None:
        last = [each.name for each in INFERENCE].index(options.after)
        graph = apply_passes(graph, INFERENCE[: last + 1])
    print(json.dumps(to_json(graph), indent=2) if options.format == "json" else graph)
    return 0
