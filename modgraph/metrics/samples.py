"""What is measured of all labels of a split at once, through scikit-learn: what a recipe asks for beside what losses
imply. Axis letters: S labels that count, C classes.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any, ClassVar

from numpy.typing import NDArray
from torch import Tensor

from modgraph.ir import Graph
from modgraph.metrics.compared import Batch, Metric, metrics_of_kind
from modgraph.metrics.means import Means
from modgraph.ops.comparison import Measure

Array = NDArray[Any]


class SampleMetric(Metric):
    """Keeps the truth of every label that counts, and what was made of it."""

    dtype: ClassVar[str]  # of the targets that it is measured of

    def add(self, means: Means, batch: Batch, values: Sequence[Tensor]) -> None:
        counts = self.labels.counted(batch)
        means.keep(self.name, batch[self.target], self.kept(values[0]), among=counts)

    def values(self, means: Means) -> dict[str, float]:
        truth, made = means.kept(self.name)
        return {self.name: float(self.of_samples(truth, made)) if len(truth) else math.nan}

    def kept(self, prediction: Tensor) -> Tensor:
        """What of a prediction is kept of each label."""
        return prediction.double()

    @abstractmethod
    def of_samples(self, truth: Array, made: Array) -> float:
        """The measure, of the truth [S] and what was kept; not a number where it is not defined."""


class F1(SampleMetric):
    """The harmonic mean of precision and recall of a class, averaged over the classes that occur, as truth or as
    prediction."""

    measure = Measure("f1", larger_is_better=True)
    dtype = "class"

    def kept(self, prediction: Tensor) -> Tensor:
        return prediction.argmax(-1)

    def of_samples(self, truth: Array, made: Array) -> float:
        from sklearn.metrics import f1_score

        return float(f1_score(truth, made, average="macro", zero_division=0))


class AUC(SampleMetric):
    """The area under the receiver operating characteristic: of two classes that of the second, of several the mean over
    the classes that occur, each against the rest by its probability."""

    measure = Measure("auc", larger_is_better=True)
    dtype = "class"

    def kept(self, prediction: Tensor) -> Tensor:
        x = prediction.double()
        return x[..., 1:] - x[..., :1] if x.shape[-1] == 2 else x.softmax(-1)

    def of_samples(self, truth: Array, made: Array) -> float:
        from sklearn.metrics import roc_auc_score

        first = 1 if made.shape[-1] == 1 else 0  # of two classes the second alone
        columns = [(truth == place, made[:, place - first]) for place in range(first, first + made.shape[-1])]
        told = [(is_it, scores) for is_it, scores in columns if 0 < is_it.sum() < len(truth)]
        return mean(float(roc_auc_score(*each)) for each in told) if told else math.nan


class AbsoluteError(SampleMetric):
    """The mean of |prediction − target| over all numbers."""

    measure = Measure("mae")
    dtype = "float"

    def of_samples(self, truth: Array, made: Array) -> float:
        from sklearn.metrics import mean_absolute_error

        return float(mean_absolute_error(truth, made))


class Determination(SampleMetric):
    """R², the share of the variance of all numbers that predictions explain."""

    measure = Measure("r2", larger_is_better=True)
    dtype = "float"

    def of_samples(self, truth: Array, made: Array) -> float:
        from sklearn.metrics import r2_score

        return float(r2_score(truth, made)) if len(truth) > 1 else math.nan


SAMPLED: Mapping[str, type[SampleMetric]] = {
    each.measure.name: each for each in (F1, AUC, AbsoluteError, Determination)
}


def asked_metrics(graph: Graph, asked: Mapping[str, str | Sequence[str]]) -> list[Metric]:
    """What a recipe asks for, by target: `f1`, or `<target>.f1` of several."""
    by_target = {target: [names] if isinstance(names, str) else names for target, names in asked.items()}
    kinds = {name: kind for name, kind in SAMPLED.items() if any(name in names for names in by_target.values())}
    wanted = {name: [target for target, names in by_target.items() if name in names] for name in kinds}
    return [each for name, kind in kinds.items() for each in metrics_of_kind(kind, graph, wanted[name])]
