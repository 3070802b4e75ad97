"""Measure a run on its test data, in torch or through an exported bundle."""

from __future__ import annotations

import argparse
import json
from typing import Any

from modgraph.cli.common import add_overrides, overrides


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directory", metavar="RUN")
    add_overrides(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--bundle", metavar="FILE", help="let ONNX Runtime compute the outputs, from this bundle")


def run(options: argparse.Namespace) -> int:
    from modgraph.training.run import data_overrides, load_run, threads

    run = load_run(options.run_directory, **data_overrides(overrides(options)))
    with threads(run.recipe.train.threads):
        metrics = _of_bundle(run, options.bundle) if options.bundle else _of_model(run)
    print(json.dumps(metrics) if options.json else _table(metrics))
    return 0


def _of_model(run: Any) -> dict[str, float]:
    from modgraph.training.engine import evaluate

    model = run.model()
    return {
        f"{split}.{name}": value
        for split, arrays in run.test_data().items()
        for name, value in evaluate(model, arrays).items()
    }


def _of_bundle(run: Any, path: str) -> dict[str, float]:
    from modgraph.training.bundle_metrics import evaluate_bundle

    return {
        f"{split}.{name}": value
        for split, arrays in run.test_data().items()
        for name, value in evaluate_bundle(path, run.graph, arrays).items()
    }


def _table(metrics: dict[str, float]) -> str:
    width = max(map(len, metrics), default=0)
    return "\n".join(f"{name.ljust(width)}  {value:.4f}" for name, value in metrics.items())
