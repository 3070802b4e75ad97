"""Measure a run on its test data, in torch or through a bundle."""

from __future__ import annotations

import argparse
from dataclasses import replace

from modgraph.cli.common import add_options, read_overrides
from modgraph.log import log
from modgraph.store.records import json_text

USAGE = ("modgraph eval runs/mine", "modgraph eval runs/mine --detail")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directory", metavar="RUN", help="a run's folder")
    add_options(parser, "set", "json")
    parser.add_argument("--detail", action="store_true", help="confusion matrices, and metrics by the data's groups")
    parser.add_argument("--bundle", metavar="FILE", help="compute the outputs with ONNX Runtime from this bundle")
    add_options(parser, "unchecked")


def run(options: argparse.Namespace) -> int:
    from modgraph.training.evaluate import evaluate
    from modgraph.training.stored_run import load_run, select_data_overrides

    run = load_run(options.run_directory, **select_data_overrides(read_overrides(options.set)))
    found = evaluate(run, options.bundle, options.detail, check=not options.unchecked)
    for note in found.notes:
        log.info(f"note: {note}")
    if options.json:
        print(json_text(found.flat()))
        return 0
    metrics = replace(found, details={}).flat()
    width = max(map(len, metrics), default=0)
    print("\n".join(f"{name.ljust(width)}  {value:.4f}" for name, value in metrics.items()))
    for split, each in found.details.items():
        print(f"\n{split}\n{each}")
    return 0
