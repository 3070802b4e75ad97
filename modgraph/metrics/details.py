"""What goes wrong where: metrics of each target, confusion matrices, and every metric for each group of the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from modgraph.data import Arrays
from modgraph.data.batches import batches
from modgraph.metrics.compared import Accuracy, Batch
from modgraph.metrics.means import Means
from modgraph.metrics.metrics import Metrics, by_group

WIDEST = 120  # letters of a confusion matrix with names above its columns
Compute = Callable[[Metrics, Batch], Sequence[Tensor]]  # what metrics want of a batch
MOST_CLASSES = 100  # of a confusion matrix: of a vocabulary it would fill the disk and tell nobody anything


@dataclass
class Details:
    """By target its metrics, how many labels it has, and how often each class (rows) was taken for each (columns); by
    grouping and group, its metrics and how many examples it has. `classes` are names of classes by target, where
    the data have names."""

    targets: dict[str, dict[str, float]] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    confusion: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    groups: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    sizes: dict[str, dict[str, int]] = field(default_factory=dict)
    classes: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [line for grouping in self.groups for line in self._table(grouping)]
        for target, metrics in self.targets.items():
            found = "".join(f"  {name} {value:.4f}" for name, value in metrics.items())
            lines.append(f"{target}: {self.labels[target]:,} labels{found}")
            if target in self.confusion:
                lines.append(f"{target}: true class by row, predicted class by column")
                lines += _matrix(self.confusion[target], self.names(target))
        return "\n".join(lines)

    def names(self, target: str) -> list[str]:
        """The classes of a target's confusion matrix: their names, or the numbers of those that have none."""
        known = self.classes.get(target, ())
        return [*known, *map(str, range(len(known), len(self.confusion[target])))][: len(self.confusion[target])]

    def _table(self, grouping: str) -> list[str]:
        rows = sorted(self.groups[grouping].items(), key=lambda row: [*row[1].values(), row[0]])
        names = list(rows[0][1])
        width = max(10, *(len(group) for group, _ in rows))
        widths = [max(8, len(name)) for name in names]
        lines = [f"by {grouping.replace('_', ' ')}".ljust(width + 2) + "".join(f"  {name:>8}" for name in names)]
        for group, metrics in rows:
            cells = [f"  {metrics[name]:{each}.4f}" for name, each in zip(names, widths, strict=True)]
            lines.append(f"  {group:{width}}{''.join(cells)}  of {self.sizes[grouping][group]}")
        return lines

    def as_json(self) -> dict[str, Any]:
        """Confusion matrices as lists, `<target>.classes` the names of their rows and columns;
        `<metric>_by_target`, `labels_by_target`: a value for each target;
        `<metric>_by_<grouping>`: a value for each group."""
        found: dict[str, Any] = {f"{name}.confusion": matrix.tolist() for name, matrix in self.confusion.items()}
        found |= {f"{name}.classes": self.names(name) for name in self.confusion if name in self.classes}
        found["labels_by_target"] = self.labels
        for grouping, groups in (("target", self.targets), *self.groups.items()):
            for group, metrics in groups.items():
                for name, value in metrics.items():
                    found.setdefault(f"{name}_by_{grouping}", {})[group] = value
        return found


def _matrix(matrix: NDArray[np.int64], names: Sequence[str]) -> list[str]:
    """The lines of a confusion matrix: names head rows and columns; if that is too wide, numbers head the columns and
    precede the names of rows."""
    heads, sides = names, names
    if len(names) * (1 + max(map(len, names))) > WIDEST:
        heads = [str(number) for number in range(len(names))]
        width = max(map(len, heads))
        sides = [f"{head:>{width}} {name}" for head, name in zip(heads, names, strict=True)]
    side, width = max(map(len, sides)), max(len(str(matrix.max())), *map(len, heads))
    rows = [" ".join(f"{value:>{width}}" for value in row) for row in (heads, *matrix.tolist())]
    align = "<" if heads is not names else ">"
    return [f"  {head:{align}{side}}  {row}" for head, row in zip(("", *sides), rows, strict=True)]


def details(metrics: Metrics, compute: Compute, arrays: Arrays, classes: Mapping[str, Sequence[str]]) -> Details:
    """Metrics of a split by target and by group, computed batch by batch. `classes` has the names of each target's."""
    whole, of_all = Details(classes=classes), Means()
    means: dict[str, dict[str, Means]] = {grouping: {} for grouping in arrays.groups}
    labels = {metric.target: metric.labels for metric in metrics.compared}
    for indices, batch in batches(arrays):
        values = compute(metrics, batch)
        metrics.gather(of_all, batch, values)
        for target, each in labels.items():
            whole.labels[target] = whole.labels.get(target, 0) + int(each.counted(batch).sum())
        results_of_batch = dict(zip(metrics.wanted, values, strict=True))
        for metric in metrics.compared:
            logits = results_of_batch[metric.result]
            if isinstance(metric, Accuracy) and logits.shape[-1] <= MOST_CLASSES:
                counts, matrix = metric.labels.counted(batch), np.zeros((logits.shape[-1],) * 2, np.int64)
                matrix = whole.confusion.setdefault(metric.target, matrix)
                np.add.at(matrix, (batch[metric.target][counts].numpy(), logits.argmax(-1)[counts].numpy()), 1)
        for grouping, words in arrays.groups.items():
            for group, own, found in by_group(words[indices], batch, values):
                metrics.gather(means[grouping].setdefault(group, Means()), own, found)
    overall = metrics.values(of_all)
    for metric in metrics.compared:
        whole.targets.setdefault(metric.target, {})[metric.measure.name] = overall[metric.name]
    for grouping, groups in means.items():
        names, sizes = np.unique(arrays.groups[grouping], return_counts=True)
        whole.groups[grouping] = {group: metrics.values(groups[group]) for group in map(str, names)}
        whole.sizes[grouping] = dict(zip(map(str, names), map(int, sizes), strict=True))
    return whole
