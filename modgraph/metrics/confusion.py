"""Confusion matrices: how often each class was taken for each other one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from modgraph.metrics.metrics import Metrics
from modgraph.metrics.target_metrics import Accuracy, Batch, choose_class

MOST_CLASSES = 100  # of a matrix: that of a vocabulary would fill the disk, and nobody could read it


@dataclass
class Confusion:
    """A matrix for each target with an accuracy: true classes in rows, predicted classes in columns. That of a binary
    comparison has the rows and columns no and yes."""

    matrices: dict[str, Tensor] = field(default_factory=dict)

    def add(self, metrics: Metrics, batch: Batch, values: Sequence[Tensor]) -> None:
        """Add a batch and the values that `metrics` want."""
        results = dict(zip(metrics.wanted, values, strict=True))
        for metric in metrics.compared:
            logits = results[metric.result].detach()
            size = 2 if metric.compared.binary else logits.shape[-1]
            if isinstance(metric, Accuracy) and size <= MOST_CLASSES:
                counts, labels = metric.labels.make_mask(batch), batch[metric.target]
                truth = (labels > 0.5 if metric.compared.binary else labels)[counts].long()
                pairs = truth * size + choose_class(logits, metric.compared)[counts].long()
                matrix = torch.bincount(pairs, minlength=size * size).reshape(size, size).cpu()
                self.matrices[metric.target] = self.matrices.get(metric.target, 0) + matrix

    @classmethod
    def merge(cls, parts: Iterable[Confusion]) -> Confusion:
        """Sum the matrices of several processes."""
        found: dict[str, Tensor] = {}
        for part in parts:
            for target, matrix in part.matrices.items():
                found[target] = found.get(target, 0) + matrix
        return cls(found)


def name_rows(size: int, known: Sequence[str]) -> list[str]:
    """Return the classes of a matrix: their names, or numbers for those without a name."""
    return [*known, *map(str, range(len(known), size))][:size]
