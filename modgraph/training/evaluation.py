"""Measuring a model on a split: means of metrics, and on request confusion matrices and accuracies by group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from modgraph.backends.torch import Model
from modgraph.training.data import Arrays
from modgraph.training.metrics import Accuracy, Means, accuracies, names_by_group

Batch = dict[str, Tensor]
EXAMPLES = 256  # a batch of an evaluation


def results_of(model: Model, batch: Mapping[str, Tensor], wanted: list[Any]) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Some results of a batch, and its losses: [B] of one per example, one number over the batch."""
    losses = model.graph.losses
    results = model.results(batch, (*wanted, *losses.values()))
    return results[: len(wanted)], dict(zip(losses, results[len(wanted) :], strict=True))


def gather(means: Means, found: list[Accuracy], batch: Batch, logits: list[Tensor], losses: dict[str, Tensor]) -> None:
    """Add a batch's losses and accuracies to the means."""
    examples = len(next(iter(batch.values())))
    if not examples:
        return
    means.add_losses({name: value.detach().mean() for name, value in losses.items()}, examples)
    _count(means, found, batch, logits)


def _count(means: Means, found: list[Accuracy], batch: Batch, logits: list[Tensor], prefix: str = "") -> None:
    """Add a batch's accuracies."""
    for accuracy, each in zip(found, logits, strict=True):
        right, total = accuracy.count(each.detach(), batch[accuracy.target], _length(accuracy, batch))
        means.add(prefix + accuracy.name, right, total)


@torch.no_grad()
def evaluate(model: Model, arrays: Arrays, part: int = 0, parts: int = 1, by: str | None = None) -> Means:
    """Losses and accuracies of a model over a split, in evaluation mode; of several parts' batches, one part's.

    With a grouping, also the accuracies of each of its groups, and their means.
    """
    model.eval()
    found = accuracies(model.graph)
    groups = arrays.names_of_groups(by)
    means = Means(of_means=names_by_group(model.graph, by, groups) if groups else {})
    for places in slices(arrays)[part::parts]:
        batch = placed(_batch(arrays, places), model)
        logits, losses = results_of(model, batch, [each.logits for each in found])
        gather(means, found, batch, logits, losses)
        for group in groups:
            here = torch.from_numpy(np.flatnonzero(arrays.groups[str(by)][places] == group))
            rows = {name: each[here] for name, each in batch.items()}
            _count(means, found, rows, [each[here] for each in logits], prefix=f"{by}.{group}.")
    return means


def placed(batch: Batch, model: Model) -> Batch:
    """A batch where the model is, in its precision."""
    weight = next(model.parameters(), torch.empty(0))
    return {
        name: each.to(weight.device, weight.dtype if each.is_floating_point() else None) for name, each in batch.items()
    }


@dataclass
class Details:
    """What goes wrong where: by target, how often each class (rows) was taken for each (columns); by grouping and
    group, labels that are right and labels in all."""

    confusion: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    groups: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = []
        for grouping, groups in self.groups.items():
            lines.append(grouping.replace("_", " "))
            shares = sorted((right / max(1, total), name, total) for name, (right, total) in groups.items())
            lines += [f"  {name:10} {share:.4f}  of {total}" for share, name, total in shares]
        for target, matrix in self.confusion.items():
            width = max(len(str(matrix.max())), len(str(len(matrix))))
            lines.append(f"{target}: true class by row, predicted class by column")
            cells = [[str(value).rjust(width) for value in row] for row in matrix]
            head = "".join(f" {str(column).rjust(width)}" for column in range(len(matrix)))
            lines.append(" " * (width + 3) + head)
            lines += [f"  {str(row).rjust(width)}  {' '.join(each)}" for row, each in enumerate(cells)]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Confusion matrices as lists, accuracies by group."""
        shares = {
            grouping: {name: right / max(1, total) for name, (right, total) in groups.items()}
            for grouping, groups in self.groups.items()
        }
        matrices = {name: matrix.tolist() for name, matrix in self.confusion.items()}
        return {**{f"{name}.confusion": each for name, each in matrices.items()}, **shares}


@torch.no_grad()
def details(model: Model, arrays: Arrays) -> Details:
    """Confusion matrices by target, and accuracies by the split's groups."""
    model.eval()
    found = accuracies(model.graph)
    parts: dict[str, list[tuple[NDArray[Any], ...]]] = {each.name: [] for each in found}
    for places in slices(arrays):
        batch = placed(_batch(arrays, places), model)
        for accuracy, logits in zip(found, model.results(batch, tuple(each.logits for each in found)), strict=True):
            predicted, counts = accuracy.predictions(logits, batch[accuracy.target], _length(accuracy, batch))
            parts[accuracy.name].append((predicted.cpu().numpy(), counts.cpu().numpy()))
    whole = Details()
    for accuracy in found:
        columns = [np.concatenate(each) for each in zip(*parts[accuracy.name], strict=True)]
        classes = model.graph.type_of(accuracy.logits).shape[-1]
        _add(whole, accuracy, arrays, (columns[0], columns[1]), classes)
    return whole


def _add(
    whole: Details, accuracy: Accuracy, arrays: Arrays, found: tuple[NDArray[Any], NDArray[Any]], classes: Any
) -> None:
    predicted, counts = found
    label = arrays.values[accuracy.target]
    matrix = np.zeros((classes, classes), np.int64)
    np.add.at(matrix, (label[counts], predicted[counts]), 1)
    whole.confusion[accuracy.target] = matrix
    rows = (len(label), -1)
    right, total = ((each & counts).reshape(rows).sum(1) for each in (predicted == label, counts))
    prefix = accuracy.name.removesuffix("accuracy")
    for grouping, groups in arrays.groups.items():
        of_group = whole.groups.setdefault(f"{prefix}accuracy_by_{grouping}", {})
        for name in np.unique(groups):
            here = groups == name
            of_group[str(name)] = int(right[here].sum()), int(total[here].sum())


def _length(accuracy: Accuracy, batch: Batch) -> Tensor | None:
    return None if accuracy.length is None else batch.get(accuracy.length)


def slices(arrays: Arrays) -> list[slice]:
    """The places of an evaluation's batches."""
    return [slice(start, start + EXAMPLES) for start in range(0, len(arrays), EXAMPLES)]


def _batch(arrays: Arrays, places: slice) -> Batch:
    return {name: torch.from_numpy(array) for name, array in arrays.read(places).items()}
