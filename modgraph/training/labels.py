"""How labels count: the recipe's word on what the spec compares with its targets, as an edit of the graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data import Arrays
from modgraph.data.errors import DataDoesNotFit
from modgraph.data.padding import real_places
from modgraph.diagnostics import Diagnostic, ModgraphError, did_you_mean
from modgraph.ir import Compared, Graph, Node, OpNode, Part, comparisons, rewritten, with_missing_labels
from modgraph.training.errors import CannotBeMissing, UnknownTarget
from modgraph.training.sections import Labels


def ignoring(graph: Graph, labels: Mapping[str, Labels]) -> Graph:
    """The graph whose losses leave out the labels that the recipe ignores, or says may be missing; `unfit_labels`
    reports those that it cannot leave out."""
    ignored = {name: each.ignore for name, each in labels.items() if each.ignore is not None}
    missing = {name: True for name, each in labels.items() if each.missing}
    return _edited(_edited(graph, "ignore", ignored), "missing", missing)


def refuse_unlabelled(graph: Graph, train: Arrays) -> None:
    """Raises `ModgraphError` where no example that is learnt from has a label of some target."""
    for name in sorted(with_missing_labels(graph)):
        labels = _real(name, train)
        if not (~np.isnan(labels) if labels.dtype.kind == "f" else labels >= 0).any():
            reason = f'no example that is learnt from has a label of "{name}"'
            raise ModgraphError([DataDoesNotFit(reason=reason, way_out="leave out its loss, or look at the data")])


def weighing(graph: Graph, labels: Mapping[str, Labels], train: Arrays) -> Graph:
    """The graph whose cross-entropies weigh classes as the recipe says. Raises `ModgraphError`."""
    weights = {name: each.weights for name, each in labels.items() if each.weights is not None}
    changes: dict[str, tuple[float, ...]] = {}
    for name, each in weights.items():
        size = graph.target_types[name].size
        assert size is not None, "a cross-entropy compares with classes"
        given = balanced(_real(name, train), size) if isinstance(each, str) else each
        if len(given) != size:
            reason = f"train.labels.{name}.weights has {len(given)} numbers for {size} classes"
            raise ModgraphError([DataDoesNotFit(reason=reason, way_out="give one weight for each class, or: balanced")])
        changes[name] = given
    return _edited(graph, "class_weights", changes)


def balanced(label: NDArray[Any], classes: int) -> tuple[float, ...]:
    """n / (C·n_c) for each class: every class counts the same in all; labels that are no class are left out."""
    counts = np.bincount(label[(label >= 0) & (label < classes)].ravel(), minlength=classes)
    return tuple(float(counts.sum() / (classes * count)) if count else 0.0 for count in counts)


def _real(target: str, train: Arrays) -> NDArray[Any]:
    """The labels of a target that are no padding, [S]."""
    label = train.values[target]
    return label[real_places(label, train.padded.get(target, ()), train.values)]


def _edited(graph: Graph, role: str, values: Mapping[str, Any]) -> Graph:
    """The graph whose comparisons with some targets have another value of the setting that has this role."""
    settings = {
        each.node.name: {getattr(each.node.op.compares, role): values[each.target]}
        for each in comparisons(graph)
        if each.target in values and getattr(each.node.op.compares, role) is not None
    }

    def changed(node: Node, part: Part) -> Node:
        if not isinstance(node, OpNode) or node.name not in settings:
            return node
        return replace(node, op=replace(node.op, **settings[node.name]))

    return rewritten(graph, changed)


def _of_labels(graph: Graph) -> list[Compared]:
    """The comparisons whose labels can be left out and whose classes can be weighed."""
    every = ((each, each.node.op.compares) for each in comparisons(graph))
    return [each for each, said in every if said and said.ignore and said.class_weights]


def unfit_labels(graph: Graph, labels: Mapping[str, Labels]) -> Iterator[tuple[str, Diagnostic]]:
    """Targets that no loss compares with, or not one that knows what the recipe says, by name."""
    may_miss, classes = [each.target for each in comparisons(graph) if each.may_miss], _targets(_of_labels(graph))
    for name, each in labels.items():
        of_classes = each.weights is not None or each.ignore is not None
        known, by = (classes, "cross_entropy") if of_classes else (may_miss, "loss")
        if name not in known:
            yield name, UnknownTarget(target=name, by=by, suggestion=did_you_mean(name, sorted(set(known))))
        elif each.missing:
            yield from ((name, fault) for fault in _other_readers(graph, name))


def _other_readers(graph: Graph, target: str) -> Iterator[CannotBeMissing]:
    """The nodes that read a target and cannot leave out missing labels."""
    known = {each.node.name for each in comparisons(graph) if each.may_miss}
    for node in graph:
        if node.name not in known and any(source.node == target for source in graph.inputs(node.name).values()):
            yield CannotBeMissing(target=target, reader=node.name)


def _targets(compared: Iterable[Compared]) -> list[str]:
    return [each.target for each in compared]
