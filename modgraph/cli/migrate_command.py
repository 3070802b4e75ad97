"""Go on with a run as another spec says: weights and the state of their optimizer are carried over."""

from __future__ import annotations

import argparse

from modgraph.cli.common import add_options, read_overrides, warn
from modgraph.inspect.diff import as_json, text_of
from modgraph.store.records import json_text

USAGE = ("modgraph migrate runs/mine --to mine.mod --out runs/longer -s train.epochs=40",)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folder", metavar="RUN", help="a run's folder")
    parser.add_argument("--to", metavar="SPEC", required=True, help="the new spec")
    parser.add_argument("--out", metavar="DIR", required=True, help="folder for the new run")
    parser.add_argument("--recipe", metavar="FILE", help="a new recipe")
    what = "weights to start afresh, or their modules; * matches anything"
    parser.add_argument("--fresh", nargs="+", action="extend", default=[], metavar="NAME", help=what)
    parser.add_argument("--restart", action="store_true", help="start at epoch 0, with only the weights")
    add_options(parser, "set")
    parser.add_argument("--json", action="store_true", help="the plan as one JSON object on stdout")


def run(options: argparse.Namespace) -> int:
    given = read_overrides(options.set, options.to)
    from modgraph.training.migration import plan_migration

    found = plan_migration(options.run_folder, options.to, options.out, options.recipe, given, options.fresh)
    warn(found.program)
    print(json_text(as_json(found.plan), indent=2) if options.json else text_of(found.plan), flush=True)
    with found.begin(options.out, options.restart) as engine:
        found.announce(engine)
    return 0
