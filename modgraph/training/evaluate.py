"""Evaluate a run on test data, in torch or through its bundle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from modgraph_runtime import Bundle

from modgraph.data import Arrays
from modgraph.metrics.details import Details, details
from modgraph.metrics.metrics import Metrics, measure, values_of_model
from modgraph.training.bundle_metrics import bundle_of, evaluate_bundle, following_from, values_of_bundle
from modgraph.training.processes import device_or_cpu
from modgraph.training.run import threads
from modgraph.training.stored_run import StoredRun


@dataclass(frozen=True)
class Evaluation:
    """Metrics by split, their details if requested, and `notes` on data that are not measured."""

    metrics: Mapping[str, Mapping[str, float]]
    details: Mapping[str, Details]
    notes: tuple[str, ...]

    def flat(self) -> dict[str, Any]:
        """Return metrics and details by `split.metric`."""
        flat: dict[str, Any] = {
            f"{at}.{name}": value for at, each in self.metrics.items() for name, value in each.items()
        }
        more = ((at, each.as_json()) for at, each in self.details.items())
        return flat | {f"{at}.{name}": value for at, each in more for name, value in each.items()}


def evaluate(run: StoredRun, bundle: str | Path | None = None, detail: bool = False, check: bool = True) -> Evaluation:
    """Return the metrics of each test split, by the model or by a bundle of it.

    `detail` requests confusion matrices and metrics by the data's groups; `check` is that of `Bundle`. Raises
    `ModgraphError` for changed data, and for a bundle of another run.
    """
    with threads(run.recipe.train.threads):
        opened = None if bundle is None else bundle_of(run, str(bundle), check=check)
        data = run.test_data()
        notes = tuple(_notes(run, opened, data))
        by, asked = run.recipe.train.by, run.recipe.train.metrics
        if opened is not None:
            measured = {split: evaluate_bundle(opened, run.graph, arrays, by, asked) for split, arrays in data.items()}
        else:
            model = run.model(device_or_cpu(run.recipe.train.device))
            measured = {split: measure(model, arrays, by, asked) for split, arrays in data.items()}
        return Evaluation(measured, _details(run, opened, data) if detail else {}, notes)


def _details(run: StoredRun, bundle: Bundle | None, data: Mapping[str, Arrays]) -> dict[str, Details]:
    metrics = Metrics(run.graph, asked=run.recipe.train.metrics)
    if bundle is None:
        compute = partial(values_of_model, run.model().eval())
    else:
        compute = partial(values_of_bundle, bundle, run.graph)
        metrics = following_from(bundle.outputs, run.graph, metrics)
    classes = run.description().get("classes", {})
    return {split: details(metrics, compute, arrays, classes) for split, arrays in data.items()}


def _notes(run: StoredRun, bundle: Bundle | None, data: Mapping[str, Arrays]) -> Iterator[str]:
    left_out = () if bundle is None else bundle.manifest.get("left_out", {}).get("outputs", ())
    if left_out:
        yield f"the bundle leaves out {', '.join(left_out)}, and so are their metrics"
    for split, arrays in data.items():
        known = None if run.overrides or run.anew else run.fingerprints.get(split)
        if known is not None and len(arrays) < known.examples:
            left = f"{known.examples - len(arrays):,} of {known.examples:,} examples of {split}"
            yield f"{left} are of tasks to come, and left out"
