"""Optimises a traced graph by onnxscript's rules, and removes what no output needs, in scans too.

A rule drops an operation only if the operation has no effect at all. onnxscript's own rules take any constant up to
1e-8 for zero and any within 1e-5 of one for one, so that `h / (h + 1e-9)` would become 0 / 0, and `1.000005 * h` would
become h.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import onnx_ir
from onnx_ir.passes import Sequential, common
from onnxscript.optimizer import fold_constants
from onnxscript.rewriter import _DEFAULT_REWRITE_RULES, RewritePass
from onnxscript.rewriter.pattern import Constant, RewriteRule, RewriteRuleSet
from onnxscript.rewriter.rules.common import _no_op, dropout_inference_rule, dropout_zero_rule

ROUNDS = 2


def optimize(model: onnx_ir.Model) -> None:
    """Fold constants, drop operations without effect or use, and merge equal ones; in place."""
    common.InlinePass()(model)
    for _ in range(ROUNDS):
        fold_constants(model, onnx_shape_inference=True)
        RULES(model)
    CLEANED(model)


def trim(model: onnx_ir.Model) -> None:
    """Remove nodes, weights, and results of scans and loops that no output needs."""
    common.RemoveUnusedNodesPass()(model)
    _trim_graph(model.graph)
    common.RemoveUnusedNodesPass()(model)


def _trim_graph(graph: onnx_ir.Graph) -> None:
    """Trim the scans and loops of a graph, and those in their bodies."""
    for node in list(graph):
        if node.op_type in ("Scan", "Loop"):
            node = _trim_scan(graph, node) if node.op_type == "Scan" else _trim_loop(graph, node)
            body = node.attributes["body"].as_graph()
            common.RemoveUnusedNodesPass()(onnx_ir.Model(body, ir_version=10))
            _trim_graph(body)


def _trim_loop(graph: onnx_ir.Graph, node: onnx_ir.Node) -> onnx_ir.Node:
    """Trim a loop: drop what it carries that neither another carried value nor anything outside reads."""
    body = node.attributes["body"].as_graph()
    count = len(node.outputs)
    dead = {at for at, value in enumerate(node.outputs) if not value.uses() and value not in graph.outputs}
    while True:
        needed = _list_needed([value for at, value in enumerate(body.outputs, -1) if at not in dead])
        found = {at for at in dead if body.inputs[at + 2] not in needed}
        if found == dead:
            break
        dead = found
    kept = [at for at in range(count) if at not in dead]
    body.outputs[:] = [body.outputs[0], *(body.outputs[at + 1] for at in kept)]
    common.RemoveUnusedNodesPass()(onnx_ir.Model(body, ir_version=10))
    body.inputs[:] = [*body.inputs[:2], *(body.inputs[at + 2] for at in kept)]
    inputs = [*node.inputs[:2], *(node.inputs[at + 2] for at in kept)]
    return _replace(graph, node, onnx_ir.node("Loop", inputs, num_outputs=len(kept)), kept, node.attributes.values())


def _list_needed(values: list[onnx_ir.Value]) -> set[onnx_ir.Value]:
    """The values that some depend on."""
    found, pending = set[onnx_ir.Value](), [*values]
    while pending:
        value = pending.pop()
        if value not in found:
            found.add(value)
            node = value.producer()
            if node is not None:
                read = [*node.inputs, *(each for inner in _list_inner(node) for each in inner.inputs)]
                pending += [each for each in read if each is not None]
    return found


def _list_inner(node: onnx_ir.Node) -> list[onnx_ir.Node]:
    """The nodes of the graphs in a node."""
    graphs = [each.as_graph() for each in node.attributes.values() if each.type == onnx_ir.AttributeType.GRAPH]
    return [inner for graph in graphs for inner in graph.all_nodes()]


def _replace(
    graph: onnx_ir.Graph, node: onnx_ir.Node, trimmed: onnx_ir.Node, kept: list[int], attributes: Iterable[onnx_ir.Attr]
) -> onnx_ir.Node:
    """Put a node with fewer outputs in the place of another."""
    for attribute in attributes:
        trimmed.attributes[attribute.name] = attribute
    graph.insert_before(node, trimmed)
    for at, value in zip(kept, trimmed.outputs, strict=True):
        old = node.outputs[at]
        value.name, value.type, value.shape = old.name, old.type, old.shape
        onnx_ir.convenience.replace_all_uses_with(old, value, replace_graph_outputs=True)
    graph.remove(node, safe=True)
    return trimmed


def _trim_scan(graph: onnx_ir.Graph, node: onnx_ir.Node) -> onnx_ir.Node:
    """Trim a scan. It has one stacked result for each output of its body after the states."""
    states = len(node.inputs) - node.attributes["num_scan_inputs"].as_int()
    kept = [at for at, value in enumerate(node.outputs) if at < states or value.uses() or value in graph.outputs]
    body = node.attributes["body"].as_graph()
    body.outputs[:] = [body.outputs[at] for at in kept]
    directions = [0] * (len(kept) - states)
    given = [value for name, value in node.attributes.items() if name != "scan_output_directions"]
    trimmed = onnx_ir.node("Scan", node.inputs, num_outputs=len(kept))
    outputs = onnx_ir.AttrInt64s("scan_output_directions", directions)
    return _replace(graph, node, trimmed, kept, [*given, outputs])


class AtItsEnd:
    """A rule that is tried only at nodes of the kind that ends its pattern, instead of at every node."""

    def __init__(self, rule: RewriteRule) -> None:
        self.rule = rule
        self.end = rule._target_pattern.output_nodes[0].op  # one of several: a match begins with the first

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rule, name)

    def try_rewrite(self, model: Any, graph: Any, node: onnx_ir.Node, **options: Any) -> Any:
        return self.rule.try_rewrite(model, graph, node, **options) if self.end.matches(node.op_type) else None


def _nothing(op: Any, x: Any, **_: Any) -> Any:
    return op.Identity(x)


ZERO, ONE = (Constant(number, rel_tol=0, abs_tol=0) for number in (0, 1))
NO_OPERATION = (
    *RewriteRule(lambda op, x: op.Add(x, ZERO), _nothing).commute(),
    RewriteRule(lambda op, x: op.Sub(x, ZERO), _nothing),
    *RewriteRule(lambda op, x: op.Mul(x, ONE), _nothing).commute(),
    RewriteRule(lambda op, x: op.Div(x, ONE), _nothing),
    dropout_zero_rule,
    dropout_inference_rule,
)
OTHERS = [rule for rule in _DEFAULT_REWRITE_RULES if rule not in [*_no_op.rules]]
EVERY: Any = [AtItsEnd(rule) for rule in (*NO_OPERATION, *OTHERS)]
RULES = Sequential(RewritePass(RewriteRuleSet(EVERY)), common.RemoveUnusedNodesPass(), common.RemoveUnusedOpsetsPass())
CLEANED = Sequential(
    common.RemoveUnusedNodesPass(),
    common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
    common.LiftSubgraphInitializersToMainGraphPass(),
    common.DeduplicateInitializersPass(),
    common.CommonSubexpressionEliminationPass(),
    common.OutputFixPass(),
    common.NameFixPass(),
)
