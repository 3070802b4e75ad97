"""Which labels of a batch count: no padding, none that is ignored, none that is missing. B is the batch axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from modgraph.ir import Compared, Graph, Padding, compared_in, comparisons, padding_of, with_missing_labels
from modgraph.nn.padding import both, cleared, labelled, valid_along, with_labels

Batch = Mapping[str, Tensor]


@dataclass(frozen=True)
class TargetLabels:
    """The labels of one target: `padding` has its axes [B, …] that hold some, from 1, and the inputs that tell their
    lengths; the label `ignored` does not count, and labels may be `missing`."""

    target: str
    padding: Padding = ()
    ignored: int | None = None
    missing: bool = False

    @classmethod
    def of(cls, compared: Compared, graph: Graph) -> TargetLabels:
        """The labels that a comparison takes."""
        padding = padding_of(graph, graph.target_types[compared.target])
        return cls(compared.target, padding, compared.ignored, compared.missing)

    def real_in(self, batch: Batch) -> Tensor | None:
        """Which places of the target [B, …] are no padding; None where all are, or lengths are not told."""
        lengths = {axis: batch[name] for axis, name in self.padding if name in batch}
        return valid_along(batch[self.target], lengths)

    def counted(self, batch: Batch) -> Tensor:
        """Which places of the target [B, …] hold a label that counts."""
        target = batch[self.target]
        counts = both(labelled(target, self.ignored, self.missing), self.real_in(batch))
        return torch.ones_like(target, dtype=torch.bool) if counts is None else counts

    def examples(self, batch: Batch) -> Tensor:
        """Which examples have any label: [B]."""
        return with_labels(batch[self.target], self.real_in(batch), self.ignored, self.missing)


def labels_of_losses(graph: Graph) -> dict[str, list[TargetLabels]]:
    """The labels of each loss that is a mean over labelled examples alone: which compares with nothing but targets
    whose labels may be missing, and is one number for each example."""
    missing = with_missing_labels(graph)
    if not missing:
        return {}
    labels = {each.target: TargetLabels.of(each, graph) for each in comparisons(graph)}
    behind = {name: targets for name, targets in compared_in(graph).items() if targets and targets <= missing}
    per_example = (name for name, result in graph.losses.items() if graph.type_of(result).per == "example")
    return {name: [labels[target] for target in sorted(behind[name])] for name in per_example if name in behind}


def labelled_examples(labels: Mapping[str, list[TargetLabels]], batch: Batch) -> dict[str, Tensor]:
    """Of each such loss, which examples of a batch have any label of its targets: [B]."""
    return {name: torch.stack([each.examples(batch) for each in of_loss]).any(0) for name, of_loss in labels.items()}


def mean_of_loss(loss: Tensor, labelled: Tensor | None) -> Tensor:
    """The mean of a loss over a batch, or over its labelled examples, zero if there are none."""
    return loss.mean() if labelled is None else cleared(loss, labelled).sum() / labelled.sum().clamp(min=1)
