"""What is measured of predictions that are compared with targets: accuracy, perplexity, squared error.

Axis letters: B examples, C classes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from modgraph.ir import Compared, Graph, Result, comparisons
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
        """The metric of a comparison."""
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
        """What is reported, by name, given the mean of what was added."""
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


KINDS: tuple[type[Metric], ...] = (Accuracy, Perplexity, SquaredError)


def compared_metrics(graph: Graph) -> list[Metric]:
    """What losses imply of each target that they compare with: `accuracy`, or `<target>.accuracy` of several."""
    return [metric for kind in KINDS for metric in _of_kind(kind, graph)]


def accuracies(graph: Graph) -> list[Accuracy]:
    """The accuracies among what losses imply."""
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
    inputs = graph.length_inputs()
    axes = enumerate(graph.target_types[target].shape, start=1)
    return tuple((at, inputs[axis.name]) for at, axis in axes if axis.is_padded and axis.name in inputs)


def _named(metric: str, target: str, found: Mapping[str, object]) -> str:
    return metric if len(found) == 1 else f"{target}.{metric}"
