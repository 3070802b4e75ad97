"""Details of a split: metrics of each target, confusion matrices, and every metric for each group of the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from modgraph.data import Arrays
from modgraph.data.batches import batches
from modgraph.metrics.accumulators import Accumulators
from modgraph.metrics.confusion import Confusion, name_rows
from modgraph.metrics.metrics import Metrics, split_by_group
from modgraph.metrics.target_metrics import Batch

WIDEST = 120  # columns of text for a matrix with names above it
Compute = Callable[[Metrics, Batch], Sequence[Tensor]]  # returns the values that metrics read from a batch


@dataclass
class Details:
    """The metrics and the number of labels of each target, and its confusion matrix (true classes in rows, predicted
    classes in columns); the metrics and the number of examples of each group. `classes` has the names of classes by
    target, where the data set names them."""

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
        """Return the classes of a target's confusion matrix: their names, or numbers for those without a name."""
        return name_rows(len(self.confusion[target]), self.classes.get(target, ()))

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
        """Return the details as JSON values.

        `<target>.confusion` are matrices as lists, `<target>.classes` the names of their rows and columns.
        `<metric>_by_target` and `labels_by_target` have a value for each target, `<metric>_by_<grouping>` for each
        group.
        """
        found: dict[str, Any] = {f"{name}.confusion": matrix.tolist() for name, matrix in self.confusion.items()}
        found |= {f"{name}.classes": self.names(name) for name in self.confusion if name in self.classes}
        found["labels_by_target"] = self.labels
        for grouping, groups in (("target", self.targets), *self.groups.items()):
            for group, metrics in groups.items():
                for name, value in metrics.items():
                    found.setdefault(f"{name}_by_{grouping}", {})[group] = value
        return found


def _matrix(matrix: NDArray[np.int64], names: Sequence[str]) -> list[str]:
    """Return the lines of a confusion matrix. Names head rows and columns; where that is too wide, numbers head the
    columns and precede the names of rows."""
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
    """Compute metrics of a split by target and by group, batch by batch. `classes` has the names of each target's
    classes."""
    whole, of_all, confusion = Details(classes=classes), Accumulators(), Confusion()
    accumulators: dict[str, dict[str, Accumulators]] = {grouping: {} for grouping in arrays.groups}
    labels = {metric.target: metric.labels for metric in metrics.compared}
    for indices, batch in batches(arrays):
        values = compute(metrics, batch)
        metrics.gather(of_all, batch, values)
        for target, each in labels.items():
            whole.labels[target] = whole.labels.get(target, 0) + int(each.make_mask(batch).sum())
        confusion.add(metrics, batch, values)
        for grouping, words in arrays.groups.items():
            for group, own, found in split_by_group(words[indices], batch, values):
                metrics.gather(accumulators[grouping].setdefault(group, Accumulators()), own, found)
    whole.confusion = {target: matrix.numpy() for target, matrix in confusion.matrices.items()}
    overall = metrics.values(of_all)
    for metric in metrics.compared:
        whole.targets.setdefault(metric.target, {})[metric.measure.name] = overall[metric.name]
    for grouping, groups in accumulators.items():
        names, sizes = np.unique(arrays.groups[grouping], return_counts=True)
        whole.groups[grouping] = {group: metrics.values(groups[group]) for group in map(str, names)}
        whole.sizes[grouping] = dict(zip(map(str, names), map(int, sizes), strict=True))
    return whole
