"""Passes from graph to graph, and the pipelines they make."""

from __future__ import annotations

from collections.abc import Iterable

from modgraph.ir import Graph
from modgraph.passes.determinize import Determinize
from modgraph.passes.inference import InferenceOnly
from modgraph.passes.infrastructure import Pass
from modgraph.passes.lower import Lower, NoSuchLowering, choices

TRAINING: tuple[Pass, ...] = (Lower(),)
INFERENCE: tuple[Pass, ...] = (InferenceOnly(), Determinize(), Lower(exportable=True))


def apply_passes(graph: Graph, passes: Iterable[Pass]) -> Graph:
    """The graph after each pass in turn."""
    for each in passes:
        graph = each(graph)
    return graph


__all__ = [
    "INFERENCE",
    "TRAINING",
    "Determinize",
    "InferenceOnly",
    "Lower",
    "NoSuchLowering",
    "Pass",
    "apply_passes",
    "choices",
]
