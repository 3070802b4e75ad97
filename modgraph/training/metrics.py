"""Metrics that a graph's declared losses imply, and their means over a split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import mean

import torch
from torch import Tensor

from modgraph.ir import Graph, OpNode, Result, TargetNode
from modgraph.ops.loss import CrossEntropy


@dataclass(frozen=True)
class Accuracy:
    """Share of labels that have the largest logit (the first, in a tie). Padding and ignored labels are left out."""

    name: str
    logits: Result
    target: str
    length: str | None
    ignore: int | None = None

    def predictions(self, logits: Tensor, label: Tensor, length: Tensor | None) -> tuple[Tensor, Tensor]:
        """The predicted class of every label, and which labels count: logits [B, ..., C], label [B, ...]."""
        counts = torch.ones_like(label, dtype=torch.bool) if self.ignore is None else label != self.ignore
        if length is not None:
            real = torch.arange(label.shape[1], device=label.device) < length.unsqueeze(-1)
            counts = counts & real.reshape(*real.shape, *(1,) * (label.dim() - 2))
        return logits.argmax(-1), counts

    def count(self, logits: Tensor, label: Tensor, length: Tensor | None) -> tuple[float, float]:
        """Labels that are right, and labels in all."""
        predicted, counts = self.predictions(logits, label, length)
        return float(((predicted == label) & counts).sum()), float(counts.sum())


def accuracies(graph: Graph) -> list[Accuracy]:
    """An accuracy for each target that a cross-entropy compares with: `accuracy`, or `<target>.accuracy` of several."""
    found = {}
    for node in graph.of_kind(OpNode):
        if isinstance(node.op, CrossEntropy):
            inputs = graph.inputs(node.name)
            label = graph[inputs["label"].node]
            if isinstance(label, TargetNode):
                length = inputs["length"].node if "length" in inputs else None
                found[label.name] = ("accuracy", inputs["logits"], label.name, length, node.op.ignore)
    if len(found) == 1:
        return [Accuracy(*facts) for facts in found.values()]
    return [Accuracy(f"{name}.accuracy", *facts) for name, (_, *facts) in found.items()]  # type: ignore[arg-type]


def metric_names(graph: Graph) -> list[str]:
    """What `Means` of this graph will hold."""
    losses = list(graph.losses) if len(graph.losses) > 1 else []
    return [*losses, "total_loss", *(each.name for each in accuracies(graph))]


def names_by_group(graph: Graph, by: str | None, groups: Iterable[str]) -> dict[str, list[str]]:
    """Accuracies over the groups of a grouping: the name of each mean, `domain.accuracy`, and of what it is the mean,
    `domain.sketch.accuracy`."""
    if by is None:
        return {}
    groups = list(groups)
    return {f"{by}.{each.name}": [f"{by}.{group}.{each.name}" for group in groups] for each in accuracies(graph)}


def better(metric: str, value: float, than: float) -> bool:
    """Whether a value of a metric is better: accuracies grow, losses shrink."""
    return value > than if metric.endswith("accuracy") else value < than


@dataclass
class Means:
    """Means over examples, gathered batch by batch; `of_means` are means of some of them, counting alike."""

    sums: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    of_means: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, total: float, weight: float) -> None:
        self.sums[name] = self.sums.get(name, 0.0) + total
        self.weights[name] = self.weights.get(name, 0.0) + weight

    def add_losses(self, losses: Mapping[str, Tensor], examples: int) -> None:
        """Each declared loss if there are several, and their sum."""
        values = {name: float(value) for name, value in losses.items()}
        for name, value in {**(values if len(values) > 1 else {}), "total_loss": sum(values.values())}.items():
            self.add(name, value * examples, examples)

    def values(self) -> dict[str, float]:
        found = {name: total / max(1.0, self.weights[name]) for name, total in self.sums.items()}
        return found | {name: mean(found[each] for each in names) for name, names in self.of_means.items()}

    @classmethod
    def read(cls, record: Mapping[str, Mapping[str, float]]) -> Means:
        """Means from their record. Raises `TypeError` or `ValueError` if it is none."""
        sums, weights = ({k: float(v) for k, v in record.get(name, {}).items()} for name in ("sums", "weights"))
        if sums.keys() != weights.keys():
            raise ValueError("its means are not whole")
        return cls(sums, weights)

    @classmethod
    def joined(cls, parts: Iterable[Means]) -> Means:
        """The means over all that several have gathered."""
        whole = cls()
        for part in parts:
            whole.of_means |= part.of_means
            for name, total in part.sums.items():
                whole.add(name, total, part.weights[name])
        return whole
