"""Finds outputs that read targets."""

from __future__ import annotations

from typing import Any

from modgraph.diagnostics import Report
from modgraph.elaboration import errors
from modgraph.ir import Graph, OpNode, OutputNode, paths_from_targets


def find_leaks(graph: Graph, report: Report) -> None:
    """Report outputs that depend on a target in inference, which has none."""
    leaks = paths_from_targets(graph)
    if not leaks:
        return
    ops = {node.name: node.op.name for part in graph.parts() for node in part.graph.of_kind(OpNode)}
    spans = {node.label: node.span for node in graph.of_kind(OutputNode)}
    for output, path in leaks.items():
        facts: Any = {"output": output, "target": path[0], "path": " -> ".join(path)}
        swapped = next((name for name in path if ops.get(name) == "training_or_inference"), None)
        if swapped is not None:
            facts["way_out"] = f"in inference {swapped} is its second value: put the target first"
        report.add(errors.OutputReadsTarget(span=spans[output], **facts))
