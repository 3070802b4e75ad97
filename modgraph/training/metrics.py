"""Metrics that a graph's declared losses imply, and their means over a split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from modgraph.ir import Graph, OpNode, Result, TargetNode
from modgraph.ops.loss import CrossEntropy


@dataclass(frozen=True)
class Accuracy:
    """Share of labels that have the largest logit (the first, in a tie). Padding is left out."""

    name: str
    logits: Result
    target: str
    length: str | None

    def count(self, logits: Tensor, label: Tensor, length: Tensor | None) -> tuple[float, float]:
        """Labels that are right, and labels in all: logits [B, ..., C], label [B, ...]."""
        right = logits.argmax(-1) == label
        if length is None:
            return float(right.sum()), float(right.numel())
        real = torch.arange(right.shape[1]) < length.unsqueeze(-1)
        real = real.reshape(*real.shape, *(1,) * (right.dim() - 2)).expand_as(right)
        return float((right & real).sum()), float(real.sum())


def accuracies(graph: Graph) -> list[Accuracy]:
    """An accuracy for each target that a cross-entropy compares with: `accuracy`, or `<target>.accuracy` of several."""
    found = {}
    for node in graph.of_kind(OpNode):
        if isinstance(node.op, CrossEntropy):
            inputs = graph.inputs(node.name)
            label = graph[inputs["label"].node]
            if isinstance(label, TargetNode):
                length = inputs["length"].node if "length" in inputs else None
                found[label.name] = Accuracy("accuracy", inputs["logits"], label.name, length)
    if len(found) == 1:
        return list(found.values())
    return [Accuracy(f"{name}.accuracy", each.logits, each.target, each.length) for name, each in found.items()]


@dataclass
class Means:
    """Means over examples, gathered batch by batch."""

    sums: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, total: float, weight: float) -> None:
        self.sums[name] = self.sums.get(name, 0.0) + total
        self.weights[name] = self.weights.get(name, 0.0) + weight

    def add_losses(self, losses: Mapping[str, Tensor], examples: int) -> None:
        """Each declared loss if there are several, and their sum."""
        values = {name: float(value) for name, value in losses.items()}
        for name, value in {**(values if len(values) > 1 else {}), "total_loss": sum(values.values())}.items():
            self.add(name, value * examples, examples)

    def values(self) -> dict[str, float]:
        return {name: total / max(1.0, self.weights[name]) for name, total in self.sums.items()}
