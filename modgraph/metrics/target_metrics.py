"""Metrics that compare predictions with targets.

The losses of a graph imply accuracy, perplexity, squared and absolute error. A recipe requests others, which
scikit-learn computes from all labels of a split. Axis letters: B examples, S labels that count, C classes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any, ClassVar

import torch
from numpy.typing import NDArray
from torch import Tensor

from modgraph.backends.torch.labelled import TargetLabels
from modgraph.extras import require
from modgraph.ir import Compared, Graph, Result, comparisons
from modgraph.metrics.accumulators import Accumulators
from modgraph.nn import CrossEntropy
from modgraph.nn.padding import apply_mask
from modgraph.ops import measures
from modgraph.ops.measures import ABSOLUTE_ERROR, ACCURACY, BITS_PER_CHARACTER, PERPLEXITY, SQUARED_ERROR, Measure
from modgraph.types import TensorType

Batch = Mapping[str, Tensor]
Array = NDArray[Any]
LARGEST_EXPONENT = 700.0  # exp of more overflows a float


@dataclass(frozen=True)
class Metric(ABC):
    """Compares one result of a graph with a target. Padding and ignored labels do not count."""

    measure: ClassVar[Measure]

    name: str
    compared: Compared
    labels: TargetLabels

    @property
    def target(self) -> str:
        return self.compared.target

    @property
    def result(self) -> Result:
        """The result of the graph that the metric reads."""
        return self.compared.prediction

    @property
    def wanted(self) -> tuple[Result, ...]:
        return (self.result,)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @classmethod
    def fits(cls, compared: Compared, target: TensorType) -> bool:
        """Whether the metric is defined for a comparison with a target of this type."""
        return True

    def compute_result(self, prediction: Tensor, batch: Batch) -> Tensor:
        """Return `result` for a prediction that another runtime computed."""
        return prediction

    @abstractmethod
    def add(self, accumulators: Accumulators, batch: Batch, values: Sequence[Tensor]) -> None:
        """Add a batch and the values of `wanted` to the accumulators."""

    @abstractmethod
    def values(self, accumulators: Accumulators) -> dict[str, float]:
        """Return the reported values by name; NaN where there was no label."""


class MeanMetric(Metric):
    """A mean over labels."""

    @abstractmethod
    def sums(self, value: Tensor, target: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sum over the labels of each example that count, and their number: [B] each."""

    def add(self, accumulators: Accumulators, batch: Batch, values: Sequence[Tensor]) -> None:
        total_B, weight_B = self.sums(values[0], batch[self.target], self.labels.make_mask(batch))
        accumulators.add_tensors((self.name,), total_B.sum(), weight_B.sum())

    def values(self, accumulators: Accumulators) -> dict[str, float]:
        return {self.name: accumulators.mean(self.name)}


class Accuracy(MeanMetric):
    """Share of labels whose class has the largest logit (the first on a tie): logits [B, ..., C], label [B, ...]; or
    those of a binary comparison, logits [B, ...], that are yes where the logit is positive and no elsewhere."""

    measure = ACCURACY

    def sums(self, value: Tensor, target: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        truth = target > 0.5 if self.compared.binary else target
        return _per_example((choose_class(value, self.compared) == truth) & counts), _per_example(counts)


class Perplexity(MeanMetric):
    """exp of the mean cross-entropy over all labels. It reads the loss, a mean or a sum for each example. Reported for
    targets with several labels an example and without class weights."""

    measure = PERPLEXITY

    @property
    def result(self) -> Result:
        return self.compared.value

    @classmethod
    def fits(cls, compared: Compared, target: TensorType) -> bool:
        return bool(target.shape) and not compared.class_weights

    def compute_result(self, prediction: Tensor, batch: Batch) -> Tensor:
        mask = self.labels.padding_mask(batch)
        loss = CrossEntropy(ignore=self.labels.ignored, reduce=self.compared.reduce, missing=self.labels.missing)
        found: Tensor = loss(prediction, batch[self.target], None if mask is None else mask.unsqueeze(-1))
        return found

    def sums(self, value: Tensor, target: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        count_B = _per_example(counts)
        return (value.double() * count_B if self.compared.reduce == "mean" else value.double()), count_B

    def values(self, accumulators: Accumulators) -> dict[str, float]:
        mean = accumulators.mean(self.name)
        return {self.name: math.inf if mean > LARGEST_EXPONENT else math.exp(mean)}


@dataclass(frozen=True)
class BitsPerCharacter(Perplexity):
    """The cross-entropy of a text in bits, by the characters of the labels. Characters of words differ in number, so
    models with other vocabularies compare by it."""

    measure = BITS_PER_CHARACTER

    characters: tuple[int, ...] = ()  # the number in the text of each class

    def sums(self, value: Tensor, target: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        nats_B, _ = super().sums(value, target, counts)
        length = torch.tensor(self.characters, device=target.device)
        return nats_B / math.log(2), _per_example(apply_mask(length[target * counts], counts))

    def values(self, accumulators: Accumulators) -> dict[str, float]:
        return {self.name: accumulators.mean(self.name)}


class SquaredError(MeanMetric):
    """The mean of (prediction − target)² over all numbers of a float target."""

    measure = SQUARED_ERROR

    @classmethod
    def fits(cls, compared: Compared, target: TensorType) -> bool:
        return target.dtype == "float"

    def sums(self, value: Tensor, target: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        prediction = value.sigmoid() if self.compared.binary else value
        errors = apply_mask((prediction - target).double(), counts)
        return _per_example(self.weigh_errors(errors)), _per_example(counts)

    def weigh_errors(self, errors: Tensor) -> Tensor:
        return errors**2


class AbsoluteError(SquaredError):
    """The mean of |prediction − target| over all numbers of a float target."""

    measure, dtype = ABSOLUTE_ERROR, "float"

    def weigh_errors(self, errors: Tensor) -> Tensor:
        return errors.abs()


def choose_class(logits: Any, compared: Compared) -> Any:
    """Return the most probable class for logits, an array or a tensor, as a comparison reads them."""
    return logits > 0 if compared.binary else logits.argmax(-1)


def _per_example(x: Tensor) -> Tensor:
    return x.double().reshape(len(x), -1).sum(1)


def list_metrics_of_kind(kind: type[Metric], graph: Graph, targets: Sequence[str]) -> list[Metric]:
    """Return one metric for each target. Of several comparisons with one target, the last counts."""
    found = {each.target: each for each in comparisons(graph) if kind.fits(each, graph.target_types[each.target])}
    name = kind.measure.name
    names = {target: name if len(targets) == 1 else f"{target}.{name}" for target in targets}
    return [
        kind(names[target], found[target], TargetLabels.from_comparison(found[target], graph)) for target in targets
    ]


class SampleMetric(Metric):
    """Keeps the true and the predicted value of every label that counts, for a `score` of scikit-learn."""

    dtype: ClassVar[str]  # of the targets that the metric accepts
    score: ClassVar[str]
    options: ClassVar[Mapping[str, Any]] = {}
    fewest: ClassVar[int] = 1  # the fewest labels for which the score is defined

    def add(self, accumulators: Accumulators, batch: Batch, values: Sequence[Tensor]) -> None:
        accumulators.add_sample(
            self.name, batch[self.target], self.extract_values(values[0]), among=self.labels.make_mask(batch)
        )

    def values(self, accumulators: Accumulators) -> dict[str, float]:
        truth, predictions = accumulators.concatenate_samples(self.name)
        return {self.name: self.compute_score(truth, predictions) if len(truth) >= self.fewest else math.nan}

    def extract_values(self, prediction: Tensor) -> Tensor:
        """Return the part of a prediction to keep for each label."""
        return prediction.double()

    def compute_score(self, truth: Array, predictions: Array) -> float:
        """Return the score of true values [S] and predicted ones [S] or [S, C]; NaN where it is undefined."""
        from sklearn import metrics

        return float(getattr(metrics, self.score)(truth, predictions, **self.options))


class F1(SampleMetric):
    """The harmonic mean of precision and recall of a class, averaged over the classes among labels and predictions."""

    measure = measures.F1
    dtype, score, options = "class", "f1_score", {"average": "macro", "zero_division": 0}

    def extract_values(self, prediction: Tensor) -> Tensor:
        found: Tensor = choose_class(prediction, self.compared)
        return found.long()


class AUC(SampleMetric):
    """The area under the receiver operating characteristic. With two classes, that of the second. With more, the mean
    over the classes that occur, each against the rest by its probability."""

    measure = measures.AUC
    dtype, score = "class", "roc_auc_score"

    def extract_values(self, prediction: Tensor) -> Tensor:
        x = prediction.double()
        if self.compared.binary:
            return x.unsqueeze(-1)
        return x[..., 1:] - x[..., :1] if x.shape[-1] == 2 else x.softmax(-1)

    def compute_score(self, truth: Array, predictions: Array) -> float:
        first = 1 if predictions.shape[-1] == 1 else 0  # with two classes, the second only
        columns = [
            (truth == place, predictions[:, place - first]) for place in range(first, first + predictions.shape[-1])
        ]
        defined = [(is_it, scores) for is_it, scores in columns if 0 < is_it.sum() < len(truth)]
        return mean(super(AUC, self).compute_score(*each) for each in defined) if defined else math.nan


class Determination(SampleMetric):
    """R², the share of the variance of all numbers that predictions explain."""

    measure = measures.DETERMINATION
    dtype, score, fewest = "float", "r2_score", 2

    def extract_values(self, prediction: Tensor) -> Tensor:
        return prediction.sigmoid().double() if self.compared.binary else prediction.double()


IMPLIED: tuple[type[Metric], ...] = (Accuracy, Perplexity, SquaredError, AbsoluteError)  # by losses
REQUESTED: Mapping[str, type[SampleMetric | AbsoluteError]] = {  # by recipes
    each.measure.name: each for each in (F1, AUC, AbsoluteError, Determination)
}


def derive_metrics(graph: Graph, asked: Mapping[str, str | Sequence[str]] | None = None) -> list[Metric]:
    """Return the metrics that losses imply for each target, and those that a recipe requests: `accuracy`, or
    `<target>.accuracy` with several targets. Raises `ModgraphError` if scikit-learn is missing for requested ones."""
    if asked:
        require("metrics", "a metric that a recipe requests")
    by_target = {target: [names] if isinstance(names, str) else names for target, names in (asked or {}).items()}
    metrics = list[Metric]()
    for kind in dict.fromkeys((*IMPLIED, *REQUESTED.values())):
        targets = find_implying_targets(kind, graph) if kind in IMPLIED else []
        if kind.measure.name in REQUESTED:
            targets += [target for target, names in by_target.items() if kind.measure.name in names]
        metrics += list_metrics_of_kind(kind, graph, list(dict.fromkeys(targets)))
    return metrics


def measure_text(graph: Graph, characters: Mapping[str, tuple[int, ...]]) -> list[Metric]:
    """Return the bits per character of the targets whose classes have `characters`."""
    targets = [target for target in find_implying_targets(Perplexity, graph) if target in characters]
    metrics = list_metrics_of_kind(BitsPerCharacter, graph, targets)
    return [replace(each, characters=characters[each.target]) for each in metrics]  # type: ignore[call-arg]


def find_implying_targets(kind: type[Metric], graph: Graph) -> list[str]:
    """Find the targets of the losses that imply a metric."""
    measured = [each for each in comparisons(graph) if kind.measure in each.measures]
    return [each.target for each in measured if kind.fits(each, graph.target_types[each.target])]


def accuracies(graph: Graph) -> list[Accuracy]:
    """Return the accuracies among the metrics that losses imply."""
    return [metric for metric in derive_metrics(graph) if isinstance(metric, Accuracy)]
