"""What is measured of predictions that are compared with targets: accuracy, perplexity, squared error.

Axis letters: B examples, C classes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from modgraph.backends.torch.labelled import TargetLabels
from modgraph.ir import Compared, Graph, Result, comparisons
from modgraph.metrics.means import Means
from modgraph.nn import CrossEntropy
from modgraph.nn.padding import cleared
from modgraph.ops.comparison import ACCURACY, PERPLEXITY, SQUARED_ERROR, Measure
from modgraph.types import TensorType

Batch = Mapping[str, Tensor]
LARGEST_EXPONENT = 700.0  # of what a float can hold


@dataclass(frozen=True)
class Metric(ABC):
    """Compares one result of a graph with a target. Padding and labels that do not count are left out."""

    measure: ClassVar[Measure]

    name: str
    prediction: Result
    labels: TargetLabels

    @property
    def target(self) -> str:
        return self.labels.target

    @property
    def result(self) -> Result:
        """The result of the graph that it takes."""
        return self.prediction

    @classmethod
    def fits(cls, compared: Compared, target: TensorType) -> bool:
        """Whether it says something of a comparison with a target of this type."""
        return True

    @classmethod
    def of(cls, name: str, compared: Compared, labels: TargetLabels) -> Metric:
        """The metric of a comparison."""
        return cls(name, compared.prediction, labels)

    def of_prediction(self, prediction: Tensor, batch: Batch) -> Tensor:
        """What `result` would be, of a prediction that was made elsewhere."""
        return prediction

    @abstractmethod
    def add(self, means: Means, batch: Batch, values: Sequence[Tensor]) -> None:
        """Gather what a batch and the wanted values tell."""

    @abstractmethod
    def values(self, means: Means) -> dict[str, float]:
        """What is reported, by name, of what was gathered; not a number where there was no label."""

    @property
    def wanted(self) -> tuple[Result, ...]:
        return (self.result,)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)


class MeanMetric(Metric):
    """A mean over labels."""

    @abstractmethod
    def sums(self, value: Tensor, target: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        """What is averaged over labels that count, summed for each example, and how much of it there is: [B] each."""

    def add(self, means: Means, batch: Batch, values: Sequence[Tensor]) -> None:
        total_B, weight_B = self.sums(values[0], batch[self.target], self.labels.counted(batch))
        means.hold((self.name,), total_B.sum(), weight_B.sum())

    def values(self, means: Means) -> dict[str, float]:
        return {self.name: means.mean(self.name)}


@dataclass(frozen=True)
class Accuracy(MeanMetric):
    """Share of labels that have the largest logit (the first, in a tie): logits [B, ..., C], label [B, ...]."""

    measure = ACCURACY

    def sums(self, value: Tensor, target: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        return _per_example((value.argmax(-1) == target) & counts), _per_example(counts)


@dataclass(frozen=True)
class Perplexity(MeanMetric):
    """exp of the mean cross-entropy over all labels: `cross_entropy` is the mean or the sum of each example's.

    It is told of targets with several labels an example, and where all classes count alike.
    """

    measure = PERPLEXITY
    cross_entropy: Result
    reduce: str

    @property
    def result(self) -> Result:
        return self.cross_entropy

    @classmethod
    def fits(cls, compared: Compared, target: TensorType) -> bool:
        return bool(target.shape) and not compared.class_weights

    @classmethod
    def of(cls, name: str, compared: Compared, labels: TargetLabels) -> Perplexity:
        return cls(name, compared.prediction, labels, compared.value, compared.reduce)

    def of_prediction(self, prediction: Tensor, batch: Batch) -> Tensor:
        real = self.labels.real_in(batch)
        loss = CrossEntropy(ignore=self.labels.ignored, reduce=self.reduce, missing=self.labels.missing)
        found: Tensor = loss(prediction, batch[self.target], None if real is None else real.unsqueeze(-1))
        return found

    def sums(self, value: Tensor, target: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        count_B = _per_example(counts)
        return (value.double() * count_B if self.reduce == "mean" else value.double()), count_B

    def values(self, means: Means) -> dict[str, float]:
        mean = means.mean(self.name)
        return {self.name: math.inf if mean > LARGEST_EXPONENT else math.exp(mean)}


@dataclass(frozen=True)
class SquaredError(MeanMetric):
    """The mean of (prediction − target)² over everything that examples hold, of targets that are numbers."""

    measure = SQUARED_ERROR

    @classmethod
    def fits(cls, compared: Compared, target: TensorType) -> bool:
        return target.dtype == "float"

    def sums(self, value: Tensor, target: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        errors = cleared((value - target).double(), counts)
        return _per_example(errors**2), _per_example(counts)


def _per_example(x: Tensor) -> Tensor:
    return x.double().reshape(len(x), -1).sum(1)


KINDS: tuple[type[Metric], ...] = (Accuracy, Perplexity, SquaredError)


def compared_metrics(graph: Graph) -> list[Metric]:
    """What losses imply of each target that they compare with: `accuracy`, or `<target>.accuracy` of several."""
    return [metric for kind in KINDS for metric in metrics_of_kind(kind, graph, targets_of_kind(kind, graph))]


def accuracies(graph: Graph) -> list[Accuracy]:
    """The accuracies among what losses imply."""
    return [metric for metric in compared_metrics(graph) if isinstance(metric, Accuracy)]


def targets_of_kind(kind: type[Metric], graph: Graph) -> list[str]:
    """The targets that losses imply a metric of."""
    types = graph.target_types
    told = (each for each in comparisons(graph) if kind.measure in each.measures)
    return list(dict.fromkeys(each.target for each in told if kind.fits(each, types[each.target])))


def metrics_of_kind(kind: type[Metric], graph: Graph, targets: Sequence[str]) -> list[Metric]:
    """One metric for each of some targets; of several comparisons with one target, that of the last."""
    found = {each.target: each for each in comparisons(graph) if kind.fits(each, graph.target_types[each.target])}
    return [
        kind.of(_named(kind.measure.name, target, targets), found[target], TargetLabels.of(found[target], graph))
        for target in targets
    ]


def _named(metric: str, target: str, targets: Sequence[str]) -> str:
    return metric if len(targets) == 1 else f"{target}.{metric}"
