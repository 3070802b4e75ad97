"""What nobody reads of an ONNX graph is left out, inside scans too."""

from __future__ import annotations

import onnx_ir
from onnx_ir.passes.common import RemoveUnusedNodesPass


def trim(model: onnx_ir.Model) -> None:
    """Remove nodes, weights and results of scans that no output needs."""
    RemoveUnusedNodesPass()(model)
    for node in list(model.graph):
        if node.op_type == "Scan":
            _trim_scan(model.graph, node)
    RemoveUnusedNodesPass()(model)


def _trim_scan(graph: onnx_ir.Graph, node: onnx_ir.Node) -> None:
    """A scan gives one stacked result for each output of its body after the states."""
    states = len(node.inputs) - node.attributes["num_scan_inputs"].as_int()
    kept = [at for at, value in enumerate(node.outputs) if at < states or value.uses() or value in graph.outputs]
    body = node.attributes["body"].as_graph()
    body.outputs[:] = [body.outputs[at] for at in kept]
    directions = [0] * (len(kept) - states)
    given = [value for name, value in node.attributes.items() if name != "scan_output_directions"]
    trimmed = onnx_ir.node("Scan", node.inputs, num_outputs=len(kept))
    for attribute in (*given, onnx_ir.AttrInt64s("scan_output_directions", directions)):
        trimmed.attributes[attribute.name] = attribute
    graph.insert_before(node, trimmed)
    for at, value in zip(kept, trimmed.outputs, strict=True):
        old = node.outputs[at]
        value.name, value.type, value.shape = old.name, old.type, old.shape
        onnx_ir.convenience.replace_all_uses_with(old, value)
        graph.outputs[:] = [value if each is old else each for each in graph.outputs]
    graph.remove(node, safe=True)
