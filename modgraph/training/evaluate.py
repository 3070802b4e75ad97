"""Evaluate a run on test data, in torch or through its bundle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modgraph.data import Arrays
from modgraph.metrics.details import Details, details
from modgraph.metrics.metrics import Metrics, compute_values_of_model, measure
from modgraph.training.processes import choose_device
from modgraph.training.run import threads
from modgraph.training.stored_run import StoredRun

if TYPE_CHECKING:
    from modgraph_runtime import Bundle


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
        opened = None if bundle is None else _open_bundle(run, bundle, check)
        data = run.test_data()
        notes = tuple(_notes(run, opened, data))
        measured = dict(_measure(run, opened, data))
        return Evaluation(measured, _details(run, opened, data) if detail else {}, notes)


def _open_bundle(run: StoredRun, path: str | Path, check: bool) -> Bundle:
    from modgraph.training.bundle_metrics import open_bundle_of  # which imports ONNX Runtime

    return open_bundle_of(run, str(path), check=check)


def _measure(
    run: StoredRun, bundle: Bundle | None, data: Mapping[str, Arrays]
) -> Iterator[tuple[str, Mapping[str, float]]]:
    by, asked = run.recipe.train.by, run.recipe.train.metrics
    if bundle is None:
        model = run.model(choose_device(run.recipe.train.device))
        yield from ((split, measure(model, arrays, by, asked)) for split, arrays in data.items())
        return
    from modgraph.training.bundle_metrics import evaluate_bundle

    yield from ((split, evaluate_bundle(bundle, run.graph, arrays, by, asked)) for split, arrays in data.items())


def _details(run: StoredRun, bundle: Bundle | None, data: Mapping[str, Arrays]) -> dict[str, Details]:
    metrics = Metrics(run.graph, asked=run.recipe.train.metrics)
    if bundle is None:
        compute = partial(compute_values_of_model, run.model().eval())
    else:
        from modgraph.training.bundle_metrics import compute_values_of_bundle, keep_determined_metrics

        compute = partial(compute_values_of_bundle, bundle, run.graph)
        metrics = keep_determined_metrics(bundle.outputs, run.graph, metrics)
    classes = run.description().get("classes", {})
    return {split: details(metrics, compute, arrays, classes) for split, arrays in data.items()}


def _notes(run: StoredRun, bundle: Bundle | None, data: Mapping[str, Arrays]) -> Iterator[str]:
    left_out = () if bundle is None else bundle.manifest.get("left_out", {}).get("outputs", ())
    if left_out:
        yield f"the bundle leaves out {', '.join(left_out)}, so their metrics are missing"
    for split, arrays in data.items():
        known = None if run.overrides or run.anew else run.fingerprints.get(split)
        if known is not None and len(arrays) < known.examples:
            left = f"{known.examples - len(arrays):,} of {known.examples:,} examples of {split}"
            yield f"left out, of future tasks: {left}"
