"""Measure a run on its test data, in torch or through an exported bundle."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from modgraph.cli.common import add_overrides, add_unchecked, overrides
from modgraph.store.records import json_text

if TYPE_CHECKING:
    from modgraph_runtime import Bundle

    from modgraph.data import Arrays
    from modgraph.metrics.details import Details
    from modgraph.metrics.evaluation import Results
    from modgraph.training.stored_run import Run

    Splits = Mapping[str, Arrays]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directory", metavar="RUN")
    add_overrides(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--detail", action="store_true", help="confusion matrices, and metrics by the data's groups")
    parser.add_argument("--bundle", metavar="FILE", help="let ONNX Runtime compute the outputs, from this bundle")
    add_unchecked(parser)


def run(options: argparse.Namespace) -> int:
    from modgraph.training.run import threads
    from modgraph.training.stored_run import data_overrides, load_run

    run = load_run(options.run_directory, **data_overrides(overrides(options)))
    with threads(run.recipe.train.threads):
        bundle = None if options.bundle is None else _opened(run, options)
        data = run.test_data()
        _tell_left_out(run, data)
        metrics = _of_model(run, data) if bundle is None else _of_bundle(run, bundle, data)
        found = _details(run, bundle, data) if options.detail else {}
    if options.json:
        print(
            json_text(metrics | {f"{split}.{k}": v for split, each in found.items() for k, v in each.as_json().items()})
        )
        return 0
    print(_table(metrics))
    for split, each in found.items():
        print(f"\n{split}\n{each}")
    return 0


def _tell_left_out(run: Run, data: Splits) -> None:
    """Say which examples are not measured yet."""
    for split, arrays in data.items():
        whole = None if run.overrides else run.fingerprints.get(split)
        if whole is not None and len(arrays) < whole.examples:
            left = f"{whole.examples - len(arrays):,} of {whole.examples:,} examples of {split}"
            print(f"note: {left} are of tasks to come, and left out", file=sys.stderr)


def _opened(run: Run, options: argparse.Namespace) -> Bundle:
    """The bundle to measure, which is one of this run."""
    from modgraph.training.bundle_metrics import bundle_of

    bundle = bundle_of(run, options.bundle, check=not options.unchecked)
    left_out = bundle.manifest.get("left_out", {}).get("outputs", ())
    if left_out:
        print(f"note: the bundle leaves out {', '.join(left_out)}, and so are their metrics", file=sys.stderr)
    return bundle


def _of_model(run: Run, data: Splits) -> dict[str, float]:
    from modgraph.metrics.evaluation import measure
    from modgraph.training.processes import device_or_cpu

    model = run.model(device_or_cpu(run.recipe.train.device))
    return {
        f"{split}.{name}": value
        for split, arrays in data.items()
        for name, value in measure(model, arrays, run.recipe.train.by, run.recipe.train.metrics).items()
    }


def _of_bundle(run: Run, bundle: Bundle, data: Splits) -> dict[str, float]:
    from modgraph.training.bundle_metrics import evaluate_bundle

    by, asked = run.recipe.train.by, run.recipe.train.metrics
    return {
        f"{split}.{name}": value
        for split, arrays in data.items()
        for name, value in evaluate_bundle(bundle, run.graph, arrays, by, asked).items()
    }


def _details(run: Run, bundle: Bundle | None, data: Splits) -> dict[str, Details]:
    """Computed by what the metrics were computed by."""
    from modgraph.metrics.details import details

    results = _results_of_model(run) if bundle is None else _results_of_bundle(run, bundle)
    classes = run.description().get("classes", {})
    return {split: details(results, arrays, classes) for split, arrays in data.items()}


def _results_of_model(run: Run) -> Results:
    from modgraph.metrics.evaluation import ModelResults

    return ModelResults(run.model(), run.recipe.train.metrics)


def _results_of_bundle(run: Run, bundle: Bundle) -> Results:
    from modgraph.training.bundle_metrics import BundleResults

    return BundleResults(bundle, run.graph, asked=run.recipe.train.metrics)


def _table(metrics: dict[str, float]) -> str:
    width = max(map(len, metrics), default=0)
    return "\n".join(f"{name.ljust(width)}  {value:.4f}" for name, value in metrics.items())
