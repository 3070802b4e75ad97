"""onnxscript's optimisation of a traced graph, with rules that drop an operation only where it does nothing at all.

Its own rules take any constant up to 1e-8 for zero and any within 1e-5 of one for one, so that `h / (h + 1e-9)` becomes
0 / 0, and `1.000005 * h` becomes h.
"""

from __future__ import annotations

from typing import Any

import onnx_ir
from onnx_ir.passes import Sequential, common
from onnxscript.optimizer import fold_constants
from onnxscript.rewriter import RewritePass
from onnxscript.rewriter.pattern import Constant, RewriteRule, RewriteRuleSet
from onnxscript.rewriter.rules import common as rules

ROUNDS = 2


def optimize(model: onnx_ir.Model) -> None:
    """Fold constants, drop what does nothing or is not used, and compute equal things once; in place."""
    common.InlinePass()(model)
    for _ in range(ROUNDS):
        fold_constants(model, onnx_shape_inference=True)
        RULES(model)
    CLEANED(model)


def _adds_zero(op: Any, x: Any) -> Any:
    return op.Add(x, EXACT_ZERO)


def _subtracts_zero(op: Any, x: Any) -> Any:
    return op.Sub(x, EXACT_ZERO)


def _multiplies_by_one(op: Any, x: Any) -> Any:
    return op.Mul(x, EXACT_ONE)


def _divides_by_one(op: Any, x: Any) -> Any:
    return op.Div(x, EXACT_ONE)


def _nothing(op: Any, x: Any, **_: Any) -> Any:
    return op.Identity(x)


class AtItsEnd:
    """A rule that is tried only at nodes of the kind that its pattern ends with, where it would be at every node."""

    def __init__(self, rule: RewriteRule) -> None:
        self.rule = rule
        self.end = rule._target_pattern.output_nodes[0].op  # one of several: a match begins with the first

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rule, name)

    def try_rewrite(self, model: Any, graph: Any, node: onnx_ir.Node, **options: Any) -> Any:
        return self.rule.try_rewrite(model, graph, node, **options) if self.end.matches(node.op_type) else None


EXACT_ZERO = Constant(0, rel_tol=0, abs_tol=0)
EXACT_ONE = Constant(1, rel_tol=0, abs_tol=0)
NO_OPERATION = (
    *RewriteRule(_adds_zero, _nothing).commute(),
    RewriteRule(_subtracts_zero, _nothing),
    *RewriteRule(_multiplies_by_one, _nothing).commute(),
    RewriteRule(_divides_by_one, _nothing),
    rules.dropout_zero_rule,
    rules.dropout_inference_rule,
)
SHAPES = (
    rules.two_reshapes_matmul_reshape_rule,
    rules.one_reshape_matmul_reshape_rule,
    rules.collapse_slice_rule,
    rules.collapse_slice2_rule,
    rules.materialize_reshape_shape_rule,
    rules.no_op_expand_rule,
    rules.flatten_to_reshape_rule,  # before that on two reshapes
    rules.reshape_reshape_rule,
    rules.slice_split_rule,
    rules.no_op_transpose_rule,
    rules.transpose_transpose_rule,
    rules.unsqueeze_unsqueeze_rule,
    rules.squeeze_reshape_1d_rule,
    rules.no_op_dynamic_scatter_nd_rule,
    rules.no_op_static_scatter_nd_rule,
)
TYPES = (
    rules.cast_constant_of_shape_rule,
    rules.cast_constant_of_shape_without_value_rule,
    rules.cast_cast_rule,
    rules.no_op_cast_rule,
)
BOUNDS = (
    rules.min_min_rule,
    rules.max_max_rule,
    rules.min_max_rule,
    rules.max_min_rule,
    rules.successive_clip_relu_rule,
    rules.successive_relu_clip_rule,
    rules.successive_relu_rule,
    rules.successive_clip_rule,
)
LAYERS = (
    rules.normalize_pad_format_conv_rule,
    rules.fuse_pad_into_conv_rule,
    rules.fuse_batchnorm_into_conv_rule,
    rules.fuse_batchnorm_into_gemm_rule,
    rules.remove_optional_bias_from_conv_rule,
    rules.remove_optional_bias_from_gemm_rule,
)
EVERY: Any = [AtItsEnd(rule) for rule in (*NO_OPERATION, *SHAPES, *TYPES, *BOUNDS, *LAYERS)]
RULES = Sequential(
    RewritePass(RewriteRuleSet(EVERY)),
    common.RemoveUnusedNodesPass(),
    common.RemoveUnusedOpsetsPass(),
)
CLEANED = Sequential(
    common.RemoveUnusedNodesPass(),
    common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
    common.LiftSubgraphInitializersToMainGraphPass(),
    common.DeduplicateInitializersPass(),
    common.CommonSubexpressionEliminationPass(),
    common.OutputFixPass(),
    common.NameFixPass(),
)
