"""The labels of a batch that count: not padding, not ignored, not missing. B is the batch axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from modgraph.ir import (
    Compared,
    Graph,
    Padding,
    find_ignored_labels,
    find_loss_targets,
    list_padding,
    with_missing_labels,
)
from modgraph.nn.padding import apply_mask, has_labels, make_label_mask, valid_along

Batch = Mapping[str, Tensor]


@dataclass(frozen=True)
class TargetLabels:
    """The labels of one target [B, …].

    `padding` lists its padded axes, counted from 1, with the inputs of their lengths. The label `ignored` does not
    count; labels may be `missing`.
    """

    target: str
    padding: Padding = ()
    ignored: int | None = None
    missing: bool = False

    @classmethod
    def from_comparison(cls, compared: Compared, graph: Graph) -> TargetLabels:
        """The labels that a comparison reads."""
        padding = list_padding(graph, graph.target_types[compared.target])
        return cls(compared.target, padding, compared.ignored, compared.missing)

    def padding_mask(self, batch: Batch) -> Tensor | None:
        """The padding mask of the target [B, …]; None without padded axes or without lengths in the batch."""
        lengths = {axis: batch[name] for axis, name in self.padding if name in batch}
        return valid_along(batch[self.target], lengths)

    def make_mask(self, batch: Batch) -> Tensor:
        """A mask of the labels of the target [B, …] that count."""
        return make_label_mask(batch[self.target], self.padding_mask(batch), self.ignored, self.missing)

    def examples(self, batch: Batch) -> Tensor:
        """Whether each example has a label that counts: [B]."""
        return has_labels(batch[self.target], self.padding_mask(batch), self.ignored, self.missing)


def find_labels_of_losses(graph: Graph) -> dict[str, list[TargetLabels]]:
    """The labels of each loss that averages over labelled examples only.

    Such a loss is one number for each example, and all targets that it compares with may miss labels.
    """
    missing = with_missing_labels(graph)
    if not missing:
        return {}
    ignored = find_ignored_labels(graph)
    labels = {
        name: TargetLabels(name, list_padding(graph, graph.target_types[name]), ignored.get(name), missing=True)
        for name in missing
    }
    behind = {name: targets for name, targets in find_loss_targets(graph).items() if targets and targets <= missing}
    per_example = (name for name, result in graph.losses.items() if graph.type_of(result).per == "example")
    return {name: [labels[target] for target in sorted(behind[name])] for name in per_example if name in behind}


def find_labelled(labels: Mapping[str, list[TargetLabels]], batch: Batch) -> dict[str, Tensor]:
    """For each loss, whether each example of a batch has a label of one of its targets: [B]."""
    return {name: torch.stack([each.examples(batch) for each in of_loss]).any(0) for name, of_loss in labels.items()}


def mean_of_loss(loss: Tensor, mask: Tensor | None) -> Tensor:
    """The mean of a loss [B], or over its labelled examples [B]; zero without any."""
    return loss.mean() if mask is None else apply_mask(loss, mask).sum() / mask.sum().clamp(min=1)
