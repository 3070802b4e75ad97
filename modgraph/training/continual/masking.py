"""The graph that a phase learns from: some of its losses, classes of earlier tasks without a share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from modgraph.ir import Graph, Node, OpNode, Part, comparisons, rewritten, with_losses
from modgraph.training.continual.reported import drop_frozen_terms

PREFIX = "loss."


def losses_called(graph: Graph, patterns: Collection[str]) -> list[str]:
    """The losses of a graph whose names, with or without `loss.`, are those of a pattern."""
    return [name for name in graph.losses if any(is_called(name, pattern) for pattern in patterns)]


def is_called(loss: str, pattern: str) -> bool:
    """Whether a pattern, in which `*` stands for any letters, means a loss."""
    return fnmatchcase(loss, pattern) or fnmatchcase(loss.removeprefix(PREFIX), pattern)


def learnt_from(graph: Graph, losses: Collection[str], since: Mapping[str, int]) -> Graph:
    """A graph with some of its losses, without the terms of frozen modules; classes before `since`, by target, have no
    share in cross-entropies."""
    return drop_frozen_terms(with_losses(masking(graph, since), losses))


def masking(graph: Graph, since: Mapping[str, int]) -> Graph:
    """The graph whose cross-entropies give classes before `since`, by target, no share."""
    settings = {
        each.node.name: {each.node.op.compares.since: since[each.target]}
        for each in comparisons(graph)
        if each.node.op.compares is not None and each.node.op.compares.since and since.get(each.target)
    }

    def changed(node: Node, part: Part) -> Node:
        if not isinstance(node, OpNode) or node.name not in settings:
            return node
        return replace(node, op=replace(node.op, **settings[node.name]))

    return rewritten(graph, changed) if settings else graph
