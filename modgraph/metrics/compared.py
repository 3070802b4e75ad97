"""What is measured of predictions that are compared with targets: accuracy, perplexity, squared error, which losses
imply; and what a recipe asks for, of all labels of a split at once, through scikit-learn.

Axis letters: B examples, S labels that count, C classes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any, ClassVar

from numpy.typing import NDArray
from torch import Tensor

from modgraph.backends.torch.labelled import TargetLabels
from modgraph.ir import Compared, Graph, Result, comparisons
from modgraph.metrics.means import Means
from modgraph.nn import CrossEntropy
from modgraph.nn.padding import cleared
from modgraph.ops.op import ACCURACY, PERPLEXITY, SQUARED_ERROR, Measure
from modgraph.types import TensorType

Batch = Mapping[str, Tensor]
Array = NDArray[Any]
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
    def result(self) -> Result:
        """The result of the graph that it takes."""
        return self.compared.prediction

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
    """exp of the mean cross-entropy over all labels: its result is the mean or the sum of each example's. It is told of
    targets with several labels an example, and where all classes count alike."""

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


class SampleMetric(Metric):
    """Keeps the truth of every label that counts, and what was made of it, for a `score` of scikit-learn."""

    dtype: ClassVar[str]  # of the targets that it is measured of
    score: ClassVar[str]
    options: ClassVar[Mapping[str, Any]] = {}
    fewest: ClassVar[int] = 1  # labels of which it is defined

    def add(self, means: Means, batch: Batch, values: Sequence[Tensor]) -> None:
        means.keep(self.name, batch[self.target], self.kept(values[0]), among=self.labels.counted(batch))

    def values(self, means: Means) -> dict[str, float]:
        truth, made = means.kept(self.name)
        return {self.name: self.of_samples(truth, made) if len(truth) >= self.fewest else math.nan}

    def kept(self, prediction: Tensor) -> Tensor:
        """What of a prediction is kept of each label."""
        return prediction.double()

    def of_samples(self, truth: Array, made: Array) -> float:
        """The measure, of the truth [S] and what was kept; not a number where it is not defined."""
        from sklearn import metrics

        return float(getattr(metrics, self.score)(truth, made, **self.options))


class F1(SampleMetric):
    """The harmonic mean of precision and recall of a class, averaged over the classes that occur, as truth or as
    prediction."""

    measure = Measure("f1", larger_is_better=True)
    dtype, score, options = "class", "f1_score", {"average": "macro", "zero_division": 0}

    def kept(self, prediction: Tensor) -> Tensor:
        return prediction.argmax(-1)


class AUC(SampleMetric):
    """The area under the receiver operating characteristic: of two classes that of the second, of several the mean over
    the classes that occur, each against the rest by its probability."""

    measure = Measure("auc", larger_is_better=True)
    dtype, score = "class", "roc_auc_score"

    def kept(self, prediction: Tensor) -> Tensor:
        x = prediction.double()
        return x[..., 1:] - x[..., :1] if x.shape[-1] == 2 else x.softmax(-1)

    def of_samples(self, truth: Array, made: Array) -> float:
        first = 1 if made.shape[-1] == 1 else 0  # of two classes the second alone
        columns = [(truth == place, made[:, place - first]) for place in range(first, first + made.shape[-1])]
        told = [(is_it, scores) for is_it, scores in columns if 0 < is_it.sum() < len(truth)]
        return mean(super(AUC, self).of_samples(*each) for each in told) if told else math.nan


class AbsoluteError(SampleMetric):
    """The mean of |prediction − target| over all numbers."""

    measure = Measure("mae")
    dtype, score = "float", "mean_absolute_error"


class Determination(SampleMetric):
    """R², the share of the variance of all numbers that predictions explain."""

    measure = Measure("r2", larger_is_better=True)
    dtype, score, fewest = "float", "r2_score", 2


SAMPLED: Mapping[str, type[SampleMetric]] = {
    each.measure.name: each for each in (F1, AUC, AbsoluteError, Determination)
}


def asked_metrics(graph: Graph, asked: Mapping[str, str | Sequence[str]]) -> list[Metric]:
    """What a recipe asks for, by target: `f1`, or `<target>.f1` of several."""
    by_target = {target: [names] if isinstance(names, str) else names for target, names in asked.items()}
    wanted = {kind: [target for target, names in by_target.items() if name in names] for name, kind in SAMPLED.items()}
    return [each for kind, targets in wanted.items() for each in metrics_of_kind(kind, graph, targets)]
