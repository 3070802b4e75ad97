"""Metrics that a graph implies: its losses, how right its predictions are, what its controllers do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import mean

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from modgraph.backends.torch.labelled import labelled_examples, labels_of_losses, mean_of_loss
from modgraph.ir import Graph, Result
from modgraph.metrics.compared import Batch, Metric, compared_metrics
from modgraph.metrics.controllers import Controller, controllers
from modgraph.metrics.means import Means
from modgraph.metrics.samples import asked_metrics
from modgraph.nn.device import sent

TOTAL = "total_loss"
Asked = Mapping[str, str | Sequence[str]]  # metrics that a recipe asks for, by target


class Metrics:
    """All metrics of a graph: what to compute for them, how to gather it, and what it comes to.

    Of several targets that one measure is taken of, its plain name is the mean over them. With a grouping, what is
    compared with targets is measured for each of its groups too (`domain.sketch.accuracy`), and the mean over them
    (`domain.accuracy`). `asked` are metrics by target that no loss implies.
    """

    def __init__(
        self, graph: Graph, by: str | None = None, groups: Sequence[str] = (), asked: Asked | None = None
    ) -> None:
        self.losses = tuple(graph.losses)
        self.labels = labels_of_losses(graph)
        asked_for = asked_metrics(graph, asked or {})
        self.all: list[Metric | Controller] = [*compared_metrics(graph), *asked_for, *controllers(graph)]
        by_measure: dict[str, list[str]] = {}
        for metric in self.compared:
            by_measure.setdefault(metric.measure.name, []).append(metric.name)
        self.means = {name: each for name, each in by_measure.items() if len(each) > 1}  # over several targets
        self.groups = {group: f"{by}.{group}." for group in groups}
        self.over_groups = f"{by}."

    @property
    def compared(self) -> list[Metric]:
        return [metric for metric in self.all if isinstance(metric, Metric)]

    @property
    def wanted(self) -> list[Result]:
        """The results that `gather` takes."""
        return [result for metric in self.all for result in metric.wanted]

    @property
    def larger_is_better(self) -> dict[str, bool]:
        """Which way each of `names` improves: what no metric says grows when it is better shrinks."""
        larger = [metric for metric in self.compared if metric.measure.larger_is_better]
        growing = {name for metric in larger for name in (metric.name, metric.measure.name)}
        prefixes = ("", *self.groups.values(), self.over_groups)
        grown = {f"{prefix}{name}" for prefix in prefixes for name in growing}
        return {name: name in grown for name in self.names}

    @property
    def names(self) -> list[str]:
        """What `values` will hold."""
        losses = [TOTAL] if len(self.losses) == 1 else [*self.losses, TOTAL]
        own = [*losses, *(name for metric in self.all for name in metric.names), *self.means]
        prefixes = (*self.groups.values(), self.over_groups) if self.groups else ()
        return [*own, *(f"{prefix}{name}" for prefix in prefixes for name in self._of_targets)]

    def gather(
        self, means: Means, batch: Batch, values: Sequence[Tensor], losses: Mapping[str, Tensor] | None = None
    ) -> None:
        """Add a batch's wanted values and its losses to the means."""
        examples = len(next(iter(batch.values())))
        if not examples:
            return
        if losses is not None:
            labelled = labelled_examples(self.labels, batch)
            for name, loss in losses.items():
                here = labelled.get(name)
                count = examples if here is None else here.sum()
                means.hold((name,), mean_of_loss(loss.detach(), here).double() * count, count)
        left = (value.detach() for value in values)
        for metric in self.all:
            metric.add(means, batch, [next(left) for _ in metric.wanted])

    def gather_groups(self, means: Means, batch: Batch, values: Sequence[Tensor], words: NDArray[np.str_]) -> None:
        """Add a batch to the means of the groups that its examples belong to."""
        for group, own, found in by_group(words, batch, values):
            of_group = Means()
            self.gather(of_group, own, found)
            means.add_all(of_group, self.groups[group])

    def values(self, means: Means) -> dict[str, float]:
        """What is reported of what was gathered."""
        found = self._values(means)
        of_groups = {prefix: self._values(means.below(prefix)) for prefix in self.groups.values()}
        for name in self._of_targets if of_groups else ():
            each = {prefix: values[name] for prefix, values in of_groups.items() if name in values}
            found |= {f"{prefix}{name}": value for prefix, value in each.items()}
            if each:
                found[f"{self.over_groups}{name}"] = mean_of(each.values())
        return found

    @property
    def _of_targets(self) -> list[str]:
        """What is compared with targets, and the means over them."""
        return [*(metric.name for metric in self.compared), *self.means]

    def _values(self, means: Means) -> dict[str, float]:
        known = means.each()
        losses = {name: known[name] for name in self.losses if name in known}
        found = {} if len(self.losses) == 1 else losses
        found |= {TOTAL: sum(losses.values())} if losses else {}
        for metric in self.all:
            if metric.names[0] in means:
                found |= metric.values(means)
        over = {name: of for name, of in self.means.items() if found.keys() >= set(of)}
        return found | {name: mean_of([found[each] for each in of]) for name, of in over.items()}


def mean_of(values: Iterable[float]) -> float:
    """The mean of those that are numbers; not a number if none is."""
    known = [value for value in values if not math.isnan(value)]
    return mean(known) if known else math.nan


def by_group(
    words: NDArray[np.str_], batch: Batch, values: Sequence[Tensor]
) -> Iterator[tuple[str, Batch, list[Tensor]]]:
    """The part of a batch and of its values that belongs to each group, given the group of every example."""
    device = next(iter(batch.values())).device
    for group in np.unique(words):
        here = sent(torch.from_numpy(np.flatnonzero(words == group)), device)
        yield str(group), {name: array[here] for name, array in batch.items()}, [value[here] for value in values]


def better(value: float, than: float | None, larger: bool) -> bool:
    """Whether a value is better, where larger ones are or smaller ones; what is no finite number never is."""
    return math.isfinite(value) and (than is None or (value > than if larger else value < than))
