"""All metrics of a graph: its losses, the metrics of its targets, and those of its controllers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from statistics import mean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from modgraph.backends.torch import Model
from modgraph.backends.torch.labelled import find_labelled, find_labels_of_losses, mean_of_loss
from modgraph.data import Arrays
from modgraph.data.batches import batches, prefetch
from modgraph.data.declaration import refuse_labels_beyond
from modgraph.ir import Graph, Result
from modgraph.metrics.accumulators import Accumulators
from modgraph.metrics.controllers import Controller, controllers
from modgraph.metrics.target_metrics import Batch, Metric, derive_metrics, measure_text
from modgraph.nn.device import to_device
from modgraph.ops.measures import TOTAL

Asked = Mapping[str, str | Sequence[str]]  # metrics that a recipe requests, by target


class Metrics:
    """Lists the results to compute for the metrics of a graph, accumulates them, and gives the reported values.

    Where one measure has several targets, its plain name is the mean over them. With a grouping `by`, metrics of
    targets are also reported for each group (`domain.sketch.accuracy`), and as the mean over groups
    (`domain.accuracy`). `asked` are metrics by target that no loss implies. `characters` are those of `Arrays`.
    """

    def __init__(
        self,
        graph: Graph,
        by: str | None = None,
        groups: Sequence[str] = (),
        asked: Asked | None = None,
        characters: Mapping[str, tuple[int, ...]] | None = None,
    ) -> None:
        self.losses = tuple(graph.losses)
        self.labels = find_labels_of_losses(graph)
        self.all: list[Metric | Controller] = [*derive_metrics(graph, asked), *measure_text(graph, characters or {})]
        self.all += controllers(graph)
        by_measure: dict[str, list[str]] = {}
        for metric in self.compared:
            by_measure.setdefault(metric.measure.name, []).append(metric.name)
        # the plain names of measures with several targets
        self.averages = {name: each for name, each in by_measure.items() if len(each) > 1}
        self.groups = {group: f"{by}.{group}." for group in groups}
        self.over_groups = f"{by}."

    @property
    def compared(self) -> list[Metric]:
        return [metric for metric in self.all if isinstance(metric, Metric)]

    @property
    def wanted(self) -> list[Result]:
        """The results that `gather` reads, in order."""
        return [result for metric in self.all for result in metric.wanted]

    @property
    def larger_is_better(self) -> dict[str, bool]:
        """Whether each of `names` improves as it grows; False where no metric says so."""
        larger = [metric for metric in self.compared if metric.measure.larger_is_better]
        growing = {name for metric in larger for name in (metric.name, metric.measure.name)}
        prefixes = ("", *self.groups.values(), self.over_groups)
        grown = {f"{prefix}{name}" for prefix in prefixes for name in growing}
        return {name: name in grown for name in self.names}

    @property
    def names(self) -> list[str]:
        """The names that `values` returns."""
        losses = [TOTAL] if len(self.losses) == 1 else [*self.losses, TOTAL]
        own = [*losses, *(name for metric in self.all for name in metric.names), *self.averages]
        prefixes = (*self.groups.values(), self.over_groups) if self.groups else ()
        return [*own, *(f"{prefix}{name}" for prefix in prefixes for name in self._of_targets)]

    def gather(
        self,
        accumulators: Accumulators,
        batch: Batch,
        values: Sequence[Tensor],
        losses: Mapping[str, Tensor] | None = None,
        words: NDArray[np.str_] | None = None,
    ) -> None:
        """Add the wanted values and losses of a batch. Given the group of every example, `words` [B], add them to those
        of the groups too."""
        examples = len(next(iter(batch.values())))
        if not examples:
            return
        labelled = find_labelled(self.labels, batch) if losses else {}
        for name, loss in (losses or {}).items():
            here = labelled.get(name)
            count = examples if here is None else here.sum()
            accumulators.add_tensors((name,), mean_of_loss(loss.detach(), here).double() * count, count)
        left = (value.detach() for value in values)
        for metric in self.all:
            metric.add(accumulators, batch, [next(left) for _ in metric.wanted])
        for group, own, found in split_by_group(words, batch, values) if words is not None else ():
            of_group = Accumulators()
            self.gather(of_group, own, found)
            accumulators.add_all(of_group, self.groups[group])

    def values(self, accumulators: Accumulators) -> dict[str, float]:
        """Return the reported values by name."""
        found = self._values(accumulators)
        of_groups = {prefix: self._values(accumulators.filter_prefix(prefix)) for prefix in self.groups.values()}
        for name in self._of_targets if of_groups else ():
            each = {prefix: values[name] for prefix, values in of_groups.items() if name in values}
            found |= {f"{prefix}{name}": value for prefix, value in each.items()}
            if each:
                found[f"{self.over_groups}{name}"] = mean_of(each.values())
        return found

    @property
    def _of_targets(self) -> list[str]:
        return [*(metric.name for metric in self.compared), *self.averages]

    def _values(self, accumulators: Accumulators) -> dict[str, float]:
        known = accumulators.averages()
        losses = {name: known[name] for name in self.losses if name in known}
        found = {} if len(self.losses) == 1 else losses
        found |= {TOTAL: sum(losses.values())} if losses else {}
        for metric in self.all:
            if metric.names[0] in accumulators:
                found |= metric.values(accumulators)
        over = {name: of for name, of in self.averages.items() if found.keys() >= set(of)}
        return found | {name: mean_of([found[each] for each in of]) for name, of in over.items()}


def mean_of(values: Iterable[float]) -> float:
    """Return the mean of the values that are not NaN; NaN if there is none."""
    known = [value for value in values if not math.isnan(value)]
    return mean(known) if known else math.nan


def split_by_group(
    words: NDArray[np.str_], batch: Batch, values: Sequence[Tensor]
) -> Iterator[tuple[str, Batch, list[Tensor]]]:
    """Split a batch and its values by group, given the group of every example, `words` [B]."""
    device = next(iter(batch.values())).device
    for group in np.unique(words):
        here = to_device(torch.from_numpy(np.flatnonzero(words == group)), device)
        yield str(group), {name: array[here] for name, array in batch.items()}, [value[here] for value in values]


def better(value: float, than: float | None, larger: bool) -> bool:
    """Whether a value improves on another; a value that is not finite never does."""
    return math.isfinite(value) and (than is None or (value > than if larger else value < than))


@torch.no_grad()
def compute_values_of_model(model: Model, metrics: Metrics, batch: Batch) -> list[Tensor]:
    """Compute the values that metrics read from a batch."""
    return [value.cpu() for value in model.results(move_to_model(batch, model), tuple(metrics.wanted))]


def results_of(
    model: Model, batch: Mapping[str, Tensor], wanted: list[Any], losses: Mapping[str, Result]
) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Compute results of a batch for the metrics, and its losses: [B] for a loss per example, a scalar for one over the
    batch."""
    results = model.results(batch, (*wanted, *losses.values()))
    return results[: len(wanted)], dict(zip(losses, results[len(wanted) :], strict=True))


def metrics_of(graph: Graph, arrays: Arrays, by: str | None, asked: Asked | None = None) -> Metrics:
    """Return the metrics of a graph on a split, by the groups of a grouping if the split has it."""
    return Metrics(graph, by, arrays.names_of_groups(by), asked, arrays.characters)


@contextmanager
def take_all(examples: int) -> Iterator[slice]:
    """Yield all examples of a batch."""
    yield slice(examples)


@torch.no_grad()
def evaluate(
    model: Model,
    arrays: Arrays,
    part: int = 0,
    parts: int = 1,
    by: str | None = None,
    asked: Asked | None = None,
    share: Callable[[int], AbstractContextManager[slice]] = take_all,
    watch: Callable[[Metrics, Batch, Sequence[Tensor]], None] | None = None,
) -> Accumulators:
    """Accumulate a model's metrics over a split, in evaluation mode; with `parts`, over every `parts`-th batch. Within
    `share`, a process evaluates its part of a batch of so many examples. `watch` receives each batch with the values
    that the metrics want. Raises `ModgraphError` for labels beyond the classes of the model."""
    refuse_labels_beyond(arrays, model.graph)
    model.eval()
    accumulators, metrics = Accumulators(), metrics_of(model.graph, arrays, by, asked)
    with prefetch(batches(arrays, part, parts), reads=bool(arrays.on_disk)) as every:
        for indices, rows in every:
            with share(len(next(iter(rows.values())))) as own:
                batch = move_to_model({name: each[own] for name, each in rows.items()}, model)
                values, losses = results_of(model, batch, metrics.wanted, model.graph.losses)
            words = arrays.groups[str(by)][indices][own] if metrics.groups else None
            metrics.gather(accumulators, batch, values, losses, words)
            if watch is not None:
                watch(metrics, batch, values)
    return accumulators


def measure(model: Model, arrays: Arrays, by: str | None = None, asked: Asked | None = None) -> dict[str, float]:
    """Return the metrics of a model on a split, also of each group of a grouping."""
    return metrics_of(model.graph, arrays, by, asked).values(evaluate(model, arrays, by=by, asked=asked))


def move_to_model(batch: Batch, model: Model) -> dict[str, Tensor]:
    """Move a batch to the model's device and precision."""
    weight = next(model.parameters(), torch.empty(0))
    return {
        name: to_device(each, weight.device, weight.dtype if each.is_floating_point() else None)
        for name, each in batch.items()
    }
