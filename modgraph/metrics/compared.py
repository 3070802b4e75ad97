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
from modgraph.ops.op import ACCURACY, PERPLEXITY, SQUARED_ERROR, Measure
from modgraph.types import TensorType

Batch = Mapping[str, Tensor]
LARGEST_EXPONENT = 700.0  # of what a float can hold


@dataclass(frozen=True)
class Metric(ABC):
    """Compares one result of a graph with a target. Padding and labels that do not count are left out."""

    measure: ClassVar[Measure]

    name: str
    compared: Compared
    labels: TargetLabels

    @property
    def target(self) -> str:
        return self.compared.target

    @property
    def prediction(self) -> Result:
        return self.compared.prediction

    @property
    def result(self) -> Result:
        """The result of the graph that it takes."""
        return self.prediction

    @property
    def wanted(self) -> tuple[Result, ...]:
        return (self.result,)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @classmethod
    def fits(cls, compared: Compared, target: TensorType) -> bool:
        """Whether it says something of a comparison with a target of this type."""
        return True

    def of_prediction(self, prediction: Tensor, batch: Batch) -> Tensor:
        """What `result` would be, of a prediction that was made elsewhere."""
        return prediction

    @abstractmethod
    def add(self, means: Means, batch: Batch, values: Sequence[Tensor]) -> None:
        """Gather what a batch and the wanted values tell."""

    @abstractmethod
    def values(self, means: Means) -> dict[str, float]:
        """What is reported, by name, of what was gathered; not a number where there was no label."""


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


class Accuracy(MeanMetric):
    """Share of labels that have the largest logit (the first, in a tie): logits [B, ..., C], label [B, ...]."""

    measure = ACCURACY

    def sums(self, value: Tensor, target: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        return _per_example((value.argmax(-1) == target) & counts), _per_example(counts)


class Perplexity(MeanMetric):
    """exp of the mean cross-entropy over all labels: its result is the mean or the sum of each example's.

    It is told of targets with several labels an example, and where all classes count alike.
    """

    measure = PERPLEXITY

    @property
    def result(self) -> Result:
        return self.compared.value

    @classmethod
    def fits(cls, compared: Compared, target: TensorType) -> bool:
        return bool(target.shape) and not compared.class_weights

    def of_prediction(self, prediction: Tensor, batch: Batch) -> Tensor:
        real = self.labels.real_in(batch)
        loss = CrossEntropy(ignore=self.labels.ignored, reduce=self.compared.reduce, missing=self.labels.missing)
        found: Tensor = loss(prediction, batch[self.target], None if real is None else real.unsqueeze(-1))
        return found

    def sums(self, value: Tensor, target: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        count_B = _per_example(counts)
        return (value.double() * count_B if self.compared.reduce == "mean" else value.double()), count_B

    def values(self, means: Means) -> dict[str, float]:
        mean = means.mean(self.name)
        return {self.name: math.inf if mean > LARGEST_EXPONENT else math.exp(mean)}


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


def compared_metrics(graph: Graph) -> list[Metric]:
    """What losses imply of each target that they compare with: `accuracy`, or `<target>.accuracy` of several."""
    types, metrics = graph.target_types, []
    for kind in (Accuracy, Perplexity, SquaredError):
        measured = [each for each in comparisons(graph) if kind.measure in each.measures]
        targets = [each.target for each in measured if kind.fits(each, types[each.target])]
        metrics += metrics_of_kind(kind, graph, list(dict.fromkeys(targets)))
    return metrics


def accuracies(graph: Graph) -> list[Accuracy]:
    """The accuracies among what losses imply."""
    return [metric for metric in compared_metrics(graph) if isinstance(metric, Accuracy)]


def metrics_of_kind(kind: type[Metric], graph: Graph, targets: Sequence[str]) -> list[Metric]:
    """One metric for each of some targets; of several comparisons with one target, that of the last."""
    found = {each.target: each for each in comparisons(graph) if kind.fits(each, graph.target_types[each.target])}
    name = kind.measure.name
    names = {target: name if len(targets) == 1 else f"{target}.{name}" for target in targets}
    return [kind(names[target], found[target], TargetLabels.of(found[target], graph)) for target in targets]
