"""Outputs of a graph that rank the classes of a target, and outputs that are probabilities."""

from __future__ import annotations

from modgraph.ir.analysis.comparisons import comparisons
from modgraph.ir.analysis.ranking import keeps_largest
from modgraph.ir.graph import Graph
from modgraph.ir.node import OpNode, Result
from modgraph.ops.along_axis import Softmax
from modgraph.ops.elementwise import Identity
from modgraph.ops.measures import ACCURACY


def find_ranked_targets(trained: Graph) -> dict[str, str]:
    """Find the target whose classes each output ranks, by the output's name.

    A training compares such an output with the target, or it results from compared logits by ops that keep the largest
    value in place.
    """
    compared: dict[Result, str] = {}
    for each in comparisons(trained):
        if ACCURACY in each.measures and not each.binary:
            compared.setdefault(each.prediction, each.target)
    found: dict[str, str] = {}
    for name, result in trained.outputs.items():
        while result not in compared and keeps_largest(trained, result):
            (result,) = trained.inputs(result.node).values()
        found |= {name: compared[result]} if result in compared else {}
    return found


def list_probability_outputs(graph: Graph) -> frozenset[str]:
    """List the outputs whose values along the last axis are probabilities, because they result from a softmax."""
    found = set()
    for name, result in graph.outputs.items():
        while isinstance(node := graph[result.node], OpNode) and isinstance(node.op, Identity):
            (result,) = graph.inputs(result.node).values()
        if isinstance(node, OpNode) and isinstance(node.op, Softmax) and keeps_largest(graph, result):
            found.add(name)
    return frozenset(found)
