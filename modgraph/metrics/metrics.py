"""Metrics that a graph implies: its losses, how right its predictions are, what its controllers do.

Axis letters: B examples, C classes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from modgraph.ir import Graph, OpNode, Result, TargetNode
from modgraph.metrics.controllers import Controller, controllers
from modgraph.metrics.means import Means
from modgraph.nn.padding import selected, valid_along
from modgraph.ops.loss import CrossEntropy

Batch = Mapping[str, Tensor]
LARGEST_EXPONENT = 700.0  # of what a float can hold


@dataclass(frozen=True)
class Metric(ABC):
    """Compares one result of a graph with a target. Padding and ignored labels are left out: `padding` has the axes of
    the target [B, …] that hold some, from 1, and the inputs that tell their lengths."""

    name: str
    result: Result
    target: str
    padding: tuple[tuple[int, str], ...]

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

    ignore: int | None = None

    def sums(self, value: Tensor, target: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        predicted, counts = self.predictions(value, target, real)
        return _per_example((predicted == target) & counts), _per_example(counts)

    def predictions(self, logits: Tensor, label: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """The predicted class of every label, and which labels count."""
        return logits.argmax(-1), counted(label, real, self.ignore)


@dataclass(frozen=True)
class Perplexity(Metric):
    """exp of the mean cross-entropy over all labels: `result` is the mean or the sum of each example's."""

    ignore: int | None = None
    reduce: str = "mean"

    def sums(self, value: Tensor, target: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        count_B = _per_example(counted(target, real, self.ignore))
        return (value.double() * count_B if self.reduce == "mean" else value.double()), count_B

    def values(self, means: Mapping[str, float]) -> dict[str, float]:
        mean = means[self.name]
        return {self.name: math.inf if mean > LARGEST_EXPONENT else math.exp(mean)}


@dataclass(frozen=True)
class SquaredError(Metric):
    """The mean of (prediction − target)² over everything that examples hold."""

    def sums(self, value: Tensor, target: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        counts = counted(target, real)
        errors = selected((value - target).double(), None if real is None else counts)
        return _per_example(errors**2), _per_example(counts)


def counted(target: Tensor, real: Tensor | None, ignore: int | None = None) -> Tensor:
    """Which places of a target [B, ...] count: those that are real and not ignored."""
    counts = torch.ones_like(target, dtype=torch.bool) if ignore is None else target != ignore
    return counts if real is None else counts & real


def _per_example(x: Tensor) -> Tensor:
    return x.double().reshape(len(x), -1).sum(1)


# ---------------------------------------------------------------- those of a graph


def accuracies(graph: Graph) -> list[Accuracy]:
    """An accuracy for each target that a cross-entropy compares with: `accuracy`, or `<target>.accuracy` of several."""
    found = {}
    for target, node, inputs in _compared(graph, "label"):
        if isinstance(node.op, CrossEntropy):
            found[target] = (inputs["logits"], target, _padding_of(graph, target), node.op.ignore)
    return [Accuracy(_named("accuracy", target, found), *facts) for target, facts in found.items()]


def perplexities(graph: Graph) -> list[Perplexity]:
    """A perplexity for each target with several labels an example, whose cross-entropy weighs all classes alike."""
    found = {}
    for target, node, _ in _compared(graph, "label"):
        if isinstance(node.op, CrossEntropy) and not node.op.class_weights and graph.target_types[target].shape:
            found[target] = (Result(node.name), target, _padding_of(graph, target), node.op.ignore, node.op.reduce)
    return [Perplexity(_named("perplexity", target, found), *facts) for target, facts in found.items()]


def squared_errors(graph: Graph) -> list[SquaredError]:
    """The error of whatever a loss compares, as its operand `prediction`, with a target that is a number."""
    found = {}
    for target, _, inputs in _compared(graph, "target"):
        if "prediction" in inputs and graph.target_types[target].dtype == "float":
            found[target] = (inputs["prediction"], target, _padding_of(graph, target))
    return [SquaredError(_named("mse", target, found), *facts) for target, facts in found.items()]


def _compared(graph: Graph, slot: str) -> Iterable[tuple[str, OpNode, dict[str, Result]]]:
    """The ops that take a target in a slot: the target, the op, and what flows into it."""
    for node in graph.of_kind(OpNode):
        inputs = graph.inputs(node.name)
        if slot in inputs and isinstance(graph[inputs[slot].node], TargetNode):
            yield inputs[slot].node, node, inputs


def _padding_of(graph: Graph, target: str) -> tuple[tuple[int, str], ...]:
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
            *accuracies(graph),
            *perplexities(graph),
            *squared_errors(graph),
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


def better(metric: str, value: float, than: float) -> bool:
    """Whether a value of a metric is better: accuracies grow, losses shrink, and what is no finite number is never."""
    return math.isfinite(value) and (value > than if metric.endswith("accuracy") else value < than)


def worst(metric: str) -> float:
    """What any finite value of a metric is better than."""
    return -math.inf if metric.endswith("accuracy") else math.inf
