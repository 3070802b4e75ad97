"""Measure a run on its test data, in torch or through a bundle."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from modgraph.cli.common import add_options, read_overrides
from modgraph.log import log
from modgraph.store.records import json_text

if TYPE_CHECKING:
    from modgraph.metrics.details import Details
    from modgraph.training.stored_run import StoredRun


USAGE = ("modgraph eval runs/mine", "modgraph eval runs/mine --detail")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directory", metavar="RUN")
    add_options(parser, "set", "json")
    parser.add_argument("--detail", action="store_true", help="confusion matrices, and metrics by the data's groups")
    parser.add_argument("--bundle", metavar="FILE", help="let ONNX Runtime compute the outputs, from this bundle")
    add_options(parser, "unchecked")


def run(options: argparse.Namespace) -> int:
    from modgraph.training.run import threads
    from modgraph.training.stored_run import data_overrides, load_run

    run = load_run(options.run_directory, **data_overrides(read_overrides(options.set)))
    with threads(run.recipe.train.threads):
        measured, found = _measure(run, options)
    metrics = {f"{split}.{name}": value for split, each in measured.items() for name, value in each.items()}
    if options.json:
        more = {f"{split}.{name}": value for split, each in found.items() for name, value in each.as_json().items()}
        print(json_text(metrics | more))
        return 0
    width = max(map(len, metrics), default=0)
    print("\n".join(f"{name.ljust(width)}  {value:.4f}" for name, value in metrics.items()))
    for split, each in found.items():
        print(f"\n{split}\n{each}")
    return 0


def _measure(
    run: StoredRun, options: argparse.Namespace
) -> tuple[Mapping[str, Mapping[str, float]], Mapping[str, Details]]:
    """The metrics of each split, and their details where they are asked for, by the model or by a bundle of it."""
    from modgraph.metrics.details import details
    from modgraph.metrics.metrics import Metrics, measure, values_of_model

    by, asked = run.recipe.train.by, run.recipe.train.metrics
    bundle = None
    if options.bundle is not None:
        from modgraph.training.bundle_metrics import bundle_of, evaluate_bundle, following_from, values_of_bundle

        bundle = bundle_of(run, options.bundle, check=not options.unchecked)
        if left_out := bundle.manifest.get("left_out", {}).get("outputs", ()):
            log.info(f"note: the bundle leaves out {', '.join(left_out)}, and so are their metrics")
    data = run.test_data()
    for split, arrays in data.items():
        whole = None if run.overrides else run.fingerprints.get(split)
        if whole is not None and len(arrays) < whole.examples:
            left = f"{whole.examples - len(arrays):,} of {whole.examples:,} examples of {split}"
            log.info(f"note: {left} are of tasks to come, and left out")
    if bundle is not None:
        evaluate = partial(evaluate_bundle, bundle, run.graph)
    else:
        from modgraph.training.processes import device_or_cpu

        evaluate = partial(measure, run.model(device_or_cpu(run.recipe.train.device)))
    measured = {split: evaluate(arrays, by, asked) for split, arrays in data.items()}
    if not options.detail:
        return measured, {}
    metrics = Metrics(run.graph, asked=asked)
    if bundle is None:
        compute = partial(values_of_model, run.model().eval())
    else:
        compute = partial(values_of_bundle, bundle, run.graph)
        metrics = following_from(bundle.outputs, run.graph, metrics)
    classes = run.description().get("classes", {})
    return measured, {split: details(metrics, compute, arrays, classes) for split, arrays in data.items()}
