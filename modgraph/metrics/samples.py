"""What is measured of all labels of a split at once, through scikit-learn: what a recipe asks for beside what losses
imply. Axis letters: S labels that count, C classes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any, ClassVar

from numpy.typing import NDArray
from torch import Tensor

from modgraph.ir import Graph
from modgraph.metrics.compared import Batch, Metric, metrics_of_kind
from modgraph.metrics.means import Means
from modgraph.ops.op import Measure

Array = NDArray[Any]


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
