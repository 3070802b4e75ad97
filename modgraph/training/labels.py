"""How labels count: the recipe's word on what the spec compares with its targets, as an edit of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data import Arrays
from modgraph.data.errors import DataDoesNotFit
from modgraph.data.padding import real_places
from modgraph.diagnostics import Diagnostic, ModgraphError, did_you_mean
from modgraph.ir import Graph, comparisons, with_missing_labels
from modgraph.training.errors import CannotBeMissing, UnknownTarget
from modgraph.training.losses import with_setting
from modgraph.training.sections import Labels


def ignoring(graph: Graph, labels: Mapping[str, Labels]) -> Graph:
    """The graph whose losses leave out the labels that the recipe ignores, or says may be missing; `unfit_labels`
    reports those that it cannot leave out."""
    ignored = {name: each.ignore for name, each in labels.items() if each.ignore is not None}
    missing = {name: True for name, each in labels.items() if each.missing}
    return with_setting(with_setting(graph, "ignore", ignored), "missing", missing)


def refuse_unlabelled(graph: Graph, train: Arrays) -> None:
    """Raises `ModgraphError` where no example that is learnt from has a label of some target."""
    for name in sorted(with_missing_labels(graph)):
        labels = _real(name, train)
        if not (~np.isnan(labels) if labels.dtype.kind == "f" else labels >= 0).any():
            reason = f'no example that is learnt from has a label of "{name}"'
            raise ModgraphError([DataDoesNotFit(reason=reason, way_out="leave out its loss, or look at the data")])


def weighing(graph: Graph, labels: Mapping[str, Labels], train: Arrays) -> Graph:
    """The graph whose cross-entropies weigh classes as the recipe says. Raises `ModgraphError`."""
    weights: dict[str, tuple[float, ...]] = {}
    for name, each in labels.items():
        if each.weights is None:
            continue
        size = graph.target_types[name].size
        assert size is not None, "a cross-entropy compares with classes"
        weights[name] = balanced(_real(name, train), size) if isinstance(each.weights, str) else each.weights
        if len(weights[name]) != size:
            reason = f"train.labels.{name}.weights has {len(weights[name])} numbers for {size} classes"
            raise ModgraphError([DataDoesNotFit(reason=reason, way_out="give one weight for each class, or: balanced")])
    return with_setting(graph, "class_weights", weights)


def balanced(label: NDArray[Any], classes: int) -> tuple[float, ...]:
    """n / (C·n_c) for each class: every class counts the same in all; labels that are no class are left out."""
    counts = np.bincount(label[(label >= 0) & (label < classes)].ravel(), minlength=classes)
    return tuple(float(counts.sum() / (classes * count)) if count else 0.0 for count in counts)


def _real(target: str, train: Arrays) -> NDArray[Any]:
    """The labels of a target that are no padding, [S]."""
    label = train.values[target]
    return label[real_places(label, train.padded.get(target, ()), train.values)]


def unfit_labels(graph: Graph, labels: Mapping[str, Labels]) -> Iterator[tuple[str, Diagnostic]]:
    """Targets that no loss compares with, or not one that knows what the recipe says, by name."""
    every = [(each, each.node.op.compares) for each in comparisons(graph)]
    of_classes = [each.target for each, said in every if said and said.ignore and said.class_weights]
    may_miss = [each for each, _ in every if each.may_miss]
    reads_missing = {each.node.name for each in may_miss}
    for name, each in labels.items():
        known, by = [each.target for each in may_miss], "loss"
        if each.weights is not None or each.ignore is not None:
            known, by = of_classes, "cross_entropy"
        if name not in known:
            yield name, UnknownTarget(target=name, by=by, suggestion=did_you_mean(name, sorted(set(known))))
        elif each.missing:
            for node in graph:
                reads = any(source.node == name for source in graph.inputs(node.name).values())
                if reads and node.name not in reads_missing:
                    yield name, CannotBeMissing(target=name, reader=node.name)
