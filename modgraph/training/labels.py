"""How labels count: the recipe's word on the spec's cross-entropies, as an edit of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data import Arrays
from modgraph.data.errors import DataDoesNotFit
from modgraph.data.padding import real_places
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.ir import Compared, Graph, Node, OpNode, Part, comparisons, rewritten
from modgraph.training.errors import UnknownTarget
from modgraph.training.sections import Labels


def ignoring(graph: Graph, labels: Mapping[str, Labels]) -> Graph:
    """The graph whose cross-entropies leave out the labels that the recipe ignores. Raises `ModgraphError`."""
    _known(graph, labels)
    return _edited(graph, "ignore", {name: each.ignore for name, each in labels.items() if each.ignore is not None})


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
        for each in _of_labels(graph)
        if each.target in values
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


def _known(graph: Graph, labels: Mapping[str, Labels]) -> None:
    known = sorted({each.target for each in _of_labels(graph)})
    for name in labels:
        if name not in known:
            raise ModgraphError([UnknownTarget(target=name, suggestion=did_you_mean(name, known))])
