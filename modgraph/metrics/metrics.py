"""Metrics that a graph implies: its losses, how right its predictions are, what its controllers do.

Axis letters: B examples, C classes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from modgraph.ir import Compared, Graph, Result, comparisons
from modgraph.metrics.controllers import Controller, controllers
from modgraph.metrics.means import Means
from modgraph.nn import CrossEntropy
from modgraph.nn.padding import cleared, valid_along
from modgraph.ops.comparison import ACCURACY, PERPLEXITY, SQUARED_ERROR, Measure
from modgraph.types import TensorType

Batch = Mapping[str, Tensor]
Padding = tuple[tuple[int, str], ...]
LARGEST_EXPONENT = 700.0  # of what a float can hold


@dataclass(frozen=True)
class Metric(ABC):
    """Compares one result of a graph with a target. Padding and ignored labels are left out: `padding` has the axes of
    the target [B, …] that hold some, from 1, and the inputs that tell their lengths."""

    measure: ClassVar[Measure]

    name: str
    prediction: Result
    target: str
    padding: Padding

    @property
    def result(self) -> Result:
        """The result of the graph that it takes."""
        return self.prediction

    @classmethod
    def fits(cls, compared: Compared, target: TensorType) -> bool:
        """Whether it says something of a comparison with a target of this type."""
        return True

    @classmethod
    def of(cls, name: str, compared: Compared, padding: Padding) -> Metric:
        """That of a comparison."""
        return cls(name, compared.prediction, compared.target, padding)

    def of_prediction(self, prediction: Tensor, batch: Batch) -> Tensor:
        """What `result` would be, of a prediction that was made elsewhere."""
        return prediction

    @abstractmethod
    def sums(self, value: Tensor, target: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """What is averaged, summed for each example, and how much of it there is: [B] each."""

    def add(self, means: Means, batch: Batch, values: Sequence[Tensor]) -> None:
        total_B, weight_B = self.sums(values[0], batch[self.target], self.real_in(batch))
        means.add(self.name, float(total_B.sum()), float(weight_B.sum()))

    def real_in(self, batch: Batch) -> Tensor | None:
        """Which places of the target [B, …] are no padding; None where all are, or lengths are not told."""
        lengths = {axis: batch[name] for axis, name in self.padding if name in batch}
        return valid_along(batch[self.target], lengths)

    @property
    def wanted(self) -> tuple[Result, ...]:
        return (self.result,)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def values(self, means: Mapping[str, float]) -> dict[str, float]:
        """What is reported."""
        return {self.name: means[self.name]}


@dataclass(frozen=True)
class Accuracy(Metric):
    """Share of labels that have the largest logit (the first, in a tie): logits [B, ..., C], label [B, ...]."""

    measure = ACCURACY
    ignore: int | None = None

    @classmethod
    def of(cls, name: str, compared: Compared, padding: Padding) -> Accuracy:
        return cls(name, compared.prediction, compared.target, padding, compared.ignored)

    def sums(self, value: Tensor, target: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        predicted, counts = self.predictions(value, target, real)
        return _per_example((predicted == target) & counts), _per_example(counts)

    def predictions(self, logits: Tensor, label: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """The predicted class of every label, and which labels count."""
        return logits.argmax(-1), counted(label, real, self.ignore)


@dataclass(frozen=True)
class Perplexity(Metric):
    """exp of the mean cross-entropy over all labels: `cross_entropy` is the mean or the sum of each example's.

    It is told of targets with several labels an example, and where all classes count alike.
    """

    measure = PERPLEXITY
    cross_entropy: Result
    ignore: int | None
    reduce: str

    @property
    def result(self) -> Result:
        return self.cross_entropy

    @classmethod
    def fits(cls, compared: Compared, target: TensorType) -> bool:
        return bool(target.shape) and not compared.class_weights

    @classmethod
    def of(cls, name: str, compared: Compared, padding: Padding) -> Perplexity:
        facts = compared.prediction, compared.target, padding, compared.value, compared.ignored, compared.reduce
        return cls(name, *facts)

    def of_prediction(self, prediction: Tensor, batch: Batch) -> Tensor:
        loss, real = CrossEntropy(ignore=self.ignore, reduce=self.reduce), self.real_in(batch)
        found: Tensor = loss(prediction, batch[self.target], None if real is None else real.unsqueeze(-1))
        return found

    def sums(self, value: Tensor, target: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        count_B = _per_example(counted(target, real, self.ignore))
        return (value.double() * count_B if self.reduce == "mean" else value.double()), count_B

    def values(self, means: Mapping[str, float]) -> dict[str, float]:
        mean = means[self.name]
        return {self.name: math.inf if mean > LARGEST_EXPONENT else math.exp(mean)}


@dataclass(frozen=True)
class SquaredError(Metric):
    """The mean of (prediction − target)² over everything that examples hold, of targets that are numbers."""

    measure = SQUARED_ERROR

    @classmethod
    def fits(cls, compared: Compared, target: TensorType) -> bool:
        return target.dtype == "float"

    def sums(self, value: Tensor, target: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        counts = counted(target, real)
        errors = cleared((value - target).double(), None if real is None else counts)
        return _per_example(errors**2), _per_example(counts)


def counted(target: Tensor, real: Tensor | None, ignore: int | None = None) -> Tensor:
    """Which places of a target [B, ...] count: those that are real and not ignored."""
    counts = torch.ones_like(target, dtype=torch.bool) if ignore is None else target != ignore
    return counts if real is None else counts & real


def _per_example(x: Tensor) -> Tensor:
    return x.double().reshape(len(x), -1).sum(1)


# ---------------------------------------------------------------- those of a graph


KINDS: tuple[type[Metric], ...] = (Accuracy, Perplexity, SquaredError)


def compared_metrics(graph: Graph) -> list[Metric]:
    """What losses imply of each target that they compare with: `accuracy`, or `<target>.accuracy` of several."""
    return [metric for kind in KINDS for metric in _of_kind(kind, graph)]


def accuracies(graph: Graph) -> list[Accuracy]:
    """The accuracies among them."""
    return [metric for metric in compared_metrics(graph) if isinstance(metric, Accuracy)]


def _of_kind(kind: type[Metric], graph: Graph) -> list[Metric]:
    """One metric for each target; of several comparisons with one target, that of the last."""
    found = {
        each.target: each
        for each in comparisons(graph)
        if kind.measure in each.measures and kind.fits(each, graph.target_types[each.target])
    }
    return [
        kind.of(_named(kind.measure.name, target, found), each, _padding_of(graph, target))
        for target, each in found.items()
    ]


def _padding_of(graph: Graph, target: str) -> Padding:
    """The axes of a target, from 1, that hold padding, each with the input that tells its lengths."""
    told = graph.length_inputs()
    axes = enumerate(graph.target_types[target].shape, start=1)
    return tuple((at, told[axis.name]) for at, axis in axes if axis.is_padded and axis.name in told)


def _named(metric: str, target: str, found: Mapping[str, object]) -> str:
    return metric if len(found) == 1 else f"{target}.{metric}"


class Metrics:
    """All metrics of a graph: what to compute for them, how to gather it, and what it comes to.

    With a grouping, what is compared with targets is measured for each of its groups too (`domain.sketch.accuracy`),
    and the mean over them (`domain.accuracy`).
    """

    def __init__(self, graph: Graph, by: str | None = None, groups: Sequence[str] = ()) -> None:
        self.losses = ("total_loss",) if len(graph.losses) == 1 else (*graph.losses, "total_loss")
        self.all: list[Metric | Controller] = [
            *compared_metrics(graph),
            *controllers(graph),
        ]
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
        growing = {metric.name for metric in self.compared if metric.measure.larger_is_better}
        prefixes = ("", *self.groups.values(), self.over_groups)
        grown = {f"{prefix}{name}" for prefix in prefixes for name in growing}
        return {name: name in grown for name in self.names}

    @property
    def names(self) -> list[str]:
        """What `values` will hold."""
        grouped = [metric.name for metric in self.compared] if self.groups else []
        prefixes = (*self.groups.values(), self.over_groups)
        own = [*self.losses, *(name for metric in self.all for name in metric.names)]
        return [*own, *(f"{prefix}{name}" for prefix in prefixes for name in grouped)]

    def gather(
        self, means: Means, batch: Batch, values: Sequence[Tensor], losses: Mapping[str, Tensor] | None = None
    ) -> None:
        """Add a batch's wanted values and its losses to the means."""
        examples = len(next(iter(batch.values())))
        if not examples:
            return
        if losses is not None:
            each = {name: float(value.detach().mean()) for name, value in losses.items()}
            for name, loss in {**each, "total_loss": sum(each.values())}.items():
                means.add(name, loss * examples, examples)
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
        for metric in self.compared if of_groups else ():
            each = {prefix: values[metric.name] for prefix, values in of_groups.items() if metric.name in values}
            found |= {f"{prefix}{metric.name}": value for prefix, value in each.items()}
            if each:
                found[f"{self.over_groups}{metric.name}"] = mean(each.values())
        return found

    def _values(self, means: Means) -> dict[str, float]:
        known = means.each()
        found = {name: known[name] for name in self.losses if name in known}
        for metric in self.all:
            if metric.names[0] in known:
                found |= metric.values(known)
        return found


def by_group(
    words: NDArray[np.str_], batch: Batch, values: Sequence[Tensor]
) -> Iterator[tuple[str, Batch, list[Tensor]]]:
    """The part of a batch and of its values that belongs to each group, given the group of every example."""
    device = next(iter(batch.values())).device
    for group in np.unique(words):
        here = torch.from_numpy(words == group).to(device)
        yield str(group), {name: array[here] for name, array in batch.items()}, [value[here] for value in values]


def better(value: float, than: float, larger: bool) -> bool:
    """Whether a value is better, where larger ones are or smaller ones; what is no finite number never is."""
    return math.isfinite(value) and (value > than if larger else value < than)


def worst(larger: bool) -> float:
    """What any finite value is better than, where larger ones are or smaller ones."""
    return -math.inf if larger else math.inf
