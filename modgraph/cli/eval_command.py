"""Measure a run on its test data, in torch or through an exported bundle."""

from __future__ import annotations

import argparse
from typing import Any

from modgraph.cli.common import add_overrides, overrides
from modgraph.records import json_text


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directory", metavar="RUN")
    add_overrides(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--detail", action="store_true", help="confusion matrices, and metrics by the data's groups")
    parser.add_argument("--bundle", metavar="FILE", help="let ONNX Runtime compute the outputs, from this bundle")


def run(options: argparse.Namespace) -> int:
    from modgraph.training.run import data_overrides, load_run, threads

    run = load_run(options.run_directory, **data_overrides(overrides(options)))
    with threads(run.recipe.train.threads):
        metrics = _of_bundle(run, options.bundle) if options.bundle else _of_model(run)
        found = _details(run) if options.detail else {}
    if options.json:
        print(
            json_text(metrics | {f"{split}.{k}": v for split, each in found.items() for k, v in each.as_json().items()})
        )
        return 0
    print(_table(metrics))
    for split, each in found.items():
        print(f"\n{split}\n{each}")
    return 0


def _of_model(run: Any) -> dict[str, float]:
    from modgraph.training.evaluation import measure
    from modgraph.training.processes import device_or_cpu

    model = run.model(device_or_cpu(run.recipe.train.device))
    return {
        f"{split}.{name}": value
        for split, arrays in run.test_data().items()
        for name, value in measure(model, arrays, run.recipe.train.by).items()
    }


def _details(run: Any) -> dict[str, Any]:
    from modgraph.training.details import details

    model = run.model()
    return {split: details(model, arrays) for split, arrays in run.test_data().items()}


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
