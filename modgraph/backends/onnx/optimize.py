"""Optimises a traced graph by onnxscript's rules, and removes what no output needs, in scans too.

A rule drops an operation only if the operation has no effect at all. onnxscript's own rules take any constant up to
1e-8 for zero and any within 1e-5 of one for one, so that `h / (h + 1e-9)` would become 0 / 0, and `1.000005 * h` would
become h.
"""

from __future__ import annotations

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
    """Remove nodes, weights and results of scans that no output needs."""
    common.RemoveUnusedNodesPass()(model)
    for node in list(model.graph):
        if node.op_type == "Scan":
            _trim_scan(model.graph, node)
    common.RemoveUnusedNodesPass()(model)


def _trim_scan(graph: onnx_ir.Graph, node: onnx_ir.Node) -> None:
    """Trim a scan. It has one stacked result for each output of its body after the states."""
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
